// A trained tree (or several): predicting, explaining, saving and loading. Runs in browsers.
import type { Prepare, Task } from '../../kernels/pool.ts';
import { inNode } from '../../kernels/wasm.ts';
import type { Csr } from '../../math/csr.ts';
import type { Json, PartReader, PartWriter } from '../../parts.ts';
import { breathe, checkCancelled } from '../../progress.ts';
import { joinFeatures, unitFeatures } from '../features.ts';
import type { Model, PredictOptions, Width } from '../learner.ts';
import { explainLabel } from './explain.ts';
import { type Level, levelFrom, levelTensors } from './level.ts';
import { type Forest, type Found, type Merge, openForest, plantForest, type Search } from './search.ts';

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

export async function treeModel(config: TreeConfig, grown: Level[][]): Promise<Model> {
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
    save: (parts) => saveTrees(parts, config, trees),
  };
}

/** Ranks every row of unit-length inputs. */
export async function searchAll(
  forest: Forest,
  search: Search,
  x: Csr,
  { top, excluded, threads = 1, signal, progress }: PredictOptions,
): Promise<Found[]> {
  checkCancelled(signal);
  let done = 0;
  const onResult = ({ counts }: Found) => {
    done += counts.length;
    progress?.({ phase: 'predict', done, total: x.rows, unit: 'rows' });
  };
  if (threads > 1 && x.rows > batchRows) {
    const { runJobs } = await import('../../kernels/pool.ts');
    return runJobs(searchTask, forest, batches(x, top, excluded), { threads, signal, onResult });
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

export function joinFound(parts: Found[], cols: number): Csr {
  const rows = parts.reduce((sum, { counts }) => sum + counts.length, 0);
  const size = parts.reduce((sum, { labels }) => sum + labels.length, 0);
  const joined: Csr = {
    rows,
    cols,
    indptr: new Uint32Array(rows + 1),
    indices: new Uint32Array(size),
    values: new Float32Array(size),
  };
  let [row, entry] = [0, 0];
  for (const { counts, labels, scores } of parts) {
    joined.indices.set(labels, entry);
    joined.values.set(scores, entry);
    entry += labels.length;
    for (let i = 0; i < counts.length; i++, row++) joined.indptr[row + 1] = joined.indptr[row] + counts[i];
  }
  return joined;
}

const partName = (tree: number, level: number) => `tree-${tree + 1}-level-${level + 1}`;

async function saveTrees(parts: PartWriter, config: TreeConfig, trees: Level[][]): Promise<Json> {
  for (const [t, levels] of trees.entries()) {
    for (const [l, level] of levels.entries()) {
      await parts.write(partName(t, l), levelTensors(level));
    }
  }
  const { width, ...rest } = config;
  return { ...rest, ...width, levels: trees.map((levels) => levels.length) };
}

export async function loadTree(json: Json, parts: PartReader): Promise<Model> {
  const { levels, sparse, dense, ...rest } = json as unknown as Omit<TreeConfig, 'width'> &
    Width & { levels: number[] };
  const trees: Level[][] = [];
  for (const [t, depth] of levels.entries()) {
    const tree: Level[] = [];
    for (let l = 0; l < depth; l++) tree.push(levelFrom(await parts.read(partName(t, l))));
    trees.push(tree);
  }
  return treeModel({ ...rest, width: { sparse, dense } }, trees);
}
