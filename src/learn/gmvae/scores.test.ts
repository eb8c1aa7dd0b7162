import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { metricValue } from '../../judge/metric.ts';
import { rankingMetrics } from '../../judge/ranking.ts';
import { grids, sweep } from '../../judge/thresholds.ts';
import { CsrBuilder } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { topK } from '../../math/topk.ts';
import { validationScores } from './scores.ts';

describe('validation scores', () => {
  it('are what the judge finds at the best threshold of each', () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 6 }),
        (seed, rows, labels) => {
          const random = new Random(seed);
          // Tenths lie on the thresholds.
          const probabilities = Float32Array.from(
            { length: rows * labels },
            () => (1 + random.integer(99)) / 100,
          );
          const [truth, ranking] = [new CsrBuilder('binary'), new CsrBuilder('values')];
          for (let row = 0; row < rows; row++) {
            truth.add(
              Array.from({ length: labels }, (_, label) => label).filter(() => random.integer(3) === 0),
            );
            const own = probabilities.subarray(row * labels, (row + 1) * labels);
            const order = topK(own, labels);
            ranking.add(
              order,
              Array.from(order, (label) => own[label]),
            );
          }
          const [predicted, wanted] = [ranking.csr(labels), truth.pattern(labels)];
          const judged = sweep(predicted, wanted, grids.cgmvae);
          const found = validationScores(probabilities, wanted);
          for (const name of ['macroF1', 'microF1', 'exampleF1', 'hammingAccuracy'] as const)
            expect(found[name]).toBeCloseTo(Math.max(...judged[name]), 12);
          const [first] = rankingMetrics(predicted, wanted, {
            ks: [1],
            weights: new Float64Array(labels).fill(1),
          });
          expect(first.name).toBe('P@1');
          expect(found['P@1']).toBeCloseTo(metricValue(first), 12);
        },
      ),
    );
  });
});
