import { describe, expect, it } from 'vitest';
import { Random } from '../../math/random.ts';
import { sizeOf, type Value } from '../../nn/graph.ts';
import { encodeModel, inputsOf } from '../../nn/onnx.ts';
import { Session } from '../../nn/session.ts';
import { parseOptions } from '../../options.ts';
import { makeNetwork, type Network, predict } from './net.ts';
import { objectiveOf } from './objective.ts';
import { options, settle } from './options.ts';

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);

/** The numbers of these values; the runtime's, because networks of full width take the reference seconds. */
async function compute(
  values: Record<string, Value>,
  numbersOf: (value: Value) => ArrayLike<number>,
): Promise<Record<string, Float32Array>> {
  const session = await Session.open(encodeModel(values), { threads: 1 });
  const feeds = inputsOf(Object.values(values)).map((value) => [
    value.name,
    Float32Array.from(numbersOf(value)),
  ]);
  const results = await session.run(Object.fromEntries(feeds));
  await session.close();
  return results as Record<string, Float32Array>;
}

const sizes = { features: 3, labels: 4 };
const plainest = { embedding: 5, latent: 2, dropout: 0, decoderDropout: 0, labelBias: false };
const networkOf = (given: Record<string, unknown>, shares?: number[]) =>
  makeNetwork({ ...sizes, shares }, settle(parseOptions(options, { ...plainest, ...given })), 1);

interface Row {
  x: number[];
  y: number[];
}
const rowsOf = (count: number): Row[] => {
  const random = new Random(2, 'rows');
  return Array.from({ length: count }, () => ({
    x: Array.from({ length: sizes.features }, () => random.normal()),
    y: [1, random.integer(2), random.integer(2), 0],
  }));
};

/** Loss and terms of these rows in a batch of a size; noise by place, alike for batches of any size. */
async function lossesOf(
  net: Network,
  rows: Row[],
  size = rows.length,
  zeroed: string[] = [],
): Promise<Record<string, number>> {
  const { loss, terms } = objectiveOf(net, size);
  const labelled = rows.filter(({ y }) => y.includes(1)).length;
  const filled = (columns: number, numbers: number[]) => {
    const all = new Float64Array(size * columns);
    all.set(numbers);
    return all;
  };
  const data: Record<string, ArrayLike<number>> = {
    x: filled(
      sizes.features,
      rows.flatMap(({ x }) => x),
    ),
    y: filled(
      sizes.labels,
      rows.flatMap(({ y }) => y),
    ),
    rows: filled(
      1,
      rows.map(() => 1 / rows.length),
    ),
    labelled: filled(
      1,
      rows.map(({ y }) => (y.includes(1) ? 1 / labelled : 0)),
    ),
  };
  const numbersOf = (value: Value): ArrayLike<number> => {
    const name = value.name ?? '';
    if (zeroed.includes(name)) return new Float64Array(sizeOf(value.shape));
    const random = new Random(name);
    return (
      net.parameters.get(value) ??
      data[name] ??
      Array.from({ length: sizeOf(value.shape) }, () => random.normal())
    );
  };
  const found = await compute({ ...terms, loss }, numbersOf);
  return Object.fromEntries(['loss', ...Object.keys(terms)].map((name) => [name, found[name][0]]));
}

describe.runIf(runtime)('the loss', () => {
  const rows = rowsOf(5);

  it('has the terms and weights of the profile', async () => {
    const code = await lossesOf(networkOf({}), rows);
    expect(Object.keys(code)).toEqual(['loss', 'likelihood', 'label likelihood', 'divergence', 'contrast']);
    expect(code.loss).toBeCloseTo(
      0.5 * (code.likelihood + code['label likelihood']) + 6 * code.divergence + code.contrast,
      4,
    );
    const paper = await lossesOf(networkOf({ profile: 'paper' }), rows);
    expect(paper.loss).toBeCloseTo(
      0.5 * (paper.likelihood + paper['label likelihood']) +
        paper.divergence +
        paper.contrast +
        paper.reconstruction,
      4,
    );
  });

  it('leaves out what an ablation leaves out', async () => {
    const terms = async (given: Record<string, unknown>) =>
      Object.keys(await lossesOf(networkOf(given), rows));
    expect(await terms({ contrastWeight: 0 })).not.toContain('contrast');
    expect(await terms({ klWeight: 0 })).not.toContain('divergence');
    const single = await lossesOf(networkOf({ prior: 'single', contrastWeight: 0 }), rows);
    const other = await lossesOf(networkOf({ prior: 'single', contrastWeight: 0, divergence: 'p|q' }), rows);
    expect(single.divergence).toBeGreaterThan(0);
    expect(other.divergence).toBeGreaterThan(0);
    expect(other.divergence).not.toBeCloseTo(single.divergence, 4);
    expect(other.likelihood).toBeCloseTo(single.likelihood, 4);
  });

  it('does not see rows that fill up a batch', async () => {
    for (const given of [{}, { profile: 'paper' }, { prior: 'single' }]) {
      const net = networkOf(given);
      const [alone, filled] = [
        await lossesOf(net, rows.slice(0, 3)),
        await lossesOf(net, rows.slice(0, 3), 5),
      ];
      for (const [name, value] of Object.entries(alone)) expect(filled[name]).toBeCloseTo(value, 4);
    }
  });

  it('takes rows without labels for what is not there, and for nothing else', async () => {
    const net = networkOf({});
    const empty = { x: [1, 2, 3], y: [0, 0, 0, 0] };
    const [without, beside] = [await lossesOf(net, rows), await lossesOf(net, [...rows, empty])];
    for (const name of ['label likelihood', 'divergence', 'contrast'])
      expect(beside[name]).toBeCloseTo(without[name], 4);
    expect(beside.likelihood).not.toBeCloseTo(without.likelihood, 4);
    for (const value of Object.values(await lossesOf(net, [empty])))
      expect(Number.isFinite(value)).toBe(true);
  });

  it('hides features from both networks that read them, and asks for them whole', async () => {
    for (const profile of ['code', 'paper']) {
      const net = networkOf({ profile, inputDropout: 0.5 });
      const hidden = await lossesOf(net, rows, rows.length, ['input mask']);
      const nothing = rows.map(({ y }) => ({ x: [0, 0, 0], y }));
      const { reconstruction, loss: _, ...blank } = await lossesOf(net, nothing);
      for (const [name, value] of Object.entries(blank)) expect(hidden[name]).toBeCloseTo(value, 4);
      if (profile === 'paper') expect(hidden.reconstruction).toBeGreaterThan(reconstruction + 0.1);
    }
  });

  it('without prior, contrast, label branch and codes is that of a plain network with a head of embeddings', async () => {
    const plain = { klWeight: 0, contrastWeight: 0, labelBranch: false, likelihoodWeight: 1 };
    const net = networkOf({ ...plain, logitScale: 1 });
    const { loss } = await lossesOf(net, rows, rows.length, ['decoder.code']);
    const weights = new Map(
      Array.from(net.parameters, ([value, numbers]) => [value.name ?? '', { value, numbers }]),
    );
    const times = (x: number[], name: string, columns: number): number[] =>
      Array.from({ length: columns }, (_, j) =>
        x.reduce(
          (total, number, i) => total + number * (weights.get(name)?.numbers[i * columns + j] ?? 0),
          0,
        ),
      );
    const plus = (x: number[], name: string) =>
      x.map((number, i) => number + (weights.get(name)?.numbers[i] ?? 0));
    let expected = 0;
    for (const { x, y } of rows) {
      const hidden = plus(times(x, 'decoder.features', 512), 'decoder.bias').map((h) => Math.max(h, 0));
      const last = plus(times(hidden, 'decoder.exit.weights', 5), 'decoder.exit.bias').map((h) =>
        h > 0 ? h : 0.01 * h,
      );
      const length = Math.hypot(...last);
      y.forEach((truth, label) => {
        const logit = last.reduce(
          (total, h, i) => total + (h / length) * (weights.get('labels')?.numbers[label * 5 + i] ?? 0),
          0,
        );
        expected += Math.log(1 + Math.exp(logit)) - truth * logit;
      });
    }
    // Both draws of the code say the same where the decoder does not hear them.
    expect(loss).toBeCloseTo((2 * expected) / rows.length, 4);
    expect(inputsOf([objectiveOf(net, 2).loss]).map(({ name }) => name)).not.toContain('labels.1.weights');
  });
});

describe.runIf(runtime)('predictions', () => {
  const probabilitiesOf = async (net: Network, rows: number[][], zeroed?: string) => {
    const numbersOf = (value: Value) => {
      const numbers = net.parameters.get(value) ?? Float32Array.from(rows.flat());
      return value.name === zeroed ? numbers.map(() => 0) : numbers;
    };
    return (await compute({ probabilities: predict(net, rows.length) }, numbersOf)).probabilities;
  };
  const logit = (chance: number) => Math.log(chance / (1 - chance));

  it('with a bias, start from how frequent labels are', async () => {
    const shares = [0.5, 0.25, 0.1, 0.001];
    const found = await probabilitiesOf(networkOf({ labelBias: true }, shares), [[1, 2, 3]], 'labels');
    found.forEach((chance, label) => {
      expect(chance).toBeCloseTo(shares[label], 6);
    });
  });

  it('are as sure as the scale of logits says, which has room where labels are many', async () => {
    const [once, twice, chosen] = await Promise.all(
      [1, 2, 0].map((logitScale) => probabilitiesOf(networkOf({ logitScale }), [[1, 2, 3]])),
    );
    once.forEach((chance, label) => {
      expect(logit(twice[label])).toBeCloseTo(2 * logit(chance), 4);
      expect(Math.abs(logit(chosen[label]))).toBeGreaterThan(Math.abs(logit(chance)));
    });
    const many = makeNetwork({ features: 3, labels: 1000 }, networkOf({}).settings, 1);
    expect(many.logitScale).toBeGreaterThan(networkOf({}).logitScale);
  });

  it('are probabilities of each row on its own', async () => {
    const net = networkOf({});
    const rows = rowsOf(3).map(({ x }) => x);
    const together = await probabilitiesOf(net, rows);
    for (const [i, row] of rows.entries()) {
      (await probabilitiesOf(net, [row])).forEach((probability, label) => {
        expect(probability).toBeCloseTo(together[i * sizes.labels + label], 4);
        expect(probability > 0 && probability < 1).toBe(true);
      });
    }
  });
});
