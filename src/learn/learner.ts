// The plug point for learners: one row in registry.ts, one object like this, one model like that. Pure: no disk, no
// network. The contract suite (test/contract.test.ts) runs over every row.
import type { Dataset, Features } from '../data/dataset.ts';
import type { Csr, Ranking } from '../math/csr.ts';
import type { Dense } from '../math/dense.ts';
import type { OptionsOf, OptionTable } from '../options.ts';
import type { Json, PartReader, PartWriter, Tensors } from '../parts.ts';
import type { Context, Progress } from '../progress.ts';
import type { SearchMaker } from '../search/search.ts';
import type { Embedder } from './encode/embedder.ts';

/** A data set whose texts, if it had any, have been turned into features. */
export type TrainingSet = Dataset & {
  features: Features;
  /** Where labels are to be imputed: of each label, what its name would have as a text. */
  nameFeatures?: Csr;
};

/** Where a long run keeps its finished pieces, so that a killed one can go on. Names say what a piece was made from. */
export interface Checkpoint {
  /** The piece of this name, if an earlier run left it. */
  load(name: string): Promise<Tensors | undefined>;
  /** Replaces an earlier piece of this name. */
  save(name: string, tensors: Tensors): Promise<void>;
}

/** What `train` is given beside the data. */
export interface TrainContext extends Context {
  checkpoint?: Checkpoint;
  /** Rows to choose by, never to learn from; given only to learners that say `validates`. */
  validation?: TrainingSet;
}

/** In bytes: the peak of the whole process, and the size of the saved model. */
export interface Estimate {
  memory: number;
  disk: number;
  /** What the options will not do, if there is something. */
  remark?: string;
}

/** Values of options to try. */
export type Tries = Readonly<Record<string, readonly unknown[]>>;

export interface Learner<T extends OptionTable = OptionTable> {
  name: string;
  /** One line for `--help` and the studio. */
  summary: string;
  options: T;
  /** Takes texts as they are, not features made of them. */
  readsText?: boolean;
  /** What `umbel tune` tries where it is told nothing: what matters most, and depends most on the data. */
  tries?: Tries;
  /** Whether validation rows are of use; without them such a learner may hold some training rows back. */
  validates?: boolean;
  /** Whether it takes bags: features with several rows (instances) to an input. */
  takesBags?: boolean;
  train(set: TrainingSet, options: OptionsOf<T>, context: TrainContext): Promise<Model>;
  /** What `train` will need; throws `too-large` where it cannot fit at all. */
  estimate?(set: TrainingSet, options: OptionsOf<T>, threads: number): Estimate;
  /** The model that `save` described. */
  load(config: Json, parts: PartReader): Promise<Model>;
}

export interface PredictOptions {
  /** How many labels per input at most. */
  top: number;
  /** One byte per label: 1 keeps the label out of the answer. */
  excluded?: Uint8Array;
  threads?: number;
  signal?: AbortSignal;
  progress?: Progress;
}

/** A label for a model that is already trained: its text, texts of samples that carry it, or both. */
export interface NewLabel {
  text?: string;
  examples: string[];
}

export interface Model {
  /** Features the model was trained on: columns beyond are an error at the door, not here. */
  width: Width;
  /** Labels per input by descending score in (0, 1], ties by lowest column; never a label without positives. */
  predict(inputs: Features, options: PredictOptions): Promise<Ranking>;
  /** Why one input (one row) got, or did not get, a label; undefined where the label was out of reach. */
  explain?(input: Features, label: number): Promise<Explanation | undefined>;
  /** What each copy of a label stands for; absent where the model keeps every label in one place. */
  senses?(label: number): Sense[];
  /** Labels with several senses, those that lie farthest apart first; how far, from 0 to 1. */
  sensesApart?(): { label: number; apart: number }[];
  /** Where the labels lie that the model knows, one row each; absent where it has no such place. */
  labelVectors?(): { labels: Uint32Array; vectors: Dense };
  /** labels x features: what speaks for each label; for neighbours and maps. */
  labelWeights?(): Csr;
  /** Gives texts vectors of their own; absent where the model has none. */
  embedder?: Embedder;
  /** Share of the nearest labels that predicting finds, where it does not look at all of them; measured when built. */
  searchRecall?: number;
  /** The same model, which asks another search for the nearest labels, by columns; absent where it does not search. */
  withSearch?(open: SearchMaker): Promise<Model>;
  /** The same model with further labels, as the next columns; absent where labels need training. */
  withLabels?(labels: readonly NewLabel[]): Promise<Model>;
  /** The same model with these columns alone, numbered anew. */
  withColumns?(columns: Uint32Array): Promise<Model>;
  save(parts: PartWriter): Promise<Json>;
}

export interface Width {
  sparse: number;
  dense: number;
}

/** The score of a label as a product of steps: one for a flat model, one per level for a tree. */
export interface Explanation {
  /**
   * Equals what `predict` returns for this label, to rounding: the product of the steps' factors. Where there are
   * several ways to the label (trees, copies), their steps follow each other and the score is the mean of their products.
   */
  score: number;
  steps: ExplanationStep[];
}

export interface ExplanationStep {
  /** What was decided here: `label`, or `level 2, node 17`. */
  what: string;
  /** Equals bias plus all contributions. */
  margin: number;
  bias: number;
  /** What the margin became after the model's post-processing. */
  factor: number;
  /** Feature columns (dense ones follow the sparse ones) by descending absolute contribution. */
  contributions: { feature: number; value: number }[];
}

/** One of the clusters a label lies in: what the label means there. */
export interface Sense {
  /** Which tree of the model, from 0. */
  tree: number;
  cluster: number;
  /** Training rows with the label for which the tree prefers this cluster to the label's others, and their share. */
  rows: number;
  share: number;
  /**
   * Features that tell this sense from the others, the most telling first: their mean in these rows, and the largest
   * mean in the rows of another sense. For a label with one sense its weights.
   */
  words: { feature: number; weight: number; elsewhere: number }[];
  /** The other labels here, those first that these words speak for: by the cosine with their weights above zero. */
  neighbours: { label: number; similarity: number }[];
  /** Training texts (or ids) of this sense, the most typical first. */
  examples: string[];
}
