// From what users have to what learners take: texts become TF-IDF rows, and vectors if an encoder is given; dense columns
// get one scale. Learned from the training data, saved with the model, applied to every input.
import type { Dataset, Features } from '../data/dataset.ts';
import { badInput } from '../errors.ts';
import type { Pattern } from '../math/csr.ts';
import { type Dense, joinColumns } from '../math/dense.ts';
import { choice, flag, type OptionTable, parseOptions } from '../options.ts';
import {
  type Json,
  type PartReader,
  type PartWriter,
  prefixedReader,
  prefixedWriter,
  vector,
} from '../parts.ts';
import type { Context } from '../progress.ts';
import { splitSentences } from '../text/sentences.ts';
import { textOptions, Vectoriser } from '../text/vectoriser.ts';
import type { Embedder, EmbedderConfig } from './encode/embedder.ts';
import { nameFeatures } from './label-names.ts';
import type { TrainingSet } from './learner.ts';
import { fitScaling, type Scaling, standardise } from './scaling.ts';

/** What to predict for: texts, or anything that holds texts or features, such as a data set. */
export type Inputs = string[] | Pick<Dataset, 'texts' | 'features'>;

/** How work on inputs runs. */
export type Running = Pick<Context, 'threads' | 'signal'> & Partial<Pick<Context, 'progress'>>;

const textPrefix = 'text.';
const splitName = 'text.split';
/**
 * Of vectors of texts beside TF-IDF rows of length one. An encoder knows the texts it was trained on better than others:
 * at full length learners would trust it too much.
 */
const usualVectorLength = 0.3;

export const preparationOptions: OptionTable = {
  ...Object.fromEntries(Object.entries(textOptions).map(([name, option]) => [textPrefix + name, option])),
  [splitName]: choice(
    'none',
    ['none', 'sentences'],
    'sentences: each text is a bag of its sentences, for learners that take bags',
  ),
  'dense.standardise': flag(true, 'give dense columns mean 0 and deviation 1, by the training data'),
};

/** What else there is to a preparation. */
interface How {
  /** Texts go to the model as they are. */
  plainText?: boolean;
  /** Texts are bags of sentences. */
  split?: boolean;
  /** Gives texts vectors, which follow the dense columns. */
  embedder?: Embedder;
  /** Of these vectors. */
  vectorLength?: number;
}

export class Preparation {
  /** Present where the model was trained on features of text. */
  readonly vectoriser: Vectoriser | undefined;
  readonly plainText: boolean;
  readonly #scaling: Scaling | undefined;
  readonly #split: boolean;
  readonly #embedder: Embedder | undefined;
  readonly #vectorLength: number;

  private constructor(
    vectoriser?: Vectoriser,
    scaling?: Scaling,
    { plainText = false, split = false, embedder, vectorLength = usualVectorLength }: How = {},
  ) {
    this.vectoriser = vectoriser;
    this.plainText = plainText;
    this.#scaling = scaling;
    this.#split = split;
    this.#embedder = embedder;
    this.#vectorLength = vectorLength;
  }

  /** Columns of the vectors of texts, the last of all. */
  get vectorWidth(): number {
    return this.#embedder?.width ?? 0;
  }

  /** For a learner that reads texts itself. */
  static ofPlainText({ texts }: Dataset): { preparation: Preparation; features: Features } {
    if (!texts) throw badInput('training data must have text for this learner');
    return { preparation: new Preparation(undefined, undefined, { plainText: true }), features: { texts } };
  }

  /**
   * Learns from a data set; `options` are checked values of `preparationOptions`. Where there is an embedder its vectors
   * of the texts are features beside all others.
   */
  static async fit(
    { texts, features = {} }: Dataset,
    options: Record<string, unknown>,
    context: Context,
    embedder?: Embedder,
  ): Promise<{ preparation: Preparation; features: Features }> {
    const scaling = options['dense.standardise'] && features.dense ? fitScaling(features.dense) : undefined;
    const dense = scaling && features.dense ? standardise(features.dense, scaling) : features.dense;
    if (features.sparse || (dense && !texts)) {
      const preparation = new Preparation(undefined, scaling, { embedder });
      return {
        preparation,
        features: { ...features, ...(await preparation.#withVectors(dense, texts, context)) },
      };
    }
    if (!texts) throw badInput('training data must have text or features');
    const isOfText = (name: string) => name.startsWith(textPrefix) && name !== splitName;
    const ofText = Object.entries(options).filter(([name]) => isOfText(name));
    const chosen = ofText.map(([name, value]) => [name.slice(textPrefix.length), value]);
    const split = options[splitName] === 'sentences';
    if (split && dense)
      throw badInput('texts beside dense features must be whole', { hint: 'text.split=none' });
    const pieces = split ? bagsOfSentences(texts) : { texts, bags: undefined };
    const fitted = await Vectoriser.fit(pieces.texts, Object.fromEntries(chosen), context);
    const preparation = new Preparation(fitted.vectoriser, scaling, { split, embedder });
    const beside = await preparation.#withVectors(dense, pieces.texts, context);
    return { preparation, features: { sparse: fitted.features, ...beside, bags: pieces.bags } };
  }

  async #withVectors(
    dense: Dense | undefined,
    texts: readonly string[] | undefined,
    running: Running,
  ): Promise<Pick<Features, 'dense' | 'denseLength'>> {
    if (!this.#embedder) return { dense };
    const vectors = await this.#embedder.embed(checkTexts(texts), running);
    return { dense: dense ? joinColumns(dense, vectors) : vectors, denseLength: this.#vectorLength };
  }

  async apply(inputs: Inputs, running: Running): Promise<Features> {
    const { texts, features = {} } = Array.isArray(inputs) ? { texts: inputs } : inputs;
    if (this.plainText) return { texts: checkTexts(texts) };
    if (this.#split && features.bags)
      throw badInput('texts in groups must be whole: the model splits each into its sentences');
    const pieces = this.#split ? bagsOfSentences(checkTexts(texts)) : { texts, bags: features.bags };
    const sparse = this.vectoriser
      ? await this.vectoriser.transform(checkTexts(pieces.texts), running)
      : features.sparse;
    const scaling = this.#scaling;
    // Another number of columns is refused by the classifier, which knows what the model takes.
    const fits = scaling && features.dense?.cols === scaling.mean.length;
    const dense = fits && features.dense ? standardise(features.dense, scaling) : features.dense;
    return { sparse, ...(await this.#withVectors(dense, pieces.texts, running)), bags: pieces.bags };
  }

  async save(parts: PartWriter): Promise<Json> {
    if (this.#scaling) {
      const { mean, scale } = this.#scaling;
      await parts.write('dense', { mean: vector(mean), scale: vector(scale) });
    }
    const text = this.vectoriser ? await this.vectoriser.save(parts) : null;
    const vectors = this.#embedder ? await this.#embedder.save(prefixedWriter('vectors', parts)) : null;
    const { plainText } = this;
    return {
      text,
      standardised: this.#scaling !== undefined,
      plainText,
      split: this.#split,
      vectors: vectors as Json,
      vectorLength: this.#vectorLength,
    };
  }

  static async load(config: Json, parts: PartReader): Promise<Preparation> {
    const {
      text,
      standardised,
      vectors,
      vectorLength = 1,
      ...rest
    } = config as {
      text: Json;
      standardised: boolean;
      /** Absent in older models. */
      plainText?: boolean;
      split?: boolean;
      vectors?: Json;
      vectorLength?: number;
    };
    const vectoriser = text === null ? undefined : await Vectoriser.load(text, parts);
    const embedder = vectors ? await loadEmbedder(vectors, parts) : undefined;
    const how = { ...rest, embedder, vectorLength };
    if (!standardised) return new Preparation(vectoriser, undefined, how);
    const { mean, scale } = await parts.read('dense');
    const scaling = { mean: mean.data as Float32Array, scale: scale.data as Float32Array };
    return new Preparation(vectoriser, scaling, how);
  }
}

/** Most models do without the networks that this loads. */
async function loadEmbedder(config: Json, parts: PartReader): Promise<Embedder> {
  const { Embedder } = await import('./encode/embedder.ts');
  return Embedder.load(config as unknown as EmbedderConfig, prefixedReader('vectors', parts));
}

/** All sentences one after the other, and which of them each text has; a text without any is one empty sentence. */
function bagsOfSentences(texts: readonly string[]): { texts: string[]; bags: Pattern } {
  const split = texts.map((text) => splitSentences(text));
  const all = split.flatMap((sentences) => (sentences.length > 0 ? sentences : ['']));
  const indptr = new Uint32Array(texts.length + 1);
  split.forEach(({ length }, i) => {
    indptr[i + 1] = indptr[i] + Math.max(length, 1);
  });
  const indices = Uint32Array.from(all.keys());
  return { texts: all, bags: { rows: texts.length, cols: all.length, indptr, indices } };
}

function checkTexts(texts: readonly string[] | undefined): string[] {
  if (!texts) throw badInput('inputs must have text: the model was trained on text');
  const wrong = texts.findIndex((text) => typeof text !== 'string');
  if (wrong >= 0) throw badInput(`text ${wrong + 1} must be a string`, { value: texts[wrong] });
  return texts as string[];
}

/** Imputing compares features: of a set that goes to its learner as texts, they are made for that alone. */
export async function imputedSet(
  set: TrainingSet,
  preparation: Preparation,
  impute: (set: TrainingSet) => Promise<TrainingSet>,
  context: Context,
): Promise<TrainingSet> {
  const made = preparation.plainText
    ? await Preparation.fit(set, parseOptions(preparationOptions), context)
    : { preparation, features: set.features };
  const names = await nameFeatures(set, made.preparation.vectoriser, context);
  const imputed = await impute({ ...set, features: made.features, nameFeatures: names });
  if (!preparation.plainText) return imputed;
  return { ...imputed, features: { texts: imputed.texts } };
}
