// The routes under /v1: what is asked, by whom it is answered. How requests are let in and errors leave is app.ts.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RawServerDefault,
} from 'fastify';
import { Type } from 'typebox';
import { badInput, unknownName } from '../errors.ts';
import { evaluateOptions } from '../judge/evaluate.ts';
import type { Crew } from './crew.ts';
import { evaluateUpload } from './evaluation.ts';
import type { Evaluation } from './judged.ts';
import type { Limits } from './limits.ts';
import { Problem, renamePlaces } from './problem.ts';
import {
  ErrorBody,
  type EvaluateQuery,
  EvaluationReport,
  ExplainBody,
  Explained,
  evaluateQuery,
  Input,
  ModelDetail,
  ModelList,
  ModelParams,
  SuggestBody,
  Suggestions,
  SuggestQuery,
  uploadFormats,
} from './schemas.ts';
import { suggestLines } from './stream.ts';
import { compileValidator, type TypeBoxProvider } from './validate.ts';

export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxProvider
>;

export interface Serving {
  crews: ReadonlyMap<string, Crew>;
  limits: Limits;
  /** Keeps an evaluation, for the models that have its version. */
  remember(evaluation: Evaluation): void;
}

export const ndjson = 'application/x-ndjson';
const mediaFormats: Record<string, (typeof uploadFormats)[number]> = {
  [ndjson]: 'jsonl',
  'application/jsonl': 'jsonl',
  'text/csv': 'csv',
  'text/tab-separated-values': 'tsv',
};

/** Answers of threads are JSON already. */
export const sendJson = (reply: FastifyReply, json: string) => reply.type('application/json').send(json);

export function findCrew({ crews }: Serving, name: string): Crew {
  const crew = crews.get(name);
  if (crew) return crew;
  const { message, detail } = unknownName('model', name, [...crews.keys()]);
  throw new Problem('not-found', message, detail.hint);
}

/** `top` and `threshold` with their defaults, within the limits. */
export function checkAsked({ top = 5, threshold = 0 }: SuggestQuery, limits: Limits) {
  if (top > limits.top) throw badInput(`top must be <= ${limits.top}`, { value: top });
  return { top, threshold };
}

export const answers = (schema: object) => ({ 200: schema, '4xx': ErrorBody, '5xx': ErrorBody });

export function registerRoutes(app: App, serving: Serving): void {
  registerModels(app, serving);
  registerSuggest(app, serving);
  // Apart, because these take bodies as streams.
  app.register(async (scope) => registerBatch(scope as App, serving));
  app.register(async (scope) => registerEvaluate(scope as App, serving));
}

function registerModels(app: App, serving: Serving): void {
  app.get(
    '/models',
    { schema: { tags: ['models'], summary: 'List the models', response: answers(ModelList) } },
    async () => ({ models: Array.from(serving.crews.values(), ({ summary }) => summary) }),
  );

  app.get(
    '/models/:model',
    {
      schema: {
        tags: ['models'],
        summary: 'One model: its settings, sizes and last evaluation',
        params: ModelParams,
        response: answers(ModelDetail),
      },
    },
    async ({ params }) => findCrew(serving, params.model).detail,
  );

  app.post(
    '/models/:model/reload',
    {
      schema: {
        tags: ['models'],
        summary: 'Load the model from its folder again; requests are answered meanwhile',
        params: ModelParams,
        response: answers(ModelDetail),
      },
    },
    async ({ params, log }) => {
      const crew = findCrew(serving, params.model);
      await crew.reload().catch((error) => {
        log.error(error);
        throw renamePlaces(error, { [crew.folder]: crew.name });
      });
      return crew.detail;
    },
  );
}

function registerSuggest(app: App, serving: Serving): void {
  const { limits } = serving;
  app.post(
    '/models/:model/suggest',
    {
      schema: {
        tags: ['suggest'],
        summary: 'The best labels for one text',
        params: ModelParams,
        body: SuggestBody,
        response: answers(Suggestions),
      },
    },
    async ({ params, body }, reply) => {
      const { text, features, ...asked } = body;
      const crew = findCrew(serving, params.model);
      const [json] = await crew.ask({
        kind: 'suggest',
        inputs: [checkInput({ text, features })],
        ...checkAsked(asked, limits),
      });
      return sendJson(reply, json);
    },
  );

  app.post(
    '/models/:model/explain',
    {
      schema: {
        tags: ['suggest'],
        summary: 'Which words pushed a label, step by step',
        params: ModelParams,
        body: ExplainBody,
        response: answers(Explained),
      },
    },
    async ({ params, body }, reply) =>
      sendJson(reply, await findCrew(serving, params.model).ask({ kind: 'explain', ...body })),
  );
}

/** What comes as a stream is checked as it is read. */
export const exceptStreams: typeof compileValidator = (part) => {
  const check = compileValidator(part);
  return (value: unknown) => (value instanceof Readable ? true : check(value));
};

function registerBatch(app: App, serving: Serving): void {
  const { limits } = serving;
  app.addContentTypeParser([ndjson, 'application/jsonl'], (_request, payload, done) => done(null, payload));
  const lines = Type.String({ description: 'One input per line, as in the array; answered line by line.' });
  app.post(
    '/models/:model/suggest-batch',
    {
      schema: {
        tags: ['suggest'],
        summary: 'The best labels for many texts: an array, or JSON lines of any number',
        description:
          'Send an array as application/json and get an array, or lines as application/x-ndjson and get lines while ' +
          'the request is still being sent. A bad line is answered by {"line", "error"}.',
        params: ModelParams,
        querystring: SuggestQuery,
        body: { content: { 'application/json': { schema: Type.Array(Input) }, [ndjson]: { schema: lines } } },
        response: answers(Type.Array(Suggestions)),
      },
      validatorCompiler: exceptStreams,
    },
    async ({ params, query, body }, reply) => {
      const crew = findCrew(serving, params.model);
      const asked = checkAsked(query, limits);
      if (body instanceof Readable) {
        const { seconds, bodyBytes: lineBytes } = limits;
        const source = body.iterator({ destroyOnReturn: false });
        const answered = suggestLines(source, crew, { ...asked, seconds, lineBytes });
        return reply
          .type(ndjson)
          .send(Readable.from(answered, { objectMode: false, highWaterMark: 2 ** 16 }));
      }
      const inputs = (body as Input[]).map(checkInput);
      if (inputs.length > limits.batch) {
        const rule = `a batch must have at most ${limits.batch} inputs`;
        throw badInput(rule, { value: inputs.length, hint: `send JSON lines as ${ndjson} for more` });
      }
      return sendJson(reply, `[${(await crew.suggest(inputs, asked)).join(',')}]`);
    },
  );
}

function checkInput(input: Input): Input {
  if (input.text === undefined && input.features === undefined)
    throw badInput('an input must have a text or features');
  return input;
}

function registerEvaluate(app: App, serving: Serving): void {
  const { limits } = serving;
  let busy = false;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  app.post(
    '/models/:model/evaluate',
    {
      schema: {
        tags: ['models'],
        summary: 'Measure the model on an uploaded file with labels',
        description: `The body is the file as plain text: ${uploadFormats.join(', ')}. One evaluation at a time.`,
        body: { content: Object.fromEntries([...Object.keys(mediaFormats), 'text/plain'].map(asText)) },
        params: ModelParams,
        querystring: evaluateQuery(evaluateOptions),
        response: answers(EvaluationReport),
      },
      validatorCompiler: exceptStreams,
    },
    async (request, reply) => {
      const crew = findCrew(serving, request.params.model);
      const query = request.query as EvaluateQuery;
      const format = query.format ?? mediaFormats[mediaType(request)];
      if (!format) {
        const rule = `format must be one of ${uploadFormats.join(', ')}`;
        throw badInput(rule, { hint: 'say it as ?format= or by Content-Type: text/csv' });
      }
      if (busy) throw new Problem('overloaded', 'one evaluation may run at a time', 'try again later');
      busy = true;
      try {
        const upload = (request.body as Readable | undefined)?.iterator({ destroyOnReturn: false });
        if (!upload) throw badInput('upload must not be empty');
        const task = { folder: crew.folder, format, query };
        const evaluation = await evaluateUpload(upload, task, limits, closedSignal(reply));
        serving.remember(evaluation);
        return evaluation.report;
      } finally {
        busy = false;
      }
    },
  );
}

const asText = (type: string) => [type, { schema: Type.String({ description: 'The file.' }) }];

const mediaType = ({ headers }: FastifyRequest) =>
  (headers['content-type'] ?? '').split(';')[0].trim().toLowerCase();

/** Fires when the client goes away before it has its answer. */
function closedSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  return gone.signal;
}
