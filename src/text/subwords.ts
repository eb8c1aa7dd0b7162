// Texts to sequences of token numbers, by a Hugging Face tokenizer.json: someone else's, or one that
// subword-trainer.ts learned from the user's own texts. The words of TF-IDF are in tokenise.ts.
import type { Tokenizer } from '@huggingface/tokenizers';
import { badInput, badUsage } from '../errors.ts';
import type { Json } from '../parts.ts';

/** Token numbers of many texts, one after the other. */
export interface TokenRows {
  rows: number;
  /** rows + 1 offsets into `ids`. */
  indptr: Uint32Array;
  ids: Uint32Array;
}

/** Any text will do that is not empty: where its own tokens stand tells which ones are put around every text. */
const probe = 'a';

export class Subwords {
  /** The content of tokenizer.json. */
  readonly file: Json;
  /** One more than the highest token number. */
  readonly size: number;
  readonly #tokenizer: Tokenizer;
  /** Tokens put before and after every text, such as [CLS] and [SEP]. */
  readonly #before: number[];
  readonly #after: number[];

  private constructor(file: Json, tokenizer: Tokenizer) {
    this.file = file;
    this.#tokenizer = tokenizer;
    this.size = [...tokenizer.get_vocab().values()].reduce((size, id) => Math.max(size, id + 1), 0);
    const bare = this.#own(probe);
    const { ids } = tokenizer.encode(probe);
    const start = ids.findIndex((_, i) => bare.every((id, j) => ids[i + j] === id));
    this.#before = ids.slice(0, Math.max(start, 0));
    this.#after = ids.slice(Math.max(start, 0) + bare.length);
  }

  /** From the content of a tokenizer.json; `name` is what to call the file in messages. */
  static async from(file: Json, name = 'tokenizer.json'): Promise<Subwords> {
    // On demand: pages that predict with other models do without the package.
    const { Tokenizer } = await import('@huggingface/tokenizers');
    let subwords: Subwords;
    try {
      subwords = new Subwords(file, new Tokenizer(withDefaults(file), {}));
    } catch (error) {
      throw badInput('a tokenizer must be one that Hugging Face tokenizers can read', {
        file: name,
        value: (error as Error).message,
      });
    }
    if (subwords.size === 0) throw badInput('a tokenizer must have tokens', { file: name });
    return subwords;
  }

  token(id: number): string {
    return this.#tokenizer.id_to_token(id) ?? '';
  }

  /** Sequences of at most `longest` tokens; of longer texts the end is left out. */
  encode(texts: readonly string[], longest: number): TokenRows {
    const around = this.#before.length + this.#after.length;
    if (longest <= around)
      throw badUsage(`texts must be allowed more than ${around} tokens`, { value: longest });
    const indptr = new Uint32Array(texts.length + 1);
    const ids: number[] = [];
    texts.forEach((text, row) => {
      ids.push(...this.#before, ...this.#own(text).slice(0, longest - around), ...this.#after);
      indptr[row + 1] = ids.length;
    });
    return { rows: texts.length, indptr, ids: Uint32Array.from(ids) };
  }

  #own(text: string): number[] {
    return this.#tokenizer.encode(text, { add_special_tokens: false }).ids;
  }
}

/** Files may leave out what they do not need; the library reads all of it. */
function withDefaults(file: Json): object {
  if (typeof file !== 'object' || file === null || Array.isArray(file)) throw new Error('not an object');
  const empty = { normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null };
  return { ...empty, added_tokens: [], ...file };
}
