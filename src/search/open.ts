// Chooses how to search: exactly, or approximately where there are so many vectors that exactness would be slow.
import { inNode } from '../kernels/wasm.ts';
import type { Dense } from '../math/dense.ts';
import type { ApproximateOptions, ApproximateSearch } from './approximate.ts';
import { exactSearch } from './exact.ts';
import type { VectorSearch } from './search.ts';

/** Numbers that the exact search goes through in about ten milliseconds per query. */
const exactLimit = 2 ** 28;

export interface OpenOptions extends ApproximateOptions {
  /** Numbers in all vectors together up to which the search is exact. */
  limit?: number;
}

export const isExact = ({ rows, cols }: Pick<Dense, 'rows' | 'cols'>, limit = exactLimit): boolean =>
  !inNode || rows * cols <= limit;

/** `recall` is that of the answers: 1 where they are exact. Approximate searches can be saved. */
export type OpenedSearch = VectorSearch & Pick<ApproximateSearch, 'recall'> & Partial<ApproximateSearch>;

export async function openSearch(
  vectors: Dense,
  { limit, ...options }: OpenOptions = {},
): Promise<OpenedSearch> {
  if (!isExact(vectors, limit)) {
    const { approximateSearch, canApproximate } = await import('./approximate.ts');
    if (canApproximate()) return approximateSearch(vectors, options);
  }
  return { ...(await exactSearch(vectors)), recall: 1 };
}
