// Labels for a PRIME that is already trained: their prototypes are made of their text and of what samples they are given,
// with nothing learned anew.
import { badUsage } from '../../errors.ts';
import { type Dense, denseRow, unitDenseRows } from '../../math/dense.ts';
import { input } from '../../nn/graph.ts';
import { encodeModel } from '../../nn/onnx.ts';
import { Session } from '../../nn/session.ts';
import { exactSearch } from '../../search/exact.ts';
import { type Embedder, weightsOf } from '../encode/embedder.ts';
import type { NewLabel } from '../learner.ts';
import type { PrimeParts } from './model.ts';
import { buildPrime } from './network.ts';

/** The parts of the same model with further labels. */
export async function addLabels(
  parts: PrimeParts,
  labels: readonly NewLabel[],
  embedder: Embedder,
): Promise<PrimeParts> {
  const { shape, vectors, known, prototypes } = parts;
  for (const { text, examples } of labels)
    if (text === undefined && (examples.length === 0 || !prototypes))
      throw badUsage('a new label must have a text', { value: 'none' });
  const { width } = shape;
  const texts = await embedder.embed(labels.map(({ text }) => text ?? ''));
  const centroids = await Promise.all(
    labels.map(async ({ examples }, i) =>
      examples.length > 0 ? meanOf(await embedder.embed(examples)) : denseRow(texts, i),
    ),
  );
  const start = known.length;
  const grown = {
    ...parts,
    vectors: extended(vectors, labels.length * width),
    known: extended(known, labels.length).fill(1, start),
  };
  if (!prototypes) {
    grown.vectors.set(texts.values, start * width);
    return grown;
  }
  const places = extended(prototypes.places, labels.length);
  const nearest = await exactSearch({ rows: start, cols: width, values: vectors });
  const network = await openPrototypes(parts);
  try {
    for (const [i, { text }] of labels.entries()) {
      const own = text === undefined ? centroids[i] : denseRow(texts, i);
      const [alike] = (await nearest.search(asRow(own), { top: 1 })).indices;
      places[start + i] = prototypes.places[alike];
      const at = prototypes.places[alike] * width;
      const { vectors: made } = await network.run({
        texts: own,
        centroids: centroids[i],
        'has text': Float32Array.of(text === undefined ? 0 : 1),
        free: prototypes.free.slice(at, at + width),
      });
      grown.vectors.set(made as Float32Array, (start + i) * width);
    }
  } finally {
    await network.close();
  }
  const all = extended(prototypes.centroids, labels.length * width);
  centroids.forEach((centroid, i) => {
    all.set(centroid, (start + i) * width);
  });
  return { ...grown, prototypes: { ...prototypes, places, centroids: all } };
}

/** The parts of the same model with these labels alone. */
export function keepLabels(parts: PrimeParts, columns: Uint32Array): PrimeParts {
  const { width } = parts.shape;
  const rows = (values: Float32Array) => {
    const kept = new Float32Array(columns.length * width);
    columns.forEach((column, i) => {
      kept.set(values.subarray(column * width, (column + 1) * width), i * width);
    });
    return kept;
  };
  const { prototypes } = parts;
  return {
    ...parts,
    vectors: rows(parts.vectors),
    known: Uint8Array.from(columns, (column) => parts.known[column]),
    prototypes: prototypes && {
      free: prototypes.free,
      centroids: rows(prototypes.centroids),
      places: columns.map((column) => prototypes.places[column]),
    },
  };
}

/** The program that makes one prototype. */
function openPrototypes({ shape, make, weights, threads }: PrimeParts): Promise<Session> {
  const net = buildPrime(shape, make ?? undefined);
  const free = make?.free ? input('free', [1, shape.width]) : undefined;
  const vectors = net.prototype(input('texts', [1, shape.width]), free);
  return Session.open(encodeModel({ vectors }, weightsOf(net.ofPrototypes.values, weights)), { threads });
}

const asRow = (values: Float32Array): Dense => ({ rows: 1, cols: values.length, values });

function meanOf({ rows, cols, values }: Dense): Float32Array {
  const mean = new Float32Array(cols);
  for (let i = 0; i < rows * cols; i++) mean[i % cols] += values[i] / rows;
  return unitDenseRows(asRow(mean)).values;
}

function extended<T extends Float32Array | Uint32Array | Uint8Array>(array: T, more: number): T {
  const longer = new (array.constructor as new (length: number) => T)(array.length + more);
  longer.set(array);
  return longer;
}
