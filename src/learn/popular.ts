// Always the most frequent labels of the training data: the floor every other learner must clear.
import { CsrBuilder, columnCounts } from '../math/csr.ts';
import { topK } from '../math/topk.ts';
import { vector } from '../parts.ts';
import { inputRows, widthOf } from './features.ts';
import type { Learner, Model, Width } from './learner.ts';

/** `shares[label]` is the fraction of training rows that carry the label. */
function model(shares: Float32Array, width: Width): Model {
  return {
    width,
    async predict(inputs, { top, excluded }) {
      const eligible = excluded ? shares.map((share, label) => (excluded[label] ? 0 : share)) : shares;
      const best = topK(eligible, top).filter((label) => eligible[label] > 0);
      const scores = Array.from(best, (label) => shares[label]);
      const ranking = new CsrBuilder('values');
      for (let row = 0; row < inputRows(inputs); row++) ranking.add(best, scores);
      return ranking.csr(shares.length);
    },
    async explain(_input, label) {
      if (!(shares[label] > 0)) return undefined;
      const share = shares[label];
      const what = 'share of training samples with this label';
      return {
        score: share,
        steps: [{ what, margin: share, bias: share, factor: share, contributions: [] }],
      };
    },
    async save(parts) {
      await parts.write('shares', { shares: vector(shares) });
      return { ...width };
    },
  };
}

export const popular: Learner = {
  name: 'popular',
  summary: 'always the most frequent labels; the floor to compare with',
  options: {},
  async train({ rows, labels, features }) {
    const shares = Float32Array.from(columnCounts(labels), (count) => count / rows);
    return model(shares, widthOf(features));
  },
  async load(config, parts) {
    const { shares } = await parts.read('shares');
    return model(shares.data as Float32Array, config as unknown as Width);
  },
};
