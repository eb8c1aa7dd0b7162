import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../../math/random.ts';
import { gradients } from '../../nn/gradient.ts';
import { input, type Value } from '../../nn/graph.ts';
import { add, div, exp, matmul, mul, sqrt, sum } from '../../nn/ops.ts';
import { evaluate } from '../../nn/reference.ts';
import { contrastLoss, divergence, labelLoss, logMixture, logPosterior } from './losses.ts';

const seeds = fc.integer();
const normals = (random: Random, count: number, scale = 1) =>
  Float64Array.from({ length: count }, () => scale * random.normal());
const flags = (random: Random, count: number) =>
  Float64Array.from({ length: count }, () => random.integer(2));

/** Gaussians, codes and labels of a random case, with the programs over them. */
function mixtureCase(seed: number, { rows = 3, labels = 4, latent = 2 } = {}) {
  const random = new Random(seed);
  const z = input('z', [rows, latent]);
  const [mean, logVariance] = [input('mean', [labels, latent]), input('variance', [labels, latent])];
  const y = input('y', [rows, labels]);
  const feeds = new Map<Value, Float64Array>([
    [z, normals(random, rows * latent, 2)],
    [mean, normals(random, labels * latent, 2)],
    [logVariance, normals(random, labels * latent)],
    [y, flags(random, rows * labels)],
  ]);
  const at = (value: Value, i: number, j: number) => feeds.get(value)?.[i * value.shape[1] + j] ?? Number.NaN;
  /** As the definition has it, one dimension after the other. */
  const density = (row: number, label: number) => {
    let total = 0;
    for (let d = 0; d < latent; d++) {
      const s = at(logVariance, label, d);
      total -= 0.5 * (s + (at(z, row, d) - at(mean, label, d)) ** 2 / Math.exp(s));
    }
    return total;
  };
  const values = () => evaluate([logMixture(z, { mean, logVariance }, y)], feeds)[0];
  return { z, mean, logVariance, y, feeds, density, values, rows, labels, latent, random };
}

describe('the density of a mixture', () => {
  it('is the mean density of the labels of a row', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const { values, density, feeds, y, rows, labels } = mixtureCase(seed);
        const found = values();
        for (let row = 0; row < rows; row++) {
          const own = Array.from({ length: labels }, (_, label) => label).filter(
            (label) => feeds.get(y)?.[row * labels + label] === 1,
          );
          if (own.length === 0) continue;
          const mean = own.reduce((total, label) => total + Math.exp(density(row, label)), 0) / own.length;
          expect(found[row]).toBeCloseTo(Math.log(mean), 8);
        }
      }),
    );
  });

  it('of one label is that of its Gaussian, also where both are far too small for a number', () => {
    fc.assert(
      fc.property(seeds, fc.constantFrom(1, 100), (seed, distance) => {
        const { values, density, feeds, y, z, rows, labels, random } = mixtureCase(seed);
        feeds.get(z)?.forEach((value, i, all) => {
          all[i] = value * distance;
        });
        const own = Array.from({ length: rows }, () => random.integer(labels));
        feeds.set(
          y,
          Float64Array.from({ length: rows * labels }, (_, i) =>
            Number(own[Math.floor(i / labels)] === i % labels),
          ),
        );
        values().forEach((value, row) => {
          expect(value / density(row, own[row])).toBeCloseTo(1, 8);
        });
      }),
    );
  });

  it('of identical Gaussians is that of one', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const { values, density, feeds, y, mean, logVariance, labels, latent } = mixtureCase(seed);
        for (const value of [mean, logVariance])
          feeds.get(value)?.forEach((_, i, all) => {
            all[i] = all[i % latent];
          });
        feeds.get(y)?.forEach((_, i, all) => {
          if (i % labels === 0) all[i] = 1;
        });
        values().forEach((value, row) => {
          expect(value).toBeCloseTo(density(row, 0), 8);
        });
      }),
    );
  });

  it('of a row without labels is finite and moves nothing', () => {
    const { z, mean, logVariance, feeds, y } = mixtureCase(1);
    feeds.get(y)?.fill(0);
    const density = sum(mul(logMixture(z, { mean, logVariance }, y), 0));
    const found = evaluate([density, ...gradients(density, [z, mean, logVariance])], feeds);
    expect(Math.abs(found[0][0])).toBe(0);
    for (const slope of found.slice(1)) for (const number of slope) expect(Math.abs(number)).toBe(0);
  });
});

describe('the divergence', () => {
  it('estimated from draws has the closed form as its mean, where there is one label', () => {
    const [draws, latent] = [20_000, 8];
    const random = new Random(5, 'draws');
    const [q, p] = ['q', 'p'].map((name) => ({
      mean: input(`${name} mean`, [1, latent]),
      logVariance: input(`${name} variance`, [1, latent]),
    }));
    const noise = input('noise', [draws, latent]);
    const y = input('y', [draws, 1]);
    const feeds = new Map<Value, Float64Array>(
      [q.mean, q.logVariance, p.mean, p.logVariance].map((value) => [value, normals(random, latent, 0.7)]),
    );
    feeds.set(noise, normals(random, draws * latent));
    feeds.set(y, new Float64Array(draws).fill(1));
    const z = add(q.mean, mul(exp(mul(q.logVariance, 0.5)), noise));
    const [own, prior, [closed]] = evaluate(
      [logPosterior(q, noise), logMixture(z, p, y), divergence(q, p)],
      feeds,
    );
    const estimates = own.map((value, i) => value - prior[i]);
    const mean = estimates.reduce((total, value) => total + value, 0) / draws;
    const variance = estimates.reduce((total, value) => total + (value - mean) ** 2, 0) / (draws - 1);
    expect(closed).toBeGreaterThan(1);
    expect(Math.abs(mean - closed)).toBeLessThan(3 * Math.sqrt(variance / draws));
    // One draw says less than the whole: it may even be negative.
    expect(Math.min(...estimates)).toBeLessThan(0);
  });

  it('of a Gaussian from itself is zero, and from another depends on the side', () => {
    const gaussian = (name: string) => ({
      mean: input(name, [1, 3]),
      logVariance: input(`${name}'`, [1, 3]),
    });
    const [a, b] = [gaussian('a'), gaussian('b')];
    const random = new Random(3);
    const feeds = new Map(
      [a, b]
        .flatMap(({ mean, logVariance }) => [mean, logVariance])
        .map((value) => [value, normals(random, 3)]),
    );
    const [self, there, back] = evaluate([divergence(a, a), divergence(a, b), divergence(b, a)], feeds);
    expect(self[0]).toBeCloseTo(0, 12);
    expect(there[0]).toBeGreaterThan(0);
    expect(Math.abs(there[0] - back[0])).toBeGreaterThan(1e-3);
  });
});

describe('the likelihood of labels', () => {
  it('is the cross-entropy of each, also for logits of any size', () => {
    const logits = input('logits', [2, 2]);
    const y = input('y', [2, 2]);
    const feeds = new Map([
      [logits, [0.3, -2, 500, -500]],
      [y, [1, 0, 0, 1]],
    ]);
    const [[first, second]] = evaluate([labelLoss(logits, y)], feeds);
    expect(first).toBeCloseTo(Math.log(1 + Math.exp(-0.3)) + Math.log(1 + Math.exp(-2)), 10);
    expect(second).toBeCloseTo(1000, 6);
  });
});

describe('the contrastive loss', () => {
  const contrastOf = (logits: number[], y: number[]) => {
    const [a, b] = [input('logits', [1, logits.length]), input('y', [1, y.length])];
    return evaluate(
      [contrastLoss(a, b)],
      new Map([
        [a, logits],
        [b, y],
      ]),
    )[0][0];
  };

  it('is ln L where all labels are true and all logits equal', () => {
    expect(contrastOf([2, 2, 2, 2, 2], [1, 1, 1, 1, 1])).toBeCloseTo(Math.log(5), 10);
  });

  it('does not change when all logits rise alike', () => {
    fc.assert(
      fc.property(seeds, fc.double({ min: -50, max: 50, noNaN: true }), (seed, constant) => {
        const random = new Random(seed);
        const [logits, y] = [normals(random, 6), [1, ...flags(random, 5)]];
        expect(contrastOf([...logits.map((logit) => logit + constant)], y)).toBeCloseTo(
          contrastOf([...logits], y),
          8,
        );
      }),
    );
  });

  it('pulls an embedding as the paper derives: towards its labels, away from what it looks like', () => {
    fc.assert(
      fc.property(seeds, fc.constantFrom(0.5, 1, 2), (seed, temperature) => {
        const [labels, size] = [5, 4];
        const random = new Random(seed);
        const [w, v, y] = [input('w', [1, size]), input('v', [labels, size]), input('y', [1, labels])];
        const numbers = {
          w: normals(random, size),
          v: normals(random, labels * size),
          y: [1, ...flags(random, 4)],
        };
        const unit = div(w, sqrt(sum(mul(w, w), [1], true)));
        const loss = sum(contrastLoss(div(matmul(unit, v, { b: true }), temperature), y));
        const feeds = new Map<Value, ArrayLike<number>>([
          [w, numbers.w],
          [v, numbers.v],
          [y, numbers.y],
        ]);
        const [found] = evaluate(gradients(loss, [w]), feeds);
        const length = Math.hypot(...numbers.w);
        const direction = numbers.w.map((x) => x / length);
        const row = (t: number) => numbers.v.subarray(t * size, (t + 1) * size);
        const dot = (a: ArrayLike<number>, b: Float64Array) => b.reduce((total, x, i) => total + x * a[i], 0);
        const scores = Array.from({ length: labels }, (_, t) =>
          Math.exp(dot(direction, row(t)) / temperature),
        );
        const total = scores.reduce((a, b) => a + b);
        const positives = numbers.y.reduce((a, b) => a + b);
        const pull = new Float64Array(size);
        for (let t = 0; t < labels; t++)
          row(t).forEach((x, i) => {
            pull[i] += x * (scores[t] / total - numbers.y[t] / positives);
          });
        const along = dot(direction, pull);
        pull.forEach((x, i) => {
          expect(found[i]).toBeCloseTo((x - along * direction[i]) / (temperature * length), 8);
        });
      }),
    );
  });
});
