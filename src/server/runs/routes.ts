// Routes of training runs, of the data they train on and of the learners there are.
import { Readable } from 'node:stream';
import { Type } from 'typebox';
import { badInput } from '../../errors.ts';
import { findLearner, learnerNames } from '../../learn/registry.ts';
import { Problem } from '../problem.ts';
import { type App, answers, exceptStreams } from '../routes.ts';
import { type Runs, remoteOptions } from './runs.ts';
import {
  DataEntry,
  DataList,
  DataParams,
  DataQuery,
  LearnerList,
  Run,
  RunList,
  RunParams,
  RunSpec,
  ServeBody,
} from './schemas.ts';
import type { Sources } from './sources.ts';

export interface Training {
  /** Refuses where nothing is kept. */
  runs(): Runs;
  sources: Sources;
  /** Starts and stops serving the model in a folder. */
  serve(name: string, folder: string): Promise<void>;
  unserve(name: string): Promise<void>;
  /** Fires when the server stops. */
  closing: AbortSignal;
}

/** So that proxies keep the connection of a quiet run. */
const heartbeatMs = 15_000;

export function registerRuns(app: App, training: Training): void {
  registerLearners(app);
  app.register(async (scope) => registerData(scope as App, training));
  registerRunning(app, training);
  registerServing(app, training);
}

function registerLearners(app: App): void {
  app.get(
    '/learners',
    {
      schema: {
        tags: ['runs'],
        summary: 'The learners and their options',
        response: answers(LearnerList),
      },
    },
    async () => ({
      learners: await Promise.all(
        learnerNames.map(async (name) => {
          const learner = await findLearner(name);
          return { name, summary: learner.summary, options: remoteOptions(learner) };
        }),
      ),
    }),
  );
}

function registerData(app: App, { sources }: Training): void {
  app.get(
    '/data',
    {
      schema: {
        tags: ['runs'],
        summary: 'The data that runs may train on',
        response: answers(DataList),
      },
    },
    async () => ({ data: await sources.list() }),
  );
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  app.put(
    '/data/:data',
    {
      schema: {
        tags: ['runs'],
        summary: 'Upload data to train on, as plain text',
        params: DataParams,
        querystring: DataQuery,
        body: { content: { 'text/plain': { schema: Type.String({ description: 'The file.' }) } } },
        response: answers(DataEntry),
      },
      validatorCompiler: exceptStreams,
    },
    async ({ params, query, body }) => {
      const upload = (body as Readable | undefined)?.iterator({ destroyOnReturn: false });
      if (!upload) throw badInput('upload must not be empty');
      return sources.add(params.data, upload, query as DataQuery);
    },
  );
  app.delete(
    '/data/:data',
    { schema: { tags: ['runs'], summary: 'Remove an upload', params: DataParams } },
    async ({ params }, reply) => {
      await sources.remove(params.data);
      return reply.code(204).send();
    },
  );
}

function registerRunning(app: App, { runs, closing }: Training): void {
  app.get(
    '/runs',
    { schema: { tags: ['runs'], summary: 'All runs, the newest first', response: answers(RunList) } },
    async () => ({ runs: runs().list() }),
  );
  app.post(
    '/runs',
    {
      schema: {
        tags: ['runs'],
        summary: 'Start a run; it takes its turn',
        body: RunSpec,
        response: answers(Run),
      },
    },
    async ({ body }) => runs().start(body),
  );
  app.get(
    '/runs/:run',
    {
      schema: {
        tags: ['runs'],
        summary: 'One run: progress, learning curve, metrics with intervals',
        params: RunParams,
        response: answers(Run),
      },
    },
    async ({ params }) => runs().find(params.run),
  );
  app.get(
    '/runs/:run/events',
    {
      schema: {
        tags: ['runs'],
        summary: 'The run whenever it changes, as server-sent events, until it has ended',
        params: RunParams,
      },
    },
    async ({ params }, reply) => {
      const { id } = runs().find(params.run);
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const events = eventStream(runs().watch(id, AbortSignal.any([gone.signal, closing])));
      return reply
        .header('cache-control', 'no-store')
        .type('text/event-stream')
        .send(Readable.from(events, { objectMode: false }));
    },
  );
  app.post(
    '/runs/:run/cancel',
    {
      schema: { tags: ['runs'], summary: 'Cancel a run', params: RunParams, response: answers(Run) },
    },
    async ({ params }) => runs().cancel(params.run),
  );
  app.delete(
    '/runs/:run',
    { schema: { tags: ['runs'], summary: 'Remove a run and its model', params: RunParams } },
    async ({ params }, reply) => {
      await runs().remove(params.run);
      return reply.code(204).send();
    },
  );
}

function registerServing(app: App, { runs, serve, unserve }: Training): void {
  app.put(
    '/runs/:run/served',
    {
      schema: {
        tags: ['runs'],
        summary: 'Serve the model of a run, also after a restart',
        params: RunParams,
        body: ServeBody,
        response: answers(Run),
      },
    },
    async ({ params, body }) => {
      const { id, status, served } = runs().find(params.run);
      if (status !== 'done') throw new Problem('conflict', 'only a run that is done has a model');
      if (served !== null) throw new Problem('conflict', `this run is served as ${served} already`);
      await serve(body.name, runs().folder(id));
      return runs().setServed(id, body.name);
    },
  );
  app.delete(
    '/runs/:run/served',
    {
      schema: {
        tags: ['runs'],
        summary: 'Stop serving the model of a run',
        params: RunParams,
        response: answers(Run),
      },
    },
    async ({ params }) => {
      const { id, served } = runs().find(params.run);
      if (served === null) throw new Problem('conflict', 'this run is not served');
      await unserve(served);
      return runs().setServed(id, null);
    },
  );
}

async function* eventStream(values: AsyncGenerator<unknown>): AsyncGenerator<string> {
  let next = values.next();
  try {
    for (;;) {
      let timer: NodeJS.Timeout | undefined;
      const quiet = new Promise<'quiet'>((resolve) => {
        timer = setTimeout(() => resolve('quiet'), heartbeatMs);
      });
      const first = await Promise.race([next, quiet]);
      clearTimeout(timer);
      if (first === 'quiet') {
        yield ': still here\n\n';
        continue;
      }
      if (first.done) return;
      yield `data: ${JSON.stringify(first.value)}\n\n`;
      next = values.next();
    }
  } finally {
    await values.return(undefined);
  }
}
