// The plug point for top-k over label vectors: our own searches and any outside vector engine look like this.
import type { Ranking } from '../math/csr.ts';
import type { Dense } from '../math/dense.ts';
import type { Progress } from '../progress.ts';

export interface SearchOptions {
  /** How many vectors per query at most. */
  top: number;
  /** One byte per vector: 1 keeps it out of the answer. */
  excluded?: Uint8Array;
  threads?: number;
  signal?: AbortSignal;
  progress?: Progress;
}

export interface VectorSearch {
  /** For every query the vectors with the largest inner products, best first, ties by lowest number. */
  search(queries: Dense, options: SearchOptions): Promise<Ranking>;
}

/** Opens a search over these vectors, which it may copy to wherever it likes; answers count them from 0. */
export type SearchMaker = (vectors: Dense) => Promise<VectorSearch>;
