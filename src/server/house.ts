// What stands behind the routes: models with their threads, the state, runs, maps and evidence, opened and closed
// together.
import type { ServeOptions } from './app.ts';
import { Crew } from './crew.ts';
import { type Evidence, openEvidence } from './groups/evidence.ts';
import type { Grouping } from './groups/routes.ts';
import type { Evaluation } from './judged.ts';
import type { Labelling } from './label-routes.ts';
import { Maps } from './map/maps.ts';
import { Problem } from './problem.ts';
import { reviewedTexts } from './review/queue.ts';
import type { Reviewing } from './review/routes.ts';
import type { Training } from './runs/routes.ts';
import { Runs } from './runs/runs.ts';
import { Sources } from './runs/sources.ts';
import { openState, refuseUnkept, type State } from './state.ts';

export interface House extends Labelling, Reviewing, Grouping, Training {
  state: State | undefined;
  crews: ReadonlyMap<string, Crew>;
  /** Ends the streams of those who watch runs. */
  stopWatching(): void;
  close(): Promise<void>;
}

export async function openHouse(options: ServeOptions, onTrouble: (error: unknown) => void): Promise<House> {
  const { limits, threads } = options;
  const state = options.state === undefined ? undefined : await openState(options.state);
  const crews = new Map<string, Crew>();
  const evidence = new Map<string, Evidence>();
  const maps = new Maps(state);
  const sources = new Sources(options.data ?? [], state, limits);
  const stopping = new AbortController();
  let runs: Runs | undefined;
  const close = async () => {
    await runs?.close();
    await maps.close();
    await Promise.all(Array.from(crews.values(), (crew) => crew.close()));
    state?.database.close();
  };
  const remember = (evaluation: Evaluation) => keepEvaluation(state, crews, evaluation);
  const serve = async (name: string, folder: string) => {
    if (crews.has(name))
      throw new Problem('conflict', 'a model must have a name of its own', 'choose another name');
    const excluded = excludedIn(state, name);
    const recall = (version: string) => recallEvaluation(state, version);
    crews.set(name, await Crew.start({ name, folder, threads, limits, excluded, recall, onTrouble }));
  };
  try {
    await sources.check();
    for (const { name, folder } of options.models) await serve(name, folder);
    for (const files of options.groups ?? []) evidence.set(files.name, await openEvidence(files));
    if (state) {
      const reviewed = (model: string) => reviewedTexts(state, model);
      const { labels } = options;
      runs = new Runs({ state, sources, threads, labels, reviewed, onEvaluation: remember });
      // One that cannot be loaded any more must not keep the others from being served.
      for (const { id, served } of runs.list())
        if (served !== null) await serve(served, runs.folder(id)).catch(onTrouble);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    ...{ limits, state, crews, evidence, maps, sources, remember, serve },
    runs: () => runs ?? refuseUnkept(),
    async unserve(name) {
      const crew = crews.get(name);
      crews.delete(name);
      await crew?.close();
    },
    closing: stopping.signal,
    stopWatching: () => stopping.abort(),
    close,
  };
}

function excludedIn(state: State | undefined, model: string): Map<string, boolean> {
  const rows =
    state?.database.all<{ label: string; excluded: number }>(
      'select label, excluded from exclusions where model = ?',
      model,
    ) ?? [];
  return new Map(rows.map(({ label, excluded }) => [label, excluded === 1]));
}

function keepEvaluation(state: State | undefined, crews: Map<string, Crew>, evaluation: Evaluation): void {
  const { version } = evaluation.report;
  for (const crew of crews.values()) if (crew.summary.version === version) crew.evaluation = evaluation;
  state?.database.run(
    'insert or replace into evaluations values (?, ?)',
    version,
    JSON.stringify(evaluation),
  );
}

function recallEvaluation(state: State | undefined, version: string): Evaluation | null {
  const row = state?.database.get<{ evaluation: string }>(
    'select evaluation from evaluations where version = ?',
    version,
  );
  return row ? (JSON.parse(row.evaluation) as Evaluation) : null;
}
