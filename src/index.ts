// The library: text in, labels out. Everything here is what the command line uses too.
export { collect, type Dataset, type Features, type Sample, selectSamples } from './data/dataset.ts';
export { type EvidenceRecord, writeEvidence } from './data/evidence-file.ts';
export { openSamples, readDataset, writeSamples } from './data/formats.ts';
export { clusteredGroups, type Groups, groupRows, randomGroups } from './data/group.ts';
export { type GroupedRows, readGrouped } from './data/grouped.ts';
export { writeGroups } from './data/groups-file.ts';
export { readLabels } from './data/labels.ts';
export { datasetOf, type PlainSample } from './data/plain-samples.ts';
export { splitRows } from './data/split.ts';
export { type Label, Vocabulary } from './data/vocabulary.ts';
export { UmbelError } from './errors.ts';
export { compare } from './judge/bootstrap.ts';
export { evaluate, type Report, rowMetrics } from './judge/evaluate.ts';
export { type Trial, type Tuned, type TuneOptions, tune } from './judge/tune.ts';
export {
  Classifier,
  type LabelSense,
  type Suggestion,
  type SuggestOptions,
  type TrainOptions,
} from './learn/classifier.ts';
export { evidenceOf } from './learn/impute/evidence.ts';
export { type ImputedSet, imputeDataset, imputeSet } from './learn/impute/impute.ts';
export type { ImputeOptions } from './learn/impute/options.ts';
export type { LabelMap } from './learn/label-map.ts';
export type { Explanation, Learner, Model, Sense } from './learn/learner.ts';
export { findLearner, learnerNames } from './learn/registry.ts';
export type { Csr, Pattern, Ranking } from './math/csr.ts';
export type { Dense } from './math/dense.ts';
export { type OpenedSearch, type OpenOptions, openSearch } from './search/open.ts';
export type { SearchMaker, SearchOptions, VectorSearch } from './search/search.ts';
export { loadModel, saveModel } from './store/folder.ts';
export { openModel, webSource } from './store/open.ts';
export { trainSubwords } from './text/subword-trainer.ts';
export { Subwords } from './text/subwords.ts';
export { Vectoriser } from './text/vectoriser.ts';
