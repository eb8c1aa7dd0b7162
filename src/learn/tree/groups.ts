// What groups of rows, those that the copies of a label draw, have each to itself: words, typical rows, and how far
// apart they are. The loops are kernels: all is done once, before an engine would have made them fast.
import type { Arena } from '../../kernels/memory.ts';
import { loadKernels } from '../../kernels/wasm.ts';
import type { Sense } from '../learner.ts';
import type { Placed } from './chain.ts';

export interface Told {
  /** From 0 to 1. */
  apart: number;
  /** Words that tell each group from the others, with their mean values. */
  words: Sense['words'][];
  /** Rows of each that have most of such words. */
  examples: number[][];
}

/** Words kept for each group. */
export const mostWords = 8;
/** The distance of two groups counts half where the smaller one has so many rows, and less where fewer. */
const fewRows = 10;
/** Of more rows than this a group is known by some, evenly taken. */
const enoughRows = 64;

/** Compares up to `mostGroups` groups at a time. Takes its room before anything is awaited; releasing is the caller's. */
export async function openGroups(
  arena: Arena,
  x: Placed,
  mostGroups: number,
  mostExamples: number,
): Promise<(drawn: number[][]) => Told> {
  const stride = mostGroups * 4;
  const most = Math.max(mostWords, mostExamples);
  // Sums and telling are of each feature, beside one another for all groups; sums are zero between labels.
  const [sumsAt, tellingAt] = [arena.allocate(x.cols * stride), arena.allocate(x.cols * stride)];
  const [seenAt, foundAt] = [arena.allocate(x.cols * 4), arena.allocate(x.cols * 4)];
  const [rowsAt, sharesAt] = [arena.allocate(enoughRows * stride), arena.allocate(mostGroups * 8)];
  const [itemsAt, scoresAt] = [arena.allocate(most * 4), arena.allocate(most * 8)];
  const { buffer } = arena.memory;
  const sums = new Float32Array(buffer, sumsAt, x.cols * mostGroups).fill(0);
  new Uint32Array(buffer, seenAt, x.cols).fill(0);
  const rows = new Uint32Array(buffer, rowsAt, enoughRows * mostGroups);
  const shares = new Float64Array(buffer, sharesAt, mostGroups);
  const [items, scores] = [new Uint32Array(buffer, itemsAt, most), new Float64Array(buffer, scoresAt, most)];
  const kernels = await loadKernels(arena.memory);
  const matrix = [x.indptr, x.indices, x.values] as const;
  const rowsOf = (group: number) => rowsAt + group * enoughRows * 4;
  const best = [itemsAt, scoresAt] as const;
  let number = 0;

  return (drawn) => {
    const groups = drawn.map(someOf);
    const count = groups.length;
    let size = 0;
    number++;
    for (let g = 0; g < count; g++) {
      rows.set(groups[g], g * enoughRows);
      shares[g] = 1 / Math.max(1, groups[g].length);
      const into = [sumsAt + 4 * g, stride, seenAt, number, foundAt, size] as const;
      size = kernels.addGroup(rowsOf(g), groups[g].length, ...matrix, ...into);
    }
    const words = groups.map((_, g) => {
      const sizes = [stride, g, count, sharesAt, mostWords] as const;
      const kept = kernels.findWords(foundAt, size, sumsAt, tellingAt, ...sizes, ...best);
      return Array.from(items.subarray(0, kept), (feature, i) => {
        const weight = sums[feature * mostGroups + g] * shares[g];
        return { feature, weight, elsewhere: weight - scores[i] };
      });
    });
    const examples = groups.map((group, g) => {
      const telling = [tellingAt + 4 * g, stride, mostExamples] as const;
      const kept = kernels.findTypical(rowsOf(g), group.length, ...matrix, ...telling, ...best);
      return Array.from(items.subarray(0, kept));
    });
    const apart = farthest(drawn, groups, (a, b) =>
      kernels.groupProduct(foundAt, size, sumsAt + 4 * a, sumsAt + 4 * b, stride),
    );
    kernels.clearGroups(foundAt, size, sumsAt, stride);
    return { apart, words, examples };
  };
}

function someOf(rows: number[]): number[] {
  if (rows.length <= enoughRows) return rows;
  return Array.from({ length: enoughRows }, (_, i) => rows[Math.floor((i * rows.length) / enoughRows)]);
}

/**
 * For the two groups that differ most: one minus the mean cosine of pairs across them over that of pairs within
 * them, which is 0 for two random halves of the same rows however few they are; then less where a copy draws few.
 * `groups` are the rows that were compared, some of those drawn; `product` is the sum of the cosines of all pairs.
 */
function farthest(drawn: number[][], groups: number[][], product: (a: number, b: number) => number): number {
  const inner = groups.map((_, g) => product(g, g));
  let most = 0;
  for (let a = 0; a < groups.length; a++) {
    for (let b = 0; b < a; b++) {
      const [n, m] = [groups[a].length, groups[b].length];
      const within = inner[a] - n + inner[b] - m;
      if (Math.min(n, m) === 0 || within <= 0) continue;
      const alike = product(a, b) / (n * m) / (within / (n * (n - 1) + m * (m - 1)));
      const fewer = Math.min(drawn[a].length, drawn[b].length);
      const trust = fewer / (fewer + fewRows);
      most = Math.max(most, trust * Math.min(1, 1 - alike));
    }
  }
  return most;
}
