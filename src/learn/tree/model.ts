// A trained tree (or several): predicting, explaining, saving and loading. Runs in browsers.
import type { Pool, Prepare, Task } from '../../kernels/pool.ts';
import { inNode } from '../../kernels/wasm.ts';
import { type Csr, type Found, joinFound } from '../../math/csr.ts';
import type { Json, PartReader, PartWriter } from '../../parts.ts';
import { breathe, checkCancelled } from '../../progress.ts';
import { joinFeatures, unitFeatures } from '../features.ts';
import type { Model, PredictOptions, Width } from '../learner.ts';
import { explainLabel } from './explain.ts';
import { labelWeights } from './label-weights.ts';
import { type Level, levelFrom, levelTensors } from './level.ts';
import { type Forest, type Merge, openForest, plantForest, type Search } from './search.ts';
import {
  describeSenses,
  type SenseRecord,
  sensesFrom,
  senseTensors,
  textsFrom,
  textTensors,
} from './senses.ts';

/** One record for each tree, whose examples are numbers of texts. */
interface Senses {
  records: SenseRecord[];
  texts: string[];
}

export interface TreeConfig {
  width: Width;
  labels: number;
  bias: number;
  beam: number;
  power: number;
  /** Absent where every label is in one cluster. */
  merge?: Merge;
}

/** Rows searched per job and between two breaths. */
const batchRows = 256;

interface BatchJob {
  x: Csr;
  top: number;
  excluded?: Uint8Array;
}

const searchTask: Task<Forest, BatchJob, Found> = { module: import.meta.url, name: 'prepareSearch' };

export const prepareSearch: Prepare<Forest, BatchJob, Found> = async (forest) => {
  const search = await openForest(forest);
  return ({ x, top, excluded }) => search(x, 0, x.rows, top, excluded);
};

/** Without senses, records are empty: every label is in one place. */
export async function treeModel(
  config: TreeConfig,
  grown: Level[][],
  senses: Senses = { records: [], texts: [] },
): Promise<Model> {
  const { width, labels } = config;
  const features = width.sparse + width.dense;
  const { forest, trees } = plantForest(grown, { ...config, features }, inNode);
  const search = await openForest(forest);
  return {
    width,
    async predict(inputs, options) {
      const x = joinFeatures(unitFeatures(inputs));
      const parts = await searchAll(forest, search, x, options);
      return joinFound(parts, labels);
    },
    async explain(input, label) {
      const x = joinFeatures(unitFeatures(input));
      return explainLabel(x, label, trees, config);
    },
    labelWeights: () => labelWeights(trees, labels, features),
    ...(senses.records.length > 0 && sensesOf(trees, senses)),
    save: (parts) => saveTrees(parts, config, trees, senses),
  };
}

/** Words and neighbours told of each sense. */
const mostTold = 20;

function sensesOf(trees: Level[][], { records, texts }: Senses): Pick<Model, 'senses' | 'sensesApart'> {
  return {
    senses(label) {
      return trees.flatMap((levels, tree) =>
        describeSenses(label, tree, levels[levels.length - 1], records[tree], texts, mostTold),
      );
    },
    sensesApart() {
      const farthest = new Map<number, number>();
      for (const { labels, apart } of records) {
        labels.forEach((label, i) => {
          farthest.set(label, Math.max(farthest.get(label) ?? 0, apart[i]));
        });
      }
      return Array.from(farthest, ([label, apart]) => ({ label, apart })).sort(
        (a, b) => b.apart - a.apart || a.label - b.label,
      );
    },
  };
}

/** Ranks every row of unit-length inputs, on the threads of a pool where there is one already. */
export async function searchAll(
  forest: Forest,
  search: Search,
  x: Csr,
  { top, excluded, threads = 1, signal, progress }: PredictOptions,
  pool?: Pool,
): Promise<Found[]> {
  checkCancelled(signal);
  let done = 0;
  const onResult = ({ counts }: Found) => {
    done += counts.length;
    progress?.({ phase: 'predict', done, total: x.rows, unit: 'rows' });
  };
  if (threads > 1 && x.rows > batchRows) {
    const jobs = batches(x, top, excluded);
    if (pool) return pool.run(searchTask, forest, jobs, { signal, onResult });
    const { runJobs } = await import('../../kernels/pool.ts');
    return runJobs(searchTask, forest, jobs, { threads, here: true, signal, onResult });
  }
  const parts: Found[] = [];
  for (let from = 0; from < x.rows; from += batchRows) {
    if (from > 0) await breathe();
    checkCancelled(signal);
    const part = search(x, from, Math.min(from + batchRows, x.rows), top, excluded);
    onResult(part);
    parts.push(part);
  }
  return parts;
}

function* batches(x: Csr, top: number, excluded: Uint8Array | undefined): Generator<BatchJob> {
  for (let from = 0; from < x.rows; from += batchRows) {
    const rows = Math.min(batchRows, x.rows - from);
    const start = x.indptr[from];
    const end = x.indptr[from + rows];
    const indptr = x.indptr.slice(from, from + rows + 1).map((offset) => offset - start);
    const indices = x.indices.slice(start, end);
    yield { x: { rows, cols: x.cols, indptr, indices, values: x.values.slice(start, end) }, top, excluded };
  }
}

const partName = (tree: number, level: number) => `tree-${tree + 1}-level-${level + 1}`;
const sensesName = (tree: number) => `tree-${tree + 1}-senses`;
const textsName = 'examples';

async function saveTrees(
  parts: PartWriter,
  config: TreeConfig,
  trees: Level[][],
  { records, texts }: Senses,
): Promise<Json> {
  for (const [t, levels] of trees.entries()) {
    for (const [l, level] of levels.entries()) {
      await parts.write(partName(t, l), levelTensors(level));
    }
  }
  for (const [t, record] of records.entries()) await parts.write(sensesName(t), senseTensors(record));
  if (records.length > 0) await parts.write(textsName, textTensors(texts));
  const { width, ...rest } = config;
  return { ...rest, ...width, levels: trees.map((levels) => levels.length), senses: records.length > 0 };
}

export async function loadTree(json: Json, parts: PartReader): Promise<Model> {
  const { levels, sparse, dense, senses, ...rest } = json as unknown as Omit<TreeConfig, 'width'> &
    Width & { levels: number[]; senses?: boolean };
  const trees: Level[][] = [];
  for (const [t, depth] of levels.entries()) {
    const tree: Level[] = [];
    for (let l = 0; l < depth; l++) tree.push(levelFrom(await parts.read(partName(t, l))));
    trees.push(tree);
  }
  const config = { ...rest, width: { sparse, dense } };
  if (!senses) return treeModel(config, trees);
  const records: SenseRecord[] = [];
  for (const t of trees.keys()) records.push(sensesFrom(await parts.read(sensesName(t))));
  return treeModel(config, trees, { records, texts: textsFrom(await parts.read(textsName)) });
}
