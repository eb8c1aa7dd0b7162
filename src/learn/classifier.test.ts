import { describe, expect, it } from 'vitest';
import { Vocabulary } from '../data/vocabulary.ts';
import { Classifier, type TrainOptions } from './classifier.ts';

const labels = {
  rows: 4,
  cols: 2,
  indptr: Uint32Array.of(0, 1, 2, 3, 4),
  indices: Uint32Array.of(0, 1, 0, 1),
};
const set = { rows: 4, labels, vocabulary: Vocabulary.numbered(2) };
const texts = ['red apple', 'blue sky', 'red berry', 'blue sea'];
const dense = { rows: 4, cols: 2, values: Float32Array.of(1, 0, 0, 1, 1, 0, 0, 1) };
const sparse = {
  rows: 4,
  cols: 3,
  indptr: Uint32Array.of(0, 1, 2, 3, 4),
  indices: Uint32Array.of(0, 1, 0, 1),
  values: Float32Array.of(1, 1, 1, 1),
};

describe('a classifier', () => {
  it('is a tree unless another learner is named', async () => {
    expect((await Classifier.train({ ...set, texts })).learner).toBe('tree');
  });

  it.each<[TrainOptions, RegExp]>([
    [{ threads: 0 }, /threads must be a positive integer, got 0/],
    [{ seed: Number.NaN }, /seed must be an integer, got NaN/],
    [{ options: { ngrams: 2 } }, /did you mean text\.ngrams\?/],
    [{ options: { 'text.ngrms': 2 } }, /got "text\.ngrms" \(did you mean text\.ngrams\?\)/],
    [{ options: { 'text.ngrams': 9 } }, /text\.ngrams must be an integer >= 0 and <= 3, got 9/],
  ])('refuses to be trained with %j', async (options, message) => {
    await expect(Classifier.train({ ...set, texts }, options)).rejects.toThrow(message);
  });

  it('says which input is not a text', async () => {
    const classifier = await Classifier.train({ ...set, texts }, { learner: 'popular' });
    const inputs = ['red', null] as string[];
    await expect(classifier.suggest(inputs)).rejects.toThrow(/text 2 must be a string, got nothing/);
  });

  it('takes sparse rows that do not reach its last column, but no other width and no other kind', async () => {
    const ofSparse = await Classifier.train({ ...set, features: { sparse } }, { learner: 'one-vs-rest' });
    const ofDense = await Classifier.train({ ...set, features: { dense } }, { learner: 'one-vs-rest' });
    expect(await ofSparse.suggest({ features: { sparse: { ...sparse, cols: 2 } } })).toHaveLength(4);
    await expect(ofSparse.suggest({ features: { sparse: { ...sparse, cols: 4 } } })).rejects.toThrow(
      /knows 3 sparse features, these inputs have 4 sparse ones/,
    );
    await expect(ofSparse.suggest(texts)).rejects.toThrow(/these inputs have none/);
    await expect(ofDense.suggest({ features: { sparse } })).rejects.toThrow(
      /knows 2 dense features, these inputs have 3 sparse ones/,
    );
    expect(() => ofSparse.checkDeclared(2)).toThrow(
      /knows 3 sparse features, these inputs have 2 sparse ones/,
    );
    expect(() => ofSparse.checkDeclared(undefined)).not.toThrow();
  });
});
