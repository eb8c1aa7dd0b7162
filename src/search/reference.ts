// Exact search as slow and obvious as it can be: what the fast ones are tested against.
import { CsrBuilder } from '../math/csr.ts';
import { type Dense, denseRow } from '../math/dense.ts';
import { topK } from '../math/topk.ts';
import type { VectorSearch } from './search.ts';

export const slowSearch = (vectors: Dense): VectorSearch => ({
  async search(queries, { top, excluded }) {
    const kept = Array.from({ length: vectors.rows }, (_, i) => i).filter((i) => !excluded?.[i]);
    const ranking = new CsrBuilder('values');
    for (let row = 0; row < queries.rows; row++) {
      const scores = kept.map((i) => product(denseRow(vectors, i), denseRow(queries, row)));
      const best = Array.from(topK(scores, top));
      ranking.add(
        best.map((at) => kept[at]),
        best.map((at) => scores[at]),
      );
    }
    return ranking.csr(vectors.rows);
  },
});

const product = (a: Float32Array, b: Float32Array): number => a.reduce((sum, x, i) => sum + x * b[i], 0);
