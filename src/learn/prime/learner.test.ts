import { describe, expect, it } from 'vitest';
import { planted, precision, quickPrime, words } from '../../../test/planted-texts.ts';
import type { Dataset } from '../../data/dataset.ts';
import { Vocabulary } from '../../data/vocabulary.ts';
import { CsrBuilder, rowIndices } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { gradients } from '../../nn/gradient.ts';
import { input, sizeOf, type Value } from '../../nn/graph.ts';
import { inputsOf } from '../../nn/onnx.ts';
import { Parameters } from '../../nn/parameters.ts';
import { evaluate } from '../../nn/reference.ts';
import { parseOptions } from '../../options.ts';
import type { Tensors } from '../../parts.ts';
import { Classifier, type TrainOptions } from '../classifier.ts';
import { buildPrime, primeObjective } from './network.ts';
import { options } from './options.ts';
import { prototypeNetwork } from './prototype.ts';

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);

const train = (data: Dataset, settings: Record<string, unknown> = {}, given: Partial<TrainOptions> = {}) =>
  Classifier.train(data, { learner: 'prime', seed: 1, ...given, options: { ...quickPrime, ...settings } });

describe.runIf(runtime)('the prime learner', () => {
  const data = planted(200);

  it.each([
    ['a bag', {}],
    ['a bag without weights of tokens', { pooling: 'mean' }],
    ['texts alone', { labels: 'text' }],
    ['no centroids and no free vectors', { centroids: false, freeVectors: 0 }],
    ['other losses', { margin: 'fixed', aggregate: 'hardest', regulariser: 'off', textLoss: false }],
    ['a classifier for each label', { classifierEpochs: 2 }],
    ['a transformer', { encoder: 'transformer', layers: 1, heads: 2, epochs: 12 }],
  ])('finds the planted labels with %s', async (_, settings) => {
    expect(await precision(await train(data, settings), data)).toBeGreaterThan(0.9);
  });

  it('finds labels without a name by the samples that carry them', async () => {
    const partly = planted(200, (word, i) => (i % 2 ? { id: word } : { id: word, name: word }));
    expect(await precision(await train(partly), partly)).toBeGreaterThan(0.9);
  });

  it('tells labels that read the same apart by their samples', async () => {
    const doubled = planted(200, (word, i) => ({ id: word, name: words[i - (i % 2)] }));
    expect(await precision(await train(doubled, { epochs: 10 }), doubled)).toBeGreaterThan(0.9);
  });

  it('moves from prototypes to classifiers without moving the encoder', async () => {
    const [plain, classifying] = [await train(data), await train(data, { classifierEpochs: 1 })];
    const scoresOf = async (model: Classifier) => (await model.rank(data, { top: 3 })).values;
    expect(await scoresOf(classifying)).not.toEqual(await scoresOf(plain));
    const still = await train(data, { classifierEpochs: 1, classifierRate: 0 });
    const before = await scoresOf(plain);
    (await scoresOf(still)).forEach((score, i) => {
      expect(score).toBeCloseTo(before[i], 5);
    });
  });

  it('refuses labels of which none has a name, nor an id that is one', async () => {
    const numbered = planted(20, (_, i) => ({ id: `p${i}` }));
    await expect(train(numbered)).rejects.toThrow('labels must have names, or ids that are words');
    const words = planted(20, (id) => ({ id }));
    expect((await train(words, { epochs: 1 })).vocabulary.size).toBe(10);
  });

  it('suggests labels without samples where it is told to', async () => {
    const more = new Vocabulary([...data.vocabulary, { id: 'x', name: 'violin of old' }]);
    const wider = { ...data, vocabulary: more, labels: { ...data.labels, cols: 11 } };
    const all = async (unseen: boolean) =>
      (await (await train(wider, { unseen, epochs: 1 })).suggest(['the violin of old'], { top: 11 }))[0].map(
        ({ label }) => label,
      );
    expect(await all(false)).not.toContain('x');
    expect(await all(true)).toContain('x');
  });

  it('goes on where it was cut off, to the same model', async () => {
    const pieces = new Map<string, Tensors>();
    const checkpoint = {
      load: async (name: string) => pieces.get(name),
      save: async (name: string, tensors: Tensors) => {
        pieces.set(name, structuredClone(tensors));
      },
    };
    const whole = await train(data, {}, { checkpoint });
    expect([...pieces.keys()]).toHaveLength(1);
    const [[name, last]] = pieces;
    pieces.clear();
    const stop = new AbortController();
    const cut = train(
      data,
      {},
      {
        checkpoint,
        signal: stop.signal,
        progress: ({ done, phase }) => {
          if (phase === 'train' && done >= 20) stop.abort();
        },
      },
    );
    await expect(cut).rejects.toThrow('cancelled');
    expect(pieces.get(name)?.course.data[0]).toBeLessThan(last.course.data[0]);
    const resumed = await train(data, {}, { checkpoint });
    expect(pieces.get(name)).toEqual(last);
    expect(await resumed.rank(data, { top: 5 })).toEqual(await whole.rank(data, { top: 5 }));
  });

  it('takes labels it has not seen, by name and by samples, and forgets labels', async () => {
    const others = new CsrBuilder('binary');
    const texts: string[] = [];
    for (let row = 0; row < data.rows; row++) {
      const own = rowIndices(data.labels, row);
      if (own.includes(0)) continue;
      others.add(Array.from(own, (label) => label - 1));
      texts.push(data.texts[row]);
    }
    const vocabulary = new Vocabulary([...data.vocabulary].slice(1));
    const before = await train(
      { rows: texts.length, texts, labels: others.pattern(9), vocabulary },
      { epochs: 10 },
    );
    const asked = ['the violin of old', 'some violin'];
    const first = async (model: Classifier) =>
      (await model.suggest(asked, { top: 1 })).map(([{ label }]) => label);
    expect(await first(before)).not.toContain('violin');
    const byName = await before.withLabels([{ id: 'violin', name: 'violin' }]);
    expect(await first(byName)).toEqual(['violin', 'violin']);
    const bySamples = await before.withLabels([{ id: 'v', examples: ['a violin', 'the violin of some'] }]);
    expect(await first(bySamples)).toEqual(['v', 'v']);
    expect(bySamples.counts.at(-1)).toBe(2);
    // Nothing else has changed.
    const rest = await byName.withoutLabels(['violin']);
    expect(await rest.rank(data, { top: 9 })).toEqual(await before.rank(data, { top: 9 }));
    const again = await byName.withLabels([{ id: 'violin', examples: ['a violin'] }]);
    expect(again.counts.length).toBe(10);
    expect(again.vocabulary.label(9)).toEqual({ id: 'violin', name: 'violin' });
    expect(await first(again)).toEqual(['violin', 'violin']);
    await expect(again.withLabels([{ id: 'violin', name: 'x' }])).rejects.toThrow('an id of its own');
    await expect(byName.withLabels([{ id: 'new' }])).rejects.toThrow('a new label must have a text');
    await expect(byName.withoutLabels(['nobody'])).rejects.toThrow('must be in the vocabulary');
  });

  it('refuses what does not fit together before it trains', async () => {
    await expect(train(data, { encoder: 'transformer', heads: 3 })).rejects.toThrow(
      'heads must divide the width 16',
    );
    await expect(train(data, { encoder: 'pretrained' })).rejects.toThrow('must come with folder=');
    await expect(train(data, { encoder: 'pretrained', folder: 'nowhere' })).rejects.toThrow(
      /nowhere.*a pretrained/,
    );
    await expect(train(data, { folder: 'nowhere' })).rejects.toThrow(
      'folder must come with encoder=pretrained, got "bag"',
    );
    await expect(train(data, { marginLow: 0.5 })).rejects.toThrow(
      'marginLow must be at most marginHigh, 0.3, got 0.5',
    );
  });
});

const shape = { kind: 'bag', tokens: 9, width: 6, pooling: 'mean' } as const;
const settings = parseOptions(options, {});
const sizes = { queries: 3, pool: 4, queryLength: 3, labelLength: 2 };

/** Numbers for every input: tokens, masks of ones, a truth with both kinds, chance of a half. */
function fill(values: readonly Value[]): Map<Value, ArrayLike<number>> {
  const numbers = (value: Value): number[] => {
    const random = new Random('fill', value.name ?? '');
    const draw = () => {
      if (value.name === 'free places') return random.integer(4);
      if (value.kind === 'int32') return random.integer(9);
      if (value.name === 'positive') return random.integer(2);
      if (value.random || /mask$|usable|has text/.test(value.name ?? '')) return 1;
      return random.normal();
    };
    return Array.from({ length: sizeOf(value.shape) }, draw);
  };
  return new Map(values.map((value) => [value, numbers(value)]));
}

describe('the network', () => {
  const net = buildPrime(shape, { centroids: true, free: true });
  const { terms = {}, rows = {} } = primeObjective(net, settings, sizes);

  it('moves free vectors by the prototypes alone', () => {
    const free = rows.free;
    const moved = Object.entries(terms).map(([name, term]) => {
      const [slope] = gradients(term, [free]);
      const [numbers] = evaluate([slope], fill(inputsOf([slope, term])));
      return [name, numbers.some((x) => x !== 0)];
    });
    expect(Object.fromEntries(moved)).toEqual({ text: false, back: false, prototype: true, behind: true });
  });

  it('makes the same prototype in whatever order text, centroid and free vector come', () => {
    const parameters = new Parameters();
    const network = prototypeNetwork(6, 0.1, parameters);
    const vectors = ['text', 'centroid', 'free'].map((name) => input(name, [2, 6]));
    const [a, b] = [network(vectors), network([vectors[2], vectors[0], vectors[1]])];
    const [one, other] = evaluate([a, b], fill(inputsOf([a, b])));
    one.forEach((x, i) => {
      expect(x).toBeCloseTo(other[i], 9);
    });
  });

  it('sees of a label only the vector of its text', () => {
    const texts = input('texts', [2, 6]);
    const prototypes = net.prototype(texts, input('free', [2, 6]));
    const given = fill(inputsOf([prototypes]));
    for (const [value, numbers] of given)
      if (/centroids|free/.test(value.name ?? ''))
        given.set(value, [...Array.from(numbers).slice(0, 6), ...Array.from(numbers).slice(0, 6)]);
    const [straight] = evaluate([prototypes], given);
    const own = Array.from(given.get(texts) ?? []);
    given.set(texts, [...own.slice(6), ...own.slice(0, 6)]);
    const [swapped] = evaluate([prototypes], given);
    expect([...swapped.slice(6), ...swapped.slice(0, 6)]).toEqual([...straight]);
  });

  it('has as many parameters as the paper says', () => {
    const parameters = new Parameters();
    prototypeNetwork(768, 0.1, parameters);
    const count = parameters.values.reduce((total, { shape }) => total + sizeOf(shape), 0);
    expect(count).toBe(3_940_096);
  });
});
