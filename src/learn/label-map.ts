// How alike labels are to a model that gives each a place: cosines of all pairs, in an order that puts like beside like.
import type { Vocabulary } from '../data/vocabulary.ts';
import { type Dense, denseRow, unitDenseRows } from '../math/dense.ts';
import { topK } from '../math/topk.ts';

export interface LabelMap {
  labels: { label: string; name: string; samples: number; group?: string }[];
  /** labels x labels: cosines, and 0 for a label and itself. */
  similarities: Dense;
  /** Mean cosine of labels with the same broader label, and of all others; where the labels have broader ones. */
  groups?: { within: number; between: number };
}

interface Known {
  /** The columns that have a place, and the places. */
  labels: Uint32Array;
  vectors: Dense;
  vocabulary: Vocabulary;
  /** Training rows with each label. */
  counts: Uint32Array;
}

/** The most frequent labels: those with the same broader label together, each beside the one most like it. */
export function mapLabels({ labels, vectors, vocabulary, counts }: Known, top: number): LabelMap {
  const frequent = topK(
    Array.from(labels, (column) => counts[column]),
    top,
  );
  const cosines = allCosines(vectors, frequent);
  const groups = Array.from(frequent, (place) => vocabulary.label(labels[place]).parents?.[0]);
  const order = arrange(cosines, groups);
  const similarities = new Float32Array(order.length ** 2);
  order.forEach((a, i) => {
    order.forEach((b, j) => {
      similarities[i * order.length + j] = a === b ? 0 : cosines[a][b];
    });
  });
  return {
    labels: order.map((i) => {
      const column = labels[frequent[i]];
      const group = groups[i];
      const { id } = vocabulary.label(column);
      return {
        label: id,
        name: vocabulary.name(column),
        samples: counts[column],
        ...(group !== undefined && { group }),
      };
    }),
    similarities: { rows: order.length, cols: order.length, values: similarities },
    ...(groups.some((group) => group !== undefined) && { groups: groupMeans(cosines, groups) }),
  };
}

function allCosines(vectors: Dense, places: Uint32Array): Float64Array[] {
  const unit = unitDenseRows(vectors);
  return Array.from(places, (a) =>
    Float64Array.from(places, (b) => {
      const [x, y] = [denseRow(unit, a), denseRow(unit, b)];
      let sum = 0;
      for (let i = 0; i < x.length; i++) sum += x[i] * y[i];
      return sum;
    }),
  );
}

/** From the first label on, always the one most like the last, of its group as long as there is one. */
function arrange(cosines: readonly Float64Array[], groups: readonly (string | undefined)[]): number[] {
  const rest = new Set(cosines.keys());
  const order: number[] = [];
  while (rest.size > 0) {
    const last = order.at(-1) ?? 0;
    const own = [...rest].filter((i) => groups[i] === groups[last]);
    const choice = own.length > 0 ? own : [...rest];
    const next =
      order.length === 0 ? 0 : choice.reduce((a, b) => (cosines[last][b] > cosines[last][a] ? b : a));
    order.push(next);
    rest.delete(next);
  }
  return order;
}

function groupMeans(cosines: readonly Float64Array[], groups: readonly (string | undefined)[]) {
  const sums = { within: [0, 0], between: [0, 0] };
  cosines.forEach((row, a) => {
    row.forEach((cosine, b) => {
      if (a === b || groups[a] === undefined || groups[b] === undefined) return;
      const side = sums[groups[a] === groups[b] ? 'within' : 'between'];
      side[0] += cosine;
      side[1]++;
    });
  });
  const mean = ([total, count]: number[]) => (count === 0 ? 0 : total / count);
  return { within: mean(sums.within), between: mean(sums.between) };
}
