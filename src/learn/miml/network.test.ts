import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Pattern, rowIndices } from '../../math/csr.ts';
import { denseRow } from '../../math/dense.ts';
import { Random } from '../../math/random.ts';
import { input, type Value } from '../../nn/graph.ts';
import { evaluate } from '../../nn/reference.ts';
import { bagScore, chances, drawBatches, feeder, layoutsOf } from './bags.ts';
import {
  bagScores,
  coAttention,
  type Head,
  initialParameters,
  instanceScores,
  lossOf,
  makeNetwork,
  similarities,
} from './network.ts';

const shape = { width: 3, hidden: 4, concepts: 2, labels: 3 };

/** Bags of these sizes over random instances, and a network for them. */
function drawn(sizes: number[], seed: number, head: Head = 'softmax') {
  const random = new Random(seed);
  const normals = (size: number) => Float32Array.from({ length: size }, () => random.normal());
  const rows = sizes.reduce((sum, size) => sum + size, 0);
  const x = { rows, cols: shape.width, values: normals(rows * shape.width) };
  const indptr = Uint32Array.from([
    0,
    ...sizes.map((_, i) => sizes.slice(0, i + 1).reduce((a, b) => a + b, 0)),
  ]);
  const bags: Pattern = {
    rows: sizes.length,
    cols: rows,
    indptr,
    indices: Uint32Array.from(random.permutation(rows)),
  };
  const net = makeNetwork(shape, head);
  const weights = new Map([...initialParameters(net, seed), [net.embeddings, normals(9)]] as [
    Value,
    Float32Array,
  ][]);
  return { x, bags, net, weights };
}

type Drawn = ReturnType<typeof drawn>;

/** The program over bags laid out side by side. */
function graphScores({ x, bags, net, weights }: Drawn, tau: number, size: number) {
  const layout = { size, count: bags.rows };
  const labels = {
    rows: bags.rows,
    cols: 3,
    indptr: new Uint32Array(bags.rows + 1),
    indices: new Uint32Array(0),
  };
  const feeds = feeder(
    { x, bags, labels: { ...labels, values: new Float32Array(0) } },
    layout,
    net.head,
  )([...Array(bags.rows).keys()]);
  const [rows, valid] = [input('x', [bags.rows * size, 3]), input('valid', [bags.rows, size])];
  const mask = coAttention(similarities(net, rows), valid, tau);
  const scores = instanceScores(net, rows, 0);
  const given = new Map<Value, ArrayLike<number>>([
    ...weights,
    [rows, feeds.x as Float32Array],
    [valid, feeds.valid as Float32Array],
  ]);
  const [bag, masks, single] = evaluate([bagScores(scores, mask), mask, scores], given);
  return { bag: Array.from(bag), masks: Array.from(masks), single: Array.from(single) };
}

const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 });
const tau = fc.constantFrom(0.5, 3, 20);
const closeTo = (found: ArrayLike<number>, expected: ArrayLike<number>) => {
  expect(found.length).toBe(expected.length);
  for (let i = 0; i < found.length; i++) expect(found[i]).toBeCloseTo(expected[i], 4);
};

describe('the network of bags', () => {
  it('without attention scores a bag by the best of its instances, whatever fills it up', () => {
    fc.assert(
      fc.property(sizes, fc.integer(), (sizes, seed) => {
        const set = drawn(sizes, seed);
        const { bag, single } = graphScores(set, 0, 5);
        const best = sizes.flatMap((size, b) =>
          [0, 1, 2].map((label) =>
            Math.max(...Array.from({ length: size }, (_, i) => single[(b * 5 + i) * 3 + label])),
          ),
        );
        closeTo(bag, best);
      }),
      { numRuns: 30 },
    );
  });

  it('counts the instances of a bag as many as they are in all, for every label', () => {
    fc.assert(
      fc.property(sizes, tau, fc.integer(), (sizes, tau, seed) => {
        const { masks } = graphScores(drawn(sizes, seed), tau, 4);
        sizes.forEach((size, b) => {
          for (let label = 0; label < 3; label++) {
            const column = [0, 1, 2, 3].map((i) => masks[(b * 4 + i) * 3 + label]);
            expect(column.reduce((sum, value) => sum + value, 0)).toBeCloseTo(size, 4);
            expect(column.slice(size).every((value) => value === 0)).toBe(true);
          }
        });
      }),
      { numRuns: 30 },
    );
  });

  it('is the same for a bag of one, however sharply it attends', () => {
    fc.assert(
      fc.property(tau, fc.integer(), (tau, seed) => {
        const set = drawn([1, 1, 1], seed);
        closeTo(graphScores(set, tau, 2).bag, graphScores(set, 0, 2).bag);
      }),
      { numRuns: 20 },
    );
  });

  it('does not mind the order of instances, nor the room around them', () => {
    fc.assert(
      fc.property(
        sizes,
        tau,
        fc.integer(),
        fc.constantFrom<Head>('softmax', 'bce-softmax'),
        (sizes, tau, seed, head) => {
          const set = drawn(sizes, seed, head);
          const turned = set.bags.indices.slice();
          for (let bag = 0; bag < set.bags.rows; bag++)
            turned.subarray(set.bags.indptr[bag], set.bags.indptr[bag + 1]).reverse();
          const other = { ...set, bags: { ...set.bags, indices: turned } };
          closeTo(graphScores(other, tau, 6).bag, graphScores(set, tau, 4).bag);
        },
      ),
      { numRuns: 20 },
    );
  });

  it('scores bags alike in a program and outside of one', () => {
    fc.assert(
      fc.property(sizes, fc.constantFrom(0, 0.5, 20), fc.integer(), (sizes, tau, seed) => {
        const set = drawn(sizes, seed);
        const rows = input('x', [set.x.rows, 3]);
        const outputs = [instanceScores(set.net, rows, 0), similarities(set.net, rows)];
        const given = new Map<Value, ArrayLike<number>>([...set.weights, [rows, set.x.values]]);
        const [scores, cosines] = evaluate(outputs, given).map((list) => Float32Array.from(list));
        const found = sizes.flatMap((_, bag) => [
          ...bagScore({ scores, similarities: cosines }, rowIndices(set.bags, bag), 3, tau),
        ]);
        closeTo(found, graphScores(set, tau, 4).bag);
      }),
      { numRuns: 30 },
    );
  });

  it.each<[Head, number[][], number]>([
    // -(.75 log softmax_0 + .25 log softmax_2) of scores 2, 1, 0; the second bag does not count.
    [
      'softmax',
      [
        [0.75, 0, 0.25],
        [0, 1, 0],
      ],
      0.90760596,
    ],
    // Log chances of .9 for a label it has and of .8 and .5 against those it has not.
    [
      'bce-softmax',
      [
        [1, 0, 0],
        [0, 1, 0],
      ],
      1.02165125,
    ],
  ])('is held against what bags carry: %s', (head, targets, expected) => {
    const scores = head === 'softmax' ? [2, 1, 0, 5, 5, 5] : [0.9, 0.2, 0.5, 1, 0, 0];
    const [s, t, w] = [input('s', [2, 3]), input('t', [2, 3]), input('w', [2])];
    const given = new Map([
      [s, scores],
      [t, targets.flat()],
      [w, [1, 0]],
    ]);
    expect(evaluate([lossOf(head, s, t, w)], given)[0][0]).toBeCloseTo(expected, 5);
  });
});

describe('bags', () => {
  it('are all in one batch of an epoch, in a layout they fit in', () => {
    const many = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(many, fc.integer({ min: 1, max: 8 }), fc.integer(), (sizes, batch, seed) => {
        const { bags } = drawn(sizes, 1);
        const layouts = layoutsOf(bags, batch);
        const batches = drawBatches(bags, layouts, seed);
        expect(batches.flatMap((batch) => batch.bags).sort((a, b) => a - b)).toEqual([...sizes.keys()]);
        for (const { layout, bags: own } of batches) {
          expect(own.length).toBeLessThanOrEqual(layouts[layout].count);
          expect(Math.max(...own.map((bag) => sizes[bag]))).toBeLessThanOrEqual(layouts[layout].size);
        }
      }),
    );
  });

  it('of one size waste no room', () => {
    expect(layoutsOf(drawn([4, 4, 4, 4, 4], 1).bags, 2)).toEqual([{ size: 4, count: 2 }]);
  });

  it('are fed with their own instances and the share of each label', () => {
    const { x, bags } = drawn([2, 1], 1);
    const labels = {
      rows: 2,
      cols: 3,
      indptr: Uint32Array.of(0, 2, 3),
      indices: Uint32Array.of(0, 2, 1),
      values: Float32Array.of(3, 1, 2),
    };
    const feeds = feeder({ x, bags, labels }, { size: 2, count: 2 }, 'softmax')([1]);
    const [instance] = rowIndices(bags, 1);
    expect([...(feeds.x as Float32Array)]).toEqual([...denseRow(x, instance), ...Array(9).fill(0)]);
    expect(feeds).toMatchObject({
      valid: Float32Array.of(1, 0, 0, 0),
      targets: Float32Array.of(0, 1, 0, 0, 0, 0),
      weights: Float32Array.of(1, 0),
    });
    expect(feeder({ x, bags, labels }, { size: 2, count: 1 }, 'softmax')([0]).targets).toEqual(
      Float32Array.of(0.75, 0, 0.25),
    );
  });

  it('give chances that sum to one over the labels seen in training', () => {
    const [a, b, c] = chances('softmax', Float32Array.of(800, 801, 900), Uint8Array.of(1, 1, 0));
    expect(a + b).toBeCloseTo(1, 5);
    expect([b > a, c]).toEqual([true, 0]);
  });
});
