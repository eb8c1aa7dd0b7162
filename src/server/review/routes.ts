// Routes of the review: find what a model is unsure of, decide, and take the decisions away as training data.
import { Type } from 'typebox';
import { openSamples } from '../../data/formats.ts';
import { badInput } from '../../errors.ts';
import { Random } from '../../math/random.ts';
import type { Crew } from '../crew.ts';
import { Problem } from '../problem.ts';
import { type App, answers, findCrew, ndjson, type Serving } from '../routes.ts';
import type { NamedFile, Sources } from '../runs/sources.ts';
import { ModelParams, type Suggestions } from '../schemas.ts';
import { kept, type State } from '../state.ts';
import { addUnsure, countReviews, decide, listReviews, reviewedTexts, type Unsure } from './queue.ts';
import {
  DecisionBody,
  FillBody,
  Filled,
  ItemParams,
  ReviewCounts,
  ReviewPage,
  ReviewQuery,
} from './schemas.ts';

export interface Reviewing extends Serving {
  state: State | undefined;
  sources: Sources;
}

/** Labels per text that are looked at. */
const depth = 10;
/** Texts that are asked about at once. */
const textsAtOnce = 256;

export function registerReview(app: App, reviewing: Reviewing): void {
  registerFilling(app, reviewing);
  registerDeciding(app, reviewing);
}

function registerFilling(app: App, reviewing: Reviewing): void {
  app.post(
    '/models/:model/review',
    {
      schema: {
        tags: ['review'],
        summary: 'Put unsure predictions for some texts into the queue, the least sure first',
        params: ModelParams,
        body: FillBody,
        response: answers(Filled),
      },
    },
    async ({ params, body }) => {
      const state = kept(reviewing.state);
      const crew = findCrew(reviewing, params.model);
      const { low = 0.2, high = 0.8, most = 100 } = body;
      if (low > high) throw badInput('low must be at most high', { value: low });
      const unsure = await findUnsure(crew, await textsOf(reviewing, body), low, high);
      const doubt = ({ score }: Unsure) => Math.abs(score - 0.5);
      unsure.sort((a, b) => doubt(a) - doubt(b));
      return {
        added: addUnsure(state, crew.name, unsure.slice(0, most)),
        ...countReviews(state, crew.name),
      };
    },
  );
}

async function textsOf({ sources, limits }: Reviewing, body: FillBody): Promise<string[]> {
  const { texts, data, sample = 1000, seed = 1 } = body;
  if ((texts === undefined) === (data === undefined)) throw badInput('either texts or data must be given');
  if (data !== undefined) return someTexts(sources.find(data), sample, seed);
  const given = texts ?? [];
  if (given.length <= limits.batch) return given;
  throw badInput(`at most ${limits.batch} texts may be given`, { value: given.length });
}

/** Every text as likely, in one pass over the file. */
async function someTexts(source: NamedFile, size: number, seed: number): Promise<string[]> {
  const { file, name, format, columns, labelDelimiter } = source;
  const { batches } = await openSamples(file, { format, columns, labelDelimiter });
  const random = new Random(seed, 'review');
  const chosen: string[] = [];
  let seen = 0;
  for await (const batch of batches) {
    for (const { text } of batch) {
      if (text === undefined) throw badInput('data must have texts to be reviewed', { file: name });
      const place = seen++ < size ? seen - 1 : random.integer(seen);
      if (place < size) chosen[place] = text;
    }
  }
  return chosen;
}

async function findUnsure(crew: Crew, texts: string[], low: number, high: number): Promise<Unsure[]> {
  const found: Unsure[] = [];
  for (let from = 0; from < texts.length; from += textsAtOnce) {
    const some = texts.slice(from, from + textsAtOnce);
    const answered = await crew.suggest(
      some.map((text) => ({ text })),
      { top: depth, threshold: low },
    );
    answered.forEach((json, i) => {
      for (const { label, name, score } of (JSON.parse(json) as Suggestions).labels)
        if (score <= high) found.push({ text: some[i], label, name, score });
    });
  }
  return found;
}

function registerDeciding(app: App, reviewing: Reviewing): void {
  app.get(
    '/models/:model/review',
    {
      schema: {
        tags: ['review'],
        summary: 'The queue of unsure predictions, or what was decided',
        params: ModelParams,
        querystring: ReviewQuery,
        response: answers(ReviewPage),
      },
    },
    async ({ params, query }) =>
      listReviews(kept(reviewing.state), findCrew(reviewing, params.model).name, query),
  );
  app.put(
    '/models/:model/review/:item',
    {
      schema: {
        tags: ['review'],
        summary: 'Accept or reject a prediction, or take that back',
        params: ItemParams,
        body: DecisionBody,
        response: answers(ReviewCounts),
      },
    },
    async ({ params, body }) => {
      const state = kept(reviewing.state);
      const { name } = findCrew(reviewing, params.model);
      if (!decide(state, name, params.item, body.decision))
        throw new Problem('not-found', `no prediction in the review has the number ${params.item}`);
      return countReviews(state, name);
    },
  );
  app.get(
    '/models/:model/review/export',
    {
      schema: {
        tags: ['review'],
        summary: 'What was decided, as training data in JSON lines',
        params: ModelParams,
        response: { 200: { content: { [ndjson]: { schema: Type.String() } } } },
      },
    },
    async ({ params }, reply) => {
      const texts = reviewedTexts(kept(reviewing.state), findCrew(reviewing, params.model).name);
      const lines = texts.map(({ text, accepted, rejected }) => {
        return `${JSON.stringify({ text, labels: accepted, rejected })}\n`;
      });
      return reply.type(ndjson).send(lines.join(''));
    },
  );
}
