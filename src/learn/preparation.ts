// From what users have to what learners take: texts become TF-IDF rows, dense columns get one scale. Learned from the
// training data, saved with the model, applied to every input.
import type { Dataset, Features } from '../data/dataset.ts';
import { badInput } from '../errors.ts';
import { flag, type OptionTable } from '../options.ts';
import { type Json, type PartReader, type PartWriter, vector } from '../parts.ts';
import type { Context } from '../progress.ts';
import { textOptions, Vectoriser } from '../text/vectoriser.ts';
import { fitScaling, type Scaling, standardise } from './scaling.ts';

/** What to predict for: texts, or anything that holds texts or features, such as a data set. */
export type Inputs = string[] | Pick<Dataset, 'texts' | 'features'>;

/** How work on inputs runs. */
export type Running = Pick<Context, 'threads' | 'signal'> & Partial<Pick<Context, 'progress'>>;

const textPrefix = 'text.';

export const preparationOptions: OptionTable = {
  ...Object.fromEntries(Object.entries(textOptions).map(([name, option]) => [textPrefix + name, option])),
  'dense.standardise': flag(true, 'give dense columns mean 0 and deviation 1, by the training data'),
};

export class Preparation {
  /** Present where the model was trained on features of text. */
  readonly vectoriser: Vectoriser | undefined;
  /** Texts go to the model as they are. */
  readonly plainText: boolean;
  readonly #scaling: Scaling | undefined;

  private constructor(vectoriser?: Vectoriser, scaling?: Scaling, plainText = false) {
    this.vectoriser = vectoriser;
    this.plainText = plainText;
    this.#scaling = scaling;
  }

  /** For a learner that reads texts itself. */
  static ofPlainText({ texts }: Dataset): { preparation: Preparation; features: Features } {
    if (!texts) throw badInput('training data must have text for this learner');
    return { preparation: new Preparation(undefined, undefined, true), features: { texts } };
  }

  /** Learns from a data set; `options` are checked values of `preparationOptions`. */
  static async fit(
    { texts, features = {} }: Dataset,
    options: Record<string, unknown>,
    context: Context,
  ): Promise<{ preparation: Preparation; features: Features }> {
    const scaling = options['dense.standardise'] && features.dense ? fitScaling(features.dense) : undefined;
    const dense = scaling && features.dense ? standardise(features.dense, scaling) : features.dense;
    if (features.sparse || (dense && !texts)) {
      return { preparation: new Preparation(undefined, scaling), features: { ...features, dense } };
    }
    if (!texts) throw badInput('training data must have text or features');
    const ofText = Object.entries(options).filter(([name]) => name.startsWith(textPrefix));
    const chosen = ofText.map(([name, value]) => [name.slice(textPrefix.length), value]);
    const { vectoriser, features: sparse } = await Vectoriser.fit(texts, Object.fromEntries(chosen), context);
    return { preparation: new Preparation(vectoriser, scaling), features: { sparse, dense } };
  }

  async apply(inputs: Inputs, running: Running): Promise<Features> {
    const { texts, features = {} } = Array.isArray(inputs) ? { texts: inputs } : inputs;
    if (this.plainText) return { texts: checkTexts(texts) };
    const sparse = this.vectoriser
      ? await this.vectoriser.transform(checkTexts(texts), running)
      : features.sparse;
    const scaling = this.#scaling;
    // Another number of columns is refused by the classifier, which knows what the model takes.
    const fits = scaling && features.dense?.cols === scaling.mean.length;
    return { sparse, dense: fits && features.dense ? standardise(features.dense, scaling) : features.dense };
  }

  async save(parts: PartWriter): Promise<Json> {
    if (this.#scaling) {
      const { mean, scale } = this.#scaling;
      await parts.write('dense', { mean: vector(mean), scale: vector(scale) });
    }
    const text = this.vectoriser ? await this.vectoriser.save(parts) : null;
    return { text, standardised: this.#scaling !== undefined, plainText: this.plainText };
  }

  static async load(config: Json, parts: PartReader): Promise<Preparation> {
    const { text, standardised, plainText } = config as {
      text: Json;
      standardised: boolean;
      /** Absent in older models. */
      plainText?: boolean;
    };
    const vectoriser = text === null ? undefined : await Vectoriser.load(text, parts);
    if (!standardised) return new Preparation(vectoriser, undefined, plainText);
    const { mean, scale } = await parts.read('dense');
    return new Preparation(vectoriser, {
      mean: mean.data as Float32Array,
      scale: scale.data as Float32Array,
    });
  }
}

function checkTexts(texts: readonly string[] | undefined): string[] {
  if (!texts) throw badInput('inputs must have text: the model was trained on text');
  const wrong = texts.findIndex((text) => typeof text !== 'string');
  if (wrong >= 0) throw badInput(`text ${wrong + 1} must be a string`, { value: texts[wrong] });
  return texts as string[];
}
