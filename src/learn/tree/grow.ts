// Grows the trees of a model: clusters the labels, decides which rows every node learns from, and trains the levels.
import type { Pool } from '../../kernels/pool.ts';
import { Arena, createMemory } from '../../kernels/wasm.ts';
import { type Csr, type Pattern, transpose } from '../../math/csr.ts';
import type { Context } from '../../progress.ts';
import type { TrainContext } from '../learner.ts';
import { buildChain, type ChainOptions, type Placed, placeMatrix } from './chain.ts';
import type { Scoring } from './explain.ts';
import { type Level, levelFrom, levelTensors } from './level.ts';
import { joinFound, searchAll } from './model.ts';
import { openForest, plantForest } from './search.ts';
import { type LevelTask, type SolveOptions, trainLevels } from './solve.ts';

export type GrowOptions = ChainOptions &
  SolveOptions &
  Scoring & {
    trees: number;
    /** Rows a node learns from: those whose labels lie below its parent, those the beam takes there, or both. */
    negatives: 'tfn' | 'man' | 'tfn+man';
  };

/** What all trees of one training run share. */
interface Ground {
  arena: Arena;
  pool: Pool;
  x: Csr;
  placed: Placed;
  context: TrainContext;
}

/** `x` has unit rows; `labels` is rows x labels. */
export async function growTrees(
  x: Csr,
  labels: Pattern,
  o: GrowOptions,
  context: TrainContext,
): Promise<Level[][]> {
  const { Pool } = await import('../../kernels/pool.ts');
  const arena = new Arena(createMemory(1 << 20, true));
  const pool = new Pool(context.threads);
  const ground: Ground = { arena, pool, x, placed: placeMatrix(arena, x), context };
  const byLabel = transpose(labels);
  try {
    const trees: Level[][] = [];
    for (let t = 0; t < o.trees; t++) {
      const seed = `${context.seed} tree ${t}`;
      const chain = await buildChain(arena, ground.placed, labels, byLabel, o, seed, pool, context);
      trees.push(await growTree(ground, labels, chain, o, seed));
    }
    return trees;
  } finally {
    await pool.close();
  }
}

async function growTree(
  { arena, pool, x, placed, context }: Ground,
  labels: Pattern,
  chain: Pattern[],
  o: GrowOptions,
  seed: string,
): Promise<Level[]> {
  const { checkpoint } = context;
  const tasks = levelTasks(labels, chain);
  const train = (some: LevelTask[]) => trainLevels(arena, placed, x.indptr, some, o, seed, pool, context);
  // Levels that need nothing of each other share the threads best when they are trained together.
  if (o.negatives === 'tfn' && !checkpoint) return train(tasks);
  const made = checkpoint && fingerprint(x, labels, o, seed);
  const levels: Level[] = [];
  for (const task of tasks) {
    const name = `${made}-level-${task.depth + 1}`;
    const kept = await checkpoint?.load(name);
    if (kept) {
      levels.push({ ...levelFrom(kept), shape: task.shape });
      continue;
    }
    const [level] = await train([{ ...task, rows: await trainingRows(task, x, levels, o, context) }]);
    await checkpoint?.save(name, levelTensors(level));
    levels.push(level);
  }
  return levels;
}

async function trainingRows(
  { rows }: LevelTask,
  x: Csr,
  above: Level[],
  o: GrowOptions,
  context: Context,
): Promise<Pattern> {
  if (o.negatives === 'tfn' || above.length === 0) return rows;
  const reached = await reachedRows(x, above, o, context);
  return o.negatives === 'man' ? reached : union(rows, reached);
}

/** Sixteen hexadecimal digits that change with anything a level depends on. */
function fingerprint(x: Csr, labels: Pattern, o: GrowOptions, seed: string): string {
  const settings = new TextEncoder().encode(JSON.stringify([x.cols, labels.cols, o, seed]));
  const arrays = [settings, x.indptr, x.indices, x.values, labels.indptr, labels.indices];
  return [0x811c9dc5, 0x2f0b4c47]
    .map((start) => {
      let hash = start;
      for (const { buffer, byteOffset, byteLength } of arrays) {
        const bytes = new Uint8Array(buffer, byteOffset, byteLength);
        for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
      }
      return (hash >>> 0).toString(16).padStart(8, '0');
    })
    .join('');
}

/** Each level with its parents' true rows; the root's are all rows. */
export function levelTasks(labels: Pattern, chain: Pattern[]): LevelTask[] {
  const targets = [labels];
  for (const shape of chain.slice(1).reverse()) targets.unshift(parentsOf(targets[0], shape));
  const positives = targets.map((nodes) => transpose(nodes));
  return chain.map((shape, depth) => {
    const rows = depth === 0 ? everyRow(labels.rows) : positives[depth - 1];
    return { depth, shape, rows, positives: positives[depth] };
  });
}

/** Each sample's nodes one level up, ascending and once each. */
function parentsOf(nodes: Pattern, shape: Pattern): Pattern {
  const parent = new Uint32Array(shape.cols);
  for (let p = 0; p < shape.rows; p++) {
    for (let i = shape.indptr[p]; i < shape.indptr[p + 1]; i++) parent[shape.indices[i]] = p;
  }
  const indptr = new Uint32Array(nodes.rows + 1);
  const indices = new Uint32Array(nodes.indices.length);
  const lastRow = new Int32Array(shape.rows).fill(-1);
  let size = 0;
  for (let row = 0; row < nodes.rows; row++) {
    for (let i = nodes.indptr[row]; i < nodes.indptr[row + 1]; i++) {
      const p = parent[nodes.indices[i]];
      if (lastRow[p] === row) continue;
      lastRow[p] = row;
      indices[size++] = p;
    }
    indices.subarray(indptr[row], size).sort();
    indptr[row + 1] = size;
  }
  return { rows: nodes.rows, cols: shape.rows, indptr, indices: indices.slice(0, size) };
}

function everyRow(rows: number): Pattern {
  const indices = Uint32Array.from({ length: rows }, (_, row) => row);
  return { rows: 1, cols: rows, indptr: Uint32Array.of(0, rows), indices };
}

/** nodes x rows: which rows the beam takes to each node of the last of these levels. */
export async function reachedRows(
  x: Csr,
  levels: Level[],
  { bias, beam, power }: Scoring,
  { threads, signal }: Context,
): Promise<Pattern> {
  const labels = levels[levels.length - 1].shape.cols;
  const { forest } = plantForest([levels], { features: x.cols, labels, bias, beam, power }, true);
  const search = await openForest(forest);
  const found = joinFound(await searchAll(forest, search, x, { top: beam, threads, signal }), labels);
  const { rows, cols, indptr, indices } = found;
  return transpose({ rows, cols, indptr, indices });
}

/** Both patterns have ascending rows, and so has the answer. */
function union(a: Pattern, b: Pattern): Pattern {
  const indptr = new Uint32Array(a.rows + 1);
  const rows = Array.from({ length: a.rows }, (_, row) => {
    const both = new Set(a.indices.subarray(a.indptr[row], a.indptr[row + 1]));
    for (let p = b.indptr[row]; p < b.indptr[row + 1]; p++) both.add(b.indices[p]);
    indptr[row + 1] = indptr[row] + both.size;
    return Uint32Array.from(both).sort();
  });
  const indices = new Uint32Array(indptr[a.rows]);
  rows.forEach((row, i) => {
    indices.set(row, indptr[i]);
  });
  return { ...a, indptr, indices };
}
