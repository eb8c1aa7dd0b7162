// Routes of labels: search, details, neighbours, senses, maps; new ones, and those that are never suggested.
import { badInput, badUsage } from '../errors.ts';
import { builtFile } from '../kernels/pool.ts';
import type { Crew } from './crew.ts';
import { qualityOf } from './judged.ts';
import type { Maps } from './map/maps.ts';
import { Problem, renamePlaces } from './problem.ts';
import { type App, answers, findCrew, type Serving, sendJson } from './routes.ts';
import {
  AddLabelBody,
  ExcludeBody,
  Label,
  LabelDetail,
  LabelMap,
  LabelPage,
  LabelParams,
  LabelsQuery,
  ModelParams,
  Neighbours,
  NeighboursQuery,
  Senses,
  SensesQuery,
  SensesTop,
  Similarities,
  SimilaritiesBody,
} from './schemas.ts';
import type { State } from './state.ts';
import type { Lesson } from './teacher.ts';
import { askThread } from './thread.ts';

export interface Labelling extends Serving {
  maps: Maps;
  state: State | undefined;
}

function refuseLabel(id: string): never {
  const hint = 'search at /v1/models/{model}/labels?search=';
  throw new Problem('not-found', `no label has the id ${JSON.stringify(id.slice(0, 80))}`, hint);
}

export function registerLabels(app: App, serving: Labelling): void {
  registerReading(app, serving);
  registerSenses(app, serving);
  registerPictures(app, serving);
  registerChanging(app, serving);
  registerExcluding(app, serving);
}

function registerReading(app: App, serving: Serving): void {
  app.get(
    '/models/:model/labels',
    {
      schema: {
        tags: ['labels'],
        summary: 'Search the labels; without words, the most frequent ones',
        params: ModelParams,
        querystring: LabelsQuery,
        response: answers(LabelPage),
      },
    },
    async ({ params, query }, reply) =>
      sendJson(reply, await findCrew(serving, params.model).ask({ kind: 'labels', ...query })),
  );

  app.get(
    '/models/:model/labels/:label',
    {
      schema: {
        tags: ['labels'],
        summary: 'One label: its frequency, quality, broader and narrower labels',
        params: LabelParams,
        response: answers(LabelDetail),
      },
    },
    async ({ params }, reply) => {
      const crew = findCrew(serving, params.model);
      const json = await crew.ask({ kind: 'label', id: params.label });
      const quality = JSON.stringify(qualityOf(crew.evaluation, params.label));
      return sendJson(reply, `${(json ?? refuseLabel(params.label)).slice(0, -1)},"quality":${quality}}`);
    },
  );

  app.get(
    '/models/:model/labels/:label/neighbours',
    {
      schema: {
        tags: ['labels'],
        summary: 'Labels that the same words speak for, the nearest first',
        params: LabelParams,
        querystring: NeighboursQuery,
        response: answers(Neighbours),
      },
    },
    async ({ params, query: { top = 20 } }, reply) => {
      const json = await findCrew(serving, params.model).ask({ kind: 'neighbours', id: params.label, top });
      return sendJson(reply, json ?? refuseLabel(params.label));
    },
  );
}

function registerSenses(app: App, serving: Serving): void {
  app.get(
    '/models/:model/labels/:label/senses',
    {
      schema: {
        tags: ['labels'],
        summary: 'The meanings of a label, where the model lets labels have several',
        params: LabelParams,
        response: answers(Senses),
      },
    },
    async ({ params }, reply) => {
      const json = await findCrew(serving, params.model).ask({ kind: 'senses', id: params.label });
      return sendJson(reply, json ?? refuseLabel(params.label));
    },
  );

  app.get(
    '/models/:model/senses',
    {
      schema: {
        tags: ['labels'],
        summary: 'The labels whose meanings lie farthest apart',
        params: ModelParams,
        querystring: SensesQuery,
        response: answers(SensesTop),
      },
    },
    async ({ params, query: { top = 50 } }, reply) =>
      sendJson(reply, await findCrew(serving, params.model).ask({ kind: 'sensesTop', top })),
  );
}

function registerPictures(app: App, serving: Labelling): void {
  app.get(
    '/models/:model/map',
    {
      schema: {
        tags: ['labels'],
        summary: 'All labels in the plane, like ones near each other; made when first asked for',
        params: ModelParams,
        response: answers(LabelMap),
      },
    },
    async ({ params }, reply) => sendJson(reply, serving.maps.find(findCrew(serving, params.model))),
  );

  app.post(
    '/models/:model/similarities',
    {
      schema: {
        tags: ['labels'],
        summary: 'How alike some labels are, each with each',
        params: ModelParams,
        body: SimilaritiesBody,
        response: answers(Similarities),
      },
    },
    async ({ params, body }, reply) =>
      sendJson(reply, await findCrew(serving, params.model).ask({ kind: 'similarities', ids: body.labels })),
  );
}

function registerChanging(app: App, serving: Serving): void {
  let busy = false;
  const alone = async <T>(change: () => Promise<T>): Promise<T> => {
    if (busy)
      throw new Problem('overloaded', 'one label may be added or removed at a time', 'try again later');
    busy = true;
    try {
      return await change();
    } finally {
      busy = false;
    }
  };
  app.post(
    '/models/:model/labels',
    {
      schema: {
        tags: ['labels'],
        summary: 'Teach a model a label by its name and examples, where it takes labels without training',
        description: 'Saved in the folder of the model. One label at a time.',
        params: ModelParams,
        body: AddLabelBody,
        response: answers(Label),
      },
    },
    async ({ params, body: { name, id = name, examples } }, reply) => {
      const crew = findCrew(serving, params.model);
      if (name.trim() === '' || id.trim() === '') throw badInput('a label must have a name and an id');
      return sendJson(
        reply,
        (await alone(() => changeLabels(crew, { add: { id, name, examples } }, id, true))) ?? refuseLabel(id),
      );
    },
  );
  app.delete(
    '/models/:model/labels/:label',
    {
      schema: {
        tags: ['labels'],
        summary: 'Have a model forget a label, where it does so without training; others can exclude it',
        description: 'Saved in the folder of the model. One label at a time.',
        params: LabelParams,
      },
    },
    async ({ params: { model, label } }, reply) => {
      const crew = findCrew(serving, model);
      if ((await crew.ask({ kind: 'label', id: label })) === undefined) refuseLabel(label);
      await alone(() => changeLabels(crew, { remove: label }, label, false));
      return reply.code(204).send();
    },
  );
}

/** Returns what the model then says of the label, which it is `expected` to know or not. */
async function changeLabels(crew: Crew, change: Lesson['change'], id: string, expected: boolean) {
  const url = builtFile(import.meta.url.replace(/label-routes(\.[jt]s)$/, 'teacher$1'));
  await askThread(url, { folder: crew.folder, change } satisfies Lesson);
  const reloaded = async () => {
    await crew.reload().catch((error) => {
      throw renamePlaces(error, { [crew.folder]: crew.name });
    });
    return crew.ask({ kind: 'label', id });
  };
  const label = await reloaded();
  // A reload that was under way already may have loaded the model as it was before.
  return (label !== undefined) === expected ? label : reloaded();
}

function registerExcluding(app: App, serving: Labelling): void {
  app.put(
    '/models/:model/labels/:label/excluded',
    {
      schema: {
        tags: ['labels'],
        summary: 'Never suggest a label, or suggest it again; kept where the server keeps state',
        params: LabelParams,
        body: ExcludeBody,
        response: answers(Label),
      },
    },
    async ({ params, body: { excluded } }, reply) => {
      const crew = findCrew(serving, params.model);
      const ask = { kind: 'label', id: params.label } as const;
      const before = JSON.parse((await crew.ask(ask)) ?? refuseLabel(params.label)) as Label;
      const { detail } = crew;
      if (excluded && !before.excluded && detail.excluded + 1 >= detail.labels)
        throw badUsage('at least one label must remain', { value: 0 });
      serving.state?.database.run(
        'insert or replace into exclusions values (?, ?, ?)',
        crew.name,
        params.label,
        excluded ? 1 : 0,
      );
      await crew.exclude(params.label, excluded);
      return sendJson(reply, (await crew.ask(ask)) ?? refuseLabel(params.label));
    },
  );
}
