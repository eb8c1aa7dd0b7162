// Every learner is one row here; its module is loaded when it is asked for.
import { unknownName } from '../errors.ts';
import type { Learner } from './learner.ts';

const loaders: Record<string, () => Promise<Learner>> = {
  popular: async () => (await import('./popular.ts')).popular,
  'one-vs-rest': async () => (await import('./one-vs-rest.ts')).oneVsRest,
  'ml-knn': async () => (await import('./ml-knn.ts')).mlKnn,
  gmvae: async () => (await import('./gmvae/learner.ts')).gmvae,
  prime: async () => (await import('./prime/learner.ts')).prime,
  'prime-w': async () => (await import('./prime/learner.ts')).primeW,
  'prime-lite': async () => (await import('./prime/learner.ts')).primeLite,
  tree: async () => (await import('./tree/learner.ts')).tree,
  miml: async () => (await import('./miml/learner.ts')).miml,
};

/** What is trained where nothing else is asked for. */
export const defaultLearner = 'tree';

export const learnerNames = Object.keys(loaders);

export async function findLearner(name: string): Promise<Learner> {
  if (!Object.hasOwn(loaders, name)) throw unknownName('learner', name, learnerNames);
  return loaders[name]();
}
