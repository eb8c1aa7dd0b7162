import { describe, expect, it } from 'vitest';
import { UmbelError } from '../errors.ts';
import { datasetOf, type PlainSample } from './plain-samples.ts';
import { Vocabulary } from './vocabulary.ts';

describe('datasetOf', () => {
  it('makes a data set of texts, labels or not', () => {
    const vocabulary = new Vocabulary([{ id: 'a' }]);
    const dataset = datasetOf(
      [
        { id: '1', text: 'one', labels: ['b', 'a', 'b'], group: 'g' },
        { id: '2', text: 'two', group: 'g' },
      ],
      vocabulary,
    );
    expect(dataset).toMatchObject({ rows: 2, ids: ['1', '2'], texts: ['one', 'two'], groups: ['g', 'g'] });
    expect(dataset.vocabulary).toBe(vocabulary);
    expect(Array.from(vocabulary, ({ id }) => id)).toEqual(['a', 'b']);
    expect(dataset.labels).toMatchObject({ rows: 2, cols: 2, indices: Uint32Array.of(0, 1) });
  });

  it('takes sparse features by column and dense ones from any list, of any iterable', () => {
    const sparse = datasetOf(new Set<PlainSample>([{ features: { 9: 1, 2: 0.5 } }, { features: {} }]));
    expect(sparse.features?.sparse).toMatchObject({ rows: 2, cols: 10, indices: Uint32Array.of(2, 9) });
    const dense = datasetOf([{ features: [1, 2] }, { features: Float64Array.of(3, 4) }]);
    expect(dense.features?.dense).toEqual({ rows: 2, cols: 2, values: Float32Array.of(1, 2, 3, 4) });
  });

  it.each([
    [undefined, 'samples must be an array of objects, or iterable, got nothing'],
    [{ text: 'a' }, 'samples must be an array of objects, or iterable, got {"text":"a"}'],
    [[], 'a data set must have at least one sample'],
    ['text', 'samples:1: a record must be an object, got "t"'],
    [[{ text: 'a' }, null], 'samples:2: a record must be an object'],
    [[{}], 'samples:1: a record must have a text or features'],
    [[{ text: 1n }], 'text must be a string, got 1'],
    [[{ text: 'a', labels: 'x' }], 'labels must be an array of strings'],
    [[{ text: 'a', labels: new Set(['x']) }], 'labels must be an array of strings'],
    [[{ text: 'a', labels: [undefined] }], 'a label must be a string or a number, and not empty'],
    [[{ text: 'a', id: Number.NaN }], 'id must be a string or a number'],
    [[{ text: 'a', id: Symbol('s') }], 'id must be a string or a number'],
    [
      [{ features: new Map([[1, 2]]) }],
      'features must be an object {"column": value} or an array of numbers',
    ],
    [[{ features: new Array(2) }], 'feature value must be a finite number, got nothing'],
    [[{ features: { 1: '2' } }], 'feature value must be a finite number'],
    [[{ features: [1] }, { features: [1, 2] }], 'samples:2: features must be as many as in the first record'],
    [[{ features: [1] }, { features: { 1: 2 } }], 'every sample or none must have sparse features'],
    [[{ text: 'a', id: '1' }, { text: 'b' }], 'every sample or none must have an id, got "1 of 2"'],
    [
      [
        { text: 'a', id: '1' },
        { text: 'b', id: '1' },
      ],
      'samples:2: id must be used once, got "1"',
    ],
  ])('refuses %o with a rule', (samples, message) => {
    const make = () => datasetOf(samples as Iterable<PlainSample>);
    expect(make).toThrow(UmbelError);
    expect(make).toThrow(message);
  });

  it('refuses a vocabulary that is none', () => {
    const vocabulary = ['a'] as unknown as Vocabulary;
    expect(() => datasetOf([{ text: 'a' }], vocabulary)).toThrow('vocabulary must be a Vocabulary');
  });
});
