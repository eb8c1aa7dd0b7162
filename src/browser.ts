// What a page needs to predict with a saved model; a page can load it as it is, without a bundler.
export { UmbelError } from './errors.ts';
export type { Classifier, Suggestion, SuggestOptions } from './learn/classifier.ts';
export type { Explanation } from './learn/learner.ts';
export { type ModelSource, openModel, webSource } from './store/open.ts';
