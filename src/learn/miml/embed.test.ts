import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CsrBuilder, type Pattern } from '../../math/csr.ts';
import { type Dense, denseRow, unitDenseRows } from '../../math/dense.ts';
import { Random } from '../../math/random.ts';
import { joinFeatures } from '../features.ts';
import { labelDirection } from '../impute/reference.ts';
import { labelEmbeddings } from './embed.ts';

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);

function randomRows(rows: number, cols: number, seed: number): Dense {
  const random = new Random(seed);
  return unitDenseRows({
    rows,
    cols,
    values: Float32Array.from({ length: rows * cols }, () => random.normal()),
  });
}

/** Bags of `size` rows in order, with a few labels each, some of them twice. */
function randomBags(rows: number, size: number, labels: number, seed: number) {
  const random = new Random(seed, 'bags');
  const [members, carried] = [new CsrBuilder('binary'), new CsrBuilder('values')];
  for (let first = 0; first < rows; first += size) {
    members.add(Array.from({ length: Math.min(size, rows - first) }, (_, i) => first + i));
    const own = [...new Set([random.integer(labels), random.integer(labels)])].sort((a, b) => a - b);
    carried.add(
      own,
      own.map(() => 1 + random.integer(2)),
    );
  }
  return { members: members.pattern(rows), labels: carried.csr(labels) };
}

const cosine = (a: ArrayLike<number>, b: ArrayLike<number>) => {
  const dot = (x: ArrayLike<number>, y: ArrayLike<number>) =>
    Array.from(x, (v, i) => v * y[i]).reduce((p, q) => p + q, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
};

const options = { step: 0.1, seed: 1, runtime: { threads: 1 } };
const embed = (
  x: Dense,
  members: Pattern,
  labels: Parameters<typeof labelEmbeddings>[2],
  iterations: number,
) => labelEmbeddings(x, members, labels, { ...options, iterations });

describe.runIf(runtime)('label embeddings', () => {
  it('are the directions of GRLR', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.constantFrom(0, 1, 7),
        fc.constantFrom(1, 3),
        async (seed, iterations, size) => {
          const x = randomRows(18, 5, seed);
          const groups = randomBags(18, size, 4, seed);
          const found = await embed(x, groups.members, groups.labels, iterations);
          const settings = {
            ...options,
            iterations,
            centre: false,
            weightByCount: true,
            assign: 'best' as const,
          };
          for (let label = 0; label < 4; label++) {
            const { direction } = labelDirection(joinFeatures({ dense: x }), groups, label, settings, 1);
            const own = denseRow(found, label);
            if (direction.every((value) => value === 0))
              expect([...own].every((value) => value === 0)).toBe(true);
            else expect(cosine(own, direction)).toBeGreaterThan(1 - 1e-4);
          }
        },
      ),
      { numRuns: 25 },
    );
  });

  it('find the direction where a point and its opposite share every bag', async () => {
    const point = randomRows(1, 6, 3).values;
    const values = Float32Array.from({ length: 5 * 12 }, (_, i) => (i % 12 < 6 ? 1 : -1) * point[i % 6]);
    const groups = randomBags(10, 2, 1, 1);
    const found = await embed({ rows: 10, cols: 6, values }, groups.members, groups.labels, 20);
    expect(Math.abs(cosine(found.values, point))).toBeGreaterThan(0.9);
  });
});
