// What users hold: a trained model with its label set and the preparation of its inputs. Text (or features) in,
// labels out. The store saves it; the judge asks it for rankings.
import { type Dataset, type Features, selectFeatures } from '../data/dataset.ts';
import { type Label, Vocabulary } from '../data/vocabulary.ts';
import { badInput, badUsage } from '../errors.ts';
import { inNode } from '../kernels/wasm.ts';
import { columnCounts, type Ranking, rowIndices, rowValues } from '../math/csr.ts';
import type { Dense } from '../math/dense.ts';
import { checkPositive, type OptionTable, parseOptions } from '../options.ts';
import {
  type Json,
  type PartReader,
  type PartWriter,
  prefixedReader,
  prefixedWriter,
  vector,
} from '../parts.ts';
import { checkCancelled, type Progress, quiet } from '../progress.ts';
import type { SearchMaker } from '../search/search.ts';
import { type BlendOptions, type Partner, partnerOf, rankBoth } from './blend.ts';
import type { Embedder } from './encode/embedder.ts';
import { checkBags, checkLabelled, fitted, otherFeatures, widthOf, withoutColumns } from './features.ts';
import { type LabelMap, mapLabels } from './label-map.ts';
import { LabelSpace, signedParts } from './label-space.ts';
import type { Estimate, Explanation, Learner, Model, Sense, TrainContext, TrainingSet } from './learner.ts';
import { type Inputs, imputedSet, Preparation, preparationOptions, type Running } from './preparation.ts';
import { defaultLearner, findLearner } from './registry.ts';

export interface Suggestion {
  /** The label's stable id. */
  label: string;
  name: string;
  score: number;
}

/** One of the places of a label in the model: what the label means there. */
export interface LabelSense extends Omit<Sense, 'words' | 'neighbours'> {
  words: { word: string; weight: number; elsewhere: number }[];
  neighbours: { label: string; name: string; similarity: number }[];
}

export interface TrainOptions extends Partial<Omit<TrainContext, 'validation'>> {
  /** `tree` where none is named. */
  learner?: string;
  /** The learner's options, and those of the preparation: `text.ngrams`, `dense.standardise`. */
  options?: Record<string, unknown>;
  /** Samples to choose by, never to learn from, where the learner has a choice to make. */
  validation?: Dataset;
  /** Gives the samples their labels once they have features: how a data set of groups is trained on. */
  impute?: (set: TrainingSet) => Promise<TrainingSet>;
  /** Whose vectors of the texts become features beside the others, as those of `prime`. */
  vectors?: Classifier;
  /** Told before the long work starts; throw to refuse. */
  onEstimate?: (estimate: Estimate) => void;
}

/** The JSON side of a saved classifier. */
export interface ClassifierContent {
  learner: string;
  options: Json;
  seed: number;
  rows: number;
  model: Json;
  preparation: Json;
  excluded: string[];
  featureNames: string[] | null;
}

export interface SuggestOptions {
  top?: number;
  /** Leave out labels that score below this. */
  threshold?: number;
  /** One in a page, whatever is said here. */
  threads?: number;
  signal?: AbortSignal;
  progress?: Progress;
}

interface Fields {
  learner: string;
  options: Record<string, unknown>;
  seed: number;
  /** Training rows, and how many of them carry each label: what propensities are made from. */
  rows: number;
  counts: Uint32Array;
  vocabulary: Vocabulary;
  model: Model;
  preparation: Preparation;
  featureNames?: string[];
  seconds?: Seconds;
  /** Whose rankings are blended into this one's. */
  partner?: Partner;
}

/** How long the stages of training took. */
export interface Seconds {
  vectorise: number;
  /** Where labels were imputed. */
  impute?: number;
  train: number;
}

/** What training takes: the learner's options and those of the preparation. */
export const allOptions = (learner: Learner): OptionTable => ({
  ...learner.options,
  ...(learner.readsText ? {} : preparationOptions),
});

export class Classifier {
  readonly learner: string;
  readonly options: Record<string, unknown>;
  readonly seed: number;
  readonly rows: number;
  readonly counts: Uint32Array;
  readonly vocabulary: Vocabulary;
  /** Present on a classifier trained here, absent on a loaded one. */
  readonly seconds: Seconds | undefined;
  readonly #model: Model;
  readonly #preparation: Preparation;
  readonly #featureNames: string[] | undefined;
  /** What this one was made from, to make another like it. */
  readonly #fields: Fields;

  private constructor(fields: Fields) {
    this.#fields = fields;
    this.learner = fields.learner;
    this.options = fields.options;
    this.seed = fields.seed;
    this.rows = fields.rows;
    this.counts = fields.counts;
    this.vocabulary = fields.vocabulary;
    this.seconds = fields.seconds;
    this.#model = fields.model;
    this.#preparation = fields.preparation;
    this.#featureNames = fields.featureNames;
  }

  static async train(dataset: Dataset, given: TrainOptions = {}): Promise<Classifier> {
    const { learner: name = defaultLearner, options = {}, onEstimate, impute, ...others } = given;
    const { validation, vectors, ...asked } = others;
    const context: TrainContext = { seed: 1, threads: 1, progress: quiet, ...asked };
    checkPositive('threads', context.threads);
    if (!Number.isSafeInteger(context.seed))
      throw badUsage('seed must be an integer', { value: context.seed });
    const learner = await findLearner(name);
    if (validation && !learner.validates)
      throw badUsage('validation data must go to a learner that chooses by it', { value: name });
    const all = parseOptions(allOptions(learner), options);
    const isOwn = ([option]: [string, unknown]) => Object.hasOwn(learner.options, option);
    const chosen = Object.fromEntries(Object.entries(all).filter(isOwn));
    const embedder = vectors === undefined ? undefined : vectors.#embedderFor(learner);
    if (dataset.rows === 0) throw badInput('training data must have at least one sample');
    if (!impute) checkLabelled(dataset);
    const started = performance.now();
    const { preparation, features } = learner.readsText
      ? Preparation.ofPlainText(dataset)
      : await Preparation.fit(dataset, all, context, embedder);
    checkBags(features, learner);
    checkCancelled(context.signal);
    const vectorised = performance.now();
    const prepared = { ...dataset, features };
    const set = impute ? await imputedSet(prepared, preparation, impute, context) : prepared;
    checkLabelled(set);
    const imputed = performance.now();
    if (onEstimate && learner.estimate) onEstimate(learner.estimate(set, chosen, context.threads));
    const held = validation && {
      ...validation,
      labels: withoutColumns(validation.labels, set.labels.cols),
      features: fitted(await preparation.apply(validation, context), widthOf(features)),
    };
    const model = await learner.train(set, chosen, { ...context, validation: held });
    const seconds = {
      vectorise: (vectorised - started) / 1000,
      ...(impute && { impute: (imputed - vectorised) / 1000 }),
      train: (performance.now() - imputed) / 1000,
    };
    return new Classifier({
      learner: name,
      options: chosen,
      seed: context.seed,
      rows: set.rows,
      counts: columnCounts(set.labels),
      vocabulary: set.vocabulary.clone(),
      model,
      preparation,
      featureNames: set.featureNames,
      seconds,
    });
  }

  /** Whether labels can be added without training. */
  get takesLabels(): boolean {
    return this.#model.withLabels !== undefined;
  }

  #embedderFor({ name, readsText }: Learner): Embedder {
    if (readsText) throw badUsage('vectors must go to a learner that takes features', { value: name });
    const { embedder } = this.#model;
    if (embedder) return embedder;
    throw badUsage('vectors must come from a model that has them, like prime', { value: this.learner });
  }

  /** The same classifier, which has another search find the nearest labels; vectors are in the order of the labels. */
  async withSearch(open: SearchMaker): Promise<Classifier> {
    const model = await this.#model.withSearch?.(open);
    if (model) return new Classifier({ ...this.#fields, model });
    throw badUsage('model must search among vectors of labels, like prime', { value: this.learner });
  }

  /** Share of the nearest labels that are found, where there are too many to look at all; measured in training. */
  get searchRecall(): number | undefined {
    return this.#model.searchRecall;
  }

  /** The same classifier with further labels, known by their names and examples; those without samples are taught anew. */
  async withLabels(added: readonly (Label & { examples?: string[] })[]): Promise<Classifier> {
    if (!this.#model.withLabels)
      throw badUsage('learner must be able to take labels without training', {
        value: this.learner,
        hint: 'train it again, or use prime',
      });
    const idle = [...this.vocabulary].filter((_, column) => this.counts[column] === 0);
    const known = new Map(idle.map((label) => [label.id, label]));
    const again = added.filter(({ id }) => known.has(id));
    if (again.length > 0) {
      const rest = await this.withoutLabels(again.map(({ id }) => id));
      return rest.withLabels(added.map((label) => ({ ...known.get(label.id), ...label })));
    }
    const vocabulary = this.vocabulary.clone();
    for (const { examples: _, ...label } of added) {
      if (label.id.trim() === '' || vocabulary.column(label.id) !== undefined)
        throw badUsage('a new label must have an id of its own', { value: label.id });
      vocabulary.describe([label]);
    }
    const labels = added.map(({ name, examples = [] }) => ({ text: name, examples }));
    const model = await this.#model.withLabels(labels);
    const counts = Uint32Array.from([...this.counts, ...labels.map(({ examples }) => examples.length)]);
    return new Classifier({ ...this.#fields, vocabulary, model, counts });
  }

  /** The same classifier without these labels. */
  async withoutLabels(ids: readonly string[]): Promise<Classifier> {
    if (!this.#model.withColumns)
      throw badUsage('learner must be able to forget labels', {
        value: this.learner,
        hint: 'exclude them instead',
      });
    const gone = new Set(ids.map((id) => this.#columnOf(id)));
    const columns = Uint32Array.from(this.counts.keys()).filter((column) => !gone.has(column));
    if (columns.length === 0) throw badUsage('at least one label must remain', { value: 0 });
    const vocabulary = new Vocabulary(Array.from(columns, (column) => this.vocabulary.label(column)));
    vocabulary.exclude(this.vocabulary.excludedIds.filter((id) => vocabulary.column(id) !== undefined));
    const counts = columns.map((column) => this.counts[column]);
    return new Classifier({
      ...this.#fields,
      vocabulary,
      model: await this.#model.withColumns(columns),
      counts,
    });
  }

  #columnOf(id: string): number {
    const column = this.vocabulary.column(id);
    if (column === undefined) throw badUsage('label id must be in the vocabulary', { value: id });
    return column;
  }

  /** Labels by descending score for every input, as a matrix over the vocabulary's columns. */
  async rank(inputs: Inputs, options: SuggestOptions = {}): Promise<Ranking> {
    const { top = 5, threads = 1, signal, progress } = options;
    checkPositive('top', top);
    checkPositive('threads', threads);
    const { partner, ...alone } = this.#fields;
    if (partner) return rankBoth(new Classifier(alone), partner, inputs, { ...options, top });
    const lanes = inNode ? threads : 1;
    const running = { threads: lanes, signal, progress };
    const features = await this.#features(inputs, running);
    checkBags(features, await findLearner(this.learner));
    return this.#model.predict(features, { ...running, top, excluded: this.vocabulary.excludedMask() });
  }

  /** The same classifier, whose rankings are blended with those of another one of the same labels. */
  blended(other: Classifier, how: Partial<BlendOptions> = {}): Classifier {
    return new Classifier({ ...this.#fields, partner: partnerOf(this, other, how) });
  }

  /** The best labels for every input, with their names. */
  async suggest(inputs: Inputs, options: SuggestOptions = {}): Promise<Suggestion[][]> {
    const ranking = await this.rank(inputs, options);
    const { threshold = 0 } = options;
    return Array.from({ length: ranking.rows }, (_, row) => {
      const scores = rowValues(ranking, row);
      return Array.from(rowIndices(ranking, row), (column, rank) => ({
        label: this.vocabulary.label(column).id,
        name: this.vocabulary.name(column),
        score: scores[rank],
      })).filter(({ score }) => score >= threshold);
    });
  }

  /** Why the first input got, or did not get, a label; undefined where the model never considered it. */
  async explain(inputs: Inputs, label: string): Promise<Explanation | undefined> {
    const column = this.#columnOf(label);
    if (!this.#model.explain) throw badUsage('learner must be able to explain', { value: this.learner });
    const features = await this.#features(inputs, { threads: 1 });
    return this.#model.explain(selectFeatures(features, [0]), column);
  }

  /** What each copy of a label stands for, in a model trained with overlapping clusters. */
  senses(label: string): LabelSense[] {
    const column = this.#columnOf(label);
    if (!this.#model.senses) throw this.#withoutSenses();
    return this.#model.senses(column).map((sense) => ({
      ...sense,
      words: sense.words
        .filter(({ feature }) => feature < this.features)
        .map(({ feature, ...rest }) => ({ word: this.featureName(feature), ...rest })),
      neighbours: sense.neighbours.map(({ label, similarity }) => ({
        label: this.vocabulary.label(label).id,
        name: this.vocabulary.name(label),
        similarity,
      })),
    }));
  }

  /**
   * The labels whose senses lie farthest apart, from 1 (no two training rows of different senses have a word in common)
   * to 0 (rows of different senses are as similar as rows of the same). Senses with few rows count less.
   */
  sensesTop(n: number): { label: string; name: string; apart: number }[] {
    checkPositive('n', n);
    if (!this.#model.sensesApart) throw this.#withoutSenses();
    return this.#model
      .sensesApart()
      .slice(0, n)
      .map(({ label, apart }) => ({
        label: this.vocabulary.label(label).id,
        name: this.vocabulary.name(label),
        apart,
      }));
  }

  /** How alike the labels are to the model, the most frequent ones at most. */
  labelMap(top = 200): LabelMap {
    checkPositive('top', top);
    const { vocabulary, counts } = this;
    return mapLabels({ ...this.#places(), vocabulary, counts }, top);
  }

  /** Where labels lie to the model, one row each; of `miml`, in the space of its instances. */
  labelVectors(): { labels: string[]; vectors: Dense } {
    const { labels, vectors } = this.#places();
    return { labels: Array.from(labels, (column) => this.vocabulary.label(column).id), vectors };
  }

  #places() {
    const places = this.#model.labelVectors?.();
    if (places) return places;
    throw badUsage('model must give labels a place', { value: this.learner, hint: 'train prime or miml' });
  }

  /** Labels as vectors, for neighbours and maps; made anew at every call. */
  labelSpace(): LabelSpace {
    const { size } = this.vocabulary;
    const weights = this.#model.labelWeights?.() ?? signedParts(this.#model.labelVectors?.(), size);
    if (weights) return new LabelSpace(weights);
    throw badUsage('learner must know what speaks for a label', { value: this.learner });
  }

  #withoutSenses() {
    return badUsage('model must have labels in several clusters', {
      value: this.learner,
      hint: 'train the tree learner with --set overlap=true, on more labels than its flatSize',
    });
  }

  /** Whether inputs are texts: trained on text, the model brings its own vectoriser. */
  get takesText(): boolean {
    return this.#preparation.vectoriser !== undefined || this.#preparation.plainText;
  }

  /** Refuses data that declares another number of sparse features than the model was trained on. */
  checkDeclared(sparse: number | undefined): void {
    const { width } = this.#model;
    if (this.takesText || sparse === undefined || sparse === width.sparse) return;
    throw otherFeatures(width, { sparse, dense: 0 });
  }

  /** How many features the model knows, sparse and dense together. */
  get features(): number {
    return this.#model.width.sparse + this.#model.width.dense;
  }

  /** What a feature column is called. */
  featureName(column: number): string {
    const { vectoriser, vectorWidth } = this.#preparation;
    const ofVector = column - (this.features - vectorWidth);
    if (ofVector >= 0 && vectorWidth > 0) return `vector ${ofVector + 1}`;
    const sparse = vectoriser ? this.#model.width.sparse : 0;
    if (vectoriser && column < sparse) return vectoriser.featureName(column);
    return this.#featureNames?.[column - sparse] ?? `feature ${column}`;
  }

  /** The places in a text that are features of the model, for highlighting. */
  spans(text: string): { start: number; end: number; column: number }[] {
    return this.#preparation.vectoriser?.spans(text) ?? [];
  }

  async save(parts: PartWriter): Promise<Json> {
    await parts.write('training', { counts: vector(this.counts) });
    const content: ClassifierContent = {
      learner: this.learner,
      options: this.options as Json,
      seed: this.seed,
      rows: this.rows,
      model: await this.#model.save(prefixedWriter('model', parts)),
      preparation: await this.#preparation.save(prefixedWriter('input', parts)),
      excluded: this.vocabulary.excludedIds,
      featureNames: this.#featureNames ?? null,
    };
    return content as unknown as Json;
  }

  static async load(
    content: ClassifierContent,
    vocabulary: Vocabulary,
    parts: PartReader,
  ): Promise<Classifier> {
    const learner = await findLearner(content.learner);
    const { counts } = await parts.read('training');
    vocabulary.exclude(content.excluded);
    return new Classifier({
      learner: content.learner,
      options: content.options as Record<string, unknown>,
      seed: content.seed,
      rows: content.rows,
      counts: counts.data as Uint32Array,
      vocabulary,
      model: await learner.load(content.model, prefixedReader('model', parts)),
      preparation: await Preparation.load(content.preparation, prefixedReader('input', parts)),
      featureNames: content.featureNames ?? undefined,
    });
  }

  async #features(inputs: Inputs, running: Running): Promise<Features> {
    return fitted(await this.#preparation.apply(inputs, running), this.#model.width);
  }
}
