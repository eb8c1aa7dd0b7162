import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../math/random.ts';
import { Adam, type AdamOptions, type Update } from './adam.ts';

const normals = (size: number, ...key: (number | string)[]): Float32Array => {
  const random = new Random(...key);
  return Float32Array.from({ length: size }, () => random.normal());
};

interface Moments {
  numbers: number[];
  first: number[];
  second: number[];
}

/** The textbook's Adam and AdamW, one number at a time. */
function plainStep(
  { numbers, first, second }: Moments,
  gradients: ArrayLike<number>,
  rate: number,
  step: number,
  { decay = 0, l2 = 0, rate: factor = 1 }: Update,
  { beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8 }: AdamOptions,
): void {
  for (let i = 0; i < numbers.length; i++) {
    const gradient = gradients[i] + l2 * numbers[i];
    first[i] = beta1 * first[i] + (1 - beta1) * gradient;
    second[i] = beta2 * second[i] + (1 - beta2) * gradient ** 2;
    const mean = first[i] / (1 - beta1 ** step);
    const square = second[i] / (1 - beta2 ** step);
    numbers[i] -= rate * factor * (decay * numbers[i] + mean / (Math.sqrt(square) + epsilon));
  }
}

const fresh = (numbers: ArrayLike<number>): Moments => ({
  numbers: Array.from(numbers),
  first: Array.from(numbers, () => 0),
  second: Array.from(numbers, () => 0),
});

function expectClose(found: ArrayLike<number>, expected: ArrayLike<number>) {
  for (let i = 0; i < expected.length; i++) expect(found[i]).toBeCloseTo(expected[i], 4);
}

const between = (min: number, max: number) => fc.double({ min, max, noNaN: true });
const update = fc.record({ decay: between(0, 0.1), l2: between(0, 0.1), rate: between(0.1, 2) });
const options = fc.record({
  beta1: between(0.5, 0.95),
  beta2: between(0.9, 0.999),
  epsilon: between(1e-8, 1e-3),
});

describe('Adam', () => {
  it('moves the parameters of each group as the textbook says', async () => {
    const property = fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 11 }), { minLength: 1, maxLength: 4 }),
      update,
      update,
      options,
      async (sizes, one, two, how) => {
        const blocks = sizes.map((size, i) => ({
          name: `p${i}`,
          shape: [size],
          initial: normals(size, 'start', i),
        }));
        const groups = [
          { ...one, blocks: blocks.slice(0, 1) },
          { ...two, blocks: blocks.slice(1) },
        ];
        const adam = await Adam.create(groups, [], how);
        const plain = blocks.map(({ initial }) => fresh(initial));
        for (let step = 1; step <= 3; step++) {
          blocks.forEach(({ name }, i) => {
            const gradients = normals(sizes[i], 'gradient', i, step);
            adam.gradients(name).set(gradients);
            plainStep(plain[i], gradients, 0.01, step, i === 0 ? one : two, how);
          });
          adam.update(0.01, []);
        }
        blocks.forEach(({ name }, i) => {
          expectClose(adam.parameters(name), plain[i].numbers);
        });
      },
    );
    await fc.assert(property, { numRuns: 25 });
  });

  it('scales gradients that are longer than allowed together, and only those', async () => {
    const start = { shape: [5], initial: normals(5, 'start') };
    const gradients = Float32Array.of(3, 0, 0, 0, 4);
    for (const maxNorm of [1, 100]) {
      const adam = await Adam.create([{ blocks: [{ name: 'p', ...start }] }], [], { maxNorm, epsilon: 1 });
      adam.gradients('p').set(gradients);
      adam.update(0.1, []);
      const plain = fresh(start.initial);
      plainStep(
        plain,
        gradients.map((number) => number * Math.min(1, maxNorm / 5)),
        0.1,
        1,
        {},
        { epsilon: 1 },
      );
      expectClose(adam.parameters('p'), plain.numbers);
    }
  });

  it('refuses gradients that are not finite', async () => {
    const adam = await Adam.create(
      [{ blocks: [{ name: 'p', shape: [1], initial: Float32Array.of(1) }] }],
      [],
      { maxNorm: 1 },
    );
    adam.gradients('p').set([Number.NaN]);
    expect(() => adam.update(0.1, [])).toThrow('gradients must be finite at step 1, got NaN');
    expect(adam.parameters('p')[0]).toBe(1);
  });

  it('touches only the rows of a table that a step was given', async () => {
    const property = fc.asyncProperty(fc.integer({ min: 1, max: 9 }), update, async (width, how) => {
      const initial = normals(6 * width, 'table');
      const adam = await Adam.create([], [{ name: 'table', width, initial, ...how }], {});
      const rows = adam.reserveRows('table', 2);
      const plain = Array.from({ length: 6 }, (_, row) =>
        fresh(initial.subarray(row * width, (row + 1) * width)),
      );
      for (const [at, numbers] of [
        [4, 1],
        [1, 5],
      ].entries()) {
        adam.gather(rows, Uint32Array.from(numbers));
        numbers.forEach((row, i) => {
          expectClose(
            adam.view(rows.values, 2 * width).subarray(i * width, (i + 1) * width),
            plain[row].numbers,
          );
          const gradients = normals(width, 'gradient', at, i);
          adam.view(rows.gradients, 2 * width).set(gradients, i * width);
          plainStep(plain[row], gradients, 0.1, at + 1, how, {});
        });
        adam.update(0.1, [rows]);
      }
      expectClose(
        adam.parameters('table'),
        plain.flatMap(({ numbers }) => numbers),
      );
    });
    await fc.assert(property, { numRuns: 15 });
  });

  it('refuses rows that are missing, too many, unknown or given twice', async () => {
    const adam = await Adam.create([], [{ name: 'bank', width: 2, initial: new Float32Array(8) }], {});
    const rows = adam.reserveRows('bank', 2);
    expect(() => adam.gather(rows, undefined)).toThrow('a step must be given 2 rows of bank, got "none"');
    expect(() => adam.gather(rows, Uint32Array.of(0, 4))).toThrow('rows of bank must be below 4, got 4');
    expect(() => adam.gather(rows, Uint32Array.of(3, 3))).toThrow('rows of bank must differ, got 3');
    expect(() => adam.reserveRows('blank', 1)).toThrow('unknown table, got "blank"');
  });

  it('refuses what does not fit', async () => {
    const block = (name: string, size: number) => ({ name, shape: [2, 2], initial: new Float32Array(size) });
    const create = (...blocks: ReturnType<typeof block>[]) => Adam.create([{ blocks }], [], {});
    await expect(create(block('w', 3))).rejects.toThrow('w must start with 4 numbers, got 3');
    await expect(create(block('w', 4), block('w', 4))).rejects.toThrow(
      'names of parameters must differ, got "w"',
    );
    const adam = await create(block('w', 4));
    expect(() => adam.restore({})).toThrow('a checkpoint must hold 4 numbers as w, got "none"');
  });

  it('draws masks of the rate asked for, the same from the same seeds', async () => {
    const adam = await Adam.create([], [], {});
    const size = 10_003;
    const at = adam.reserve(size + 1);
    const draw = (rate: number, ...seeds: [number, number, number]) => {
      adam.view(at, size + 1).fill(7);
      adam.drawMask(at, size, rate, seeds);
      return adam.view(at, size + 1).slice();
    };
    for (const rate of [0.1, 0.5, 0.8]) {
      const mask = draw(rate, 1, 2, 3);
      expect(mask[size]).toBe(7);
      expect(new Set(mask.subarray(0, size))).toEqual(new Set([0, Math.fround(1 / (1 - rate))]));
      const zeros = mask.reduce((count, number) => count + Number(number === 0), 0);
      expect(Math.abs(zeros / size - rate)).toBeLessThan(0.03);
      expect(draw(rate, 1, 2, 3)).toEqual(mask);
      expect(draw(rate, 1, 2, 4)).not.toEqual(mask);
    }
  });
});
