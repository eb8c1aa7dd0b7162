// Learns a vocabulary of subwords from texts: the pair of neighbours that occurs most often becomes a new subword, again
// and again. Written as a tokenizer.json of the WordPiece kind, as BERT has it.
import { BertNormalizer, BertPreTokenizer } from '@huggingface/tokenizers';
import { badInput } from '../errors.ts';
import type { Json } from '../parts.ts';

export interface SubwordOptions {
  /** Tokens at most, those of single characters and the special ones among them. */
  size: number;
  /** Pairs that occur less often do not become subwords. */
  minCount: number;
  /** Letters lose case and accents. */
  lowercase: boolean;
}

/** [PAD] has number 0, whatever was learned. */
const specials = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'];
/** Rarer characters than so many are unknown ones. */
const alphabetSize = 1000;
/** Longer words are nobody's. */
const longestWord = 100;
const inside = '##';

export function trainSubwords(texts: Iterable<string>, options: SubwordOptions): Json {
  const normalizer = {
    type: 'BertNormalizer',
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: options.lowercase,
  };
  const vocabulary = learn(countWords(texts, normalizer), options);
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: specials.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer,
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: around,
    decoder: { type: 'WordPiece', prefix: inside, cleanup: true },
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: inside,
      max_input_chars_per_word: longestWord,
      vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
    },
  };
}

/** [CLS] before and [SEP] after every text. */
const around: Json = {
  type: 'TemplateProcessing',
  single: [
    { SpecialToken: { id: '[CLS]', type_id: 0 } },
    { Sequence: { id: 'A', type_id: 0 } },
    { SpecialToken: { id: '[SEP]', type_id: 0 } },
  ],
  pair: [],
  special_tokens: Object.fromEntries(
    ['[CLS]', '[SEP]'].map((id) => [id, { id, ids: [specials.indexOf(id)], tokens: [id] }]),
  ),
};

function countWords(texts: Iterable<string>, normalizer: object): Map<string, number> {
  const normalise = new BertNormalizer(normalizer);
  const split = new BertPreTokenizer();
  const counts = new Map<string, number>();
  for (const text of texts)
    for (const word of split.pre_tokenize(normalise.normalize(text)))
      counts.set(word, (counts.get(word) ?? 0) + 1);
  if (counts.size === 0) throw badInput('texts must have words to learn subwords from');
  return counts;
}

/** A word as the numbers of its subwords so far. */
interface Word {
  parts: number[];
  count: number;
}

/** Two neighbours: how often they occur, and words in which they did when they were last seen there. */
interface Pair {
  left: number;
  right: number;
  count: number;
  words: Set<Word>;
}

function learn(counts: Map<string, number>, { size, minCount }: SubwordOptions): string[] {
  const tokens = [...specials];
  const words = spell(counts, tokens);
  const pairs = new Pairs();
  for (const word of words) pairs.enter(word);
  while (tokens.length < size) {
    const pair = pairs.best();
    if (!pair || pair.count < minCount) break;
    const joined = tokens.push(tokens[pair.left] + tokens[pair.right].slice(inside.length)) - 1;
    for (const word of [...pair.words]) {
      pairs.leave(word);
      word.parts = join(word.parts, pair, joined);
      pairs.enter(word);
    }
  }
  return tokens;
}

/** Words as single characters, which become tokens; words with a rare character are left out. */
function spell(counts: Map<string, number>, tokens: string[]): Word[] {
  const characters = new Map<string, number>();
  const pieces = Array.from(counts, ([word, count]) => {
    const parts = [...word].map((character, i) => (i === 0 ? character : inside + character));
    for (const part of parts) characters.set(part, (characters.get(part) ?? 0) + count);
    return { parts, count };
  });
  const kept = [...characters].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, alphabetSize);
  const numbers = new Map(kept.map(([part]) => [part, tokens.push(part) - 1]));
  return pieces
    .filter(({ parts }) => parts.length <= longestWord && parts.every((part) => numbers.has(part)))
    .map(({ parts, count }) => ({ parts: parts.map((part) => numbers.get(part) ?? 0), count }));
}

function join(parts: number[], { left, right }: Pair, joined: number): number[] {
  const result: number[] = [];
  for (let i = 0; i < parts.length; i++) {
    const here = parts[i] === left && parts[i + 1] === right;
    result.push(here ? joined : parts[i]);
    if (here) i++;
  }
  return result;
}

interface Entry {
  count: number;
  pair: Pair;
}

/** All pairs of neighbours, the most frequent first at hand; ties by the lowest numbers. */
class Pairs {
  readonly #pairs = new Map<number, Pair>();
  /** A heap of pairs with the count they had when they were put in; whenever it changes they are put in again. */
  readonly #heap: Entry[] = [];
  readonly #changed = new Set<Pair>();

  enter(word: Word): void {
    for (const pair of this.#of(word)) {
      pair.count += word.count;
      pair.words.add(word);
      this.#changed.add(pair);
    }
  }

  leave(word: Word): void {
    for (const pair of this.#of(word)) {
      pair.count -= word.count;
      pair.words.delete(word);
      this.#changed.add(pair);
    }
  }

  best(): Pair | undefined {
    for (const pair of this.#changed) if (pair.count > 0) this.#push({ count: pair.count, pair });
    this.#changed.clear();
    for (;;) {
      const top = this.#pop();
      if (!top || top.count === top.pair.count) return top?.pair;
    }
  }

  *#of({ parts }: Word): Generator<Pair> {
    for (let i = 1; i < parts.length; i++) {
      const [left, right] = [parts[i - 1], parts[i]];
      const key = left * 2 ** 24 + right;
      let pair = this.#pairs.get(key);
      if (!pair) {
        pair = { left, right, count: 0, words: new Set() };
        this.#pairs.set(key, pair);
      }
      yield pair;
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!before(heap[at], heap[above])) break;
      [heap[at], heap[above]] = [heap[above], heap[at]];
      at = above;
    }
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (!last || heap.length === 0) return top;
    heap[0] = last;
    for (let at = 0; ; ) {
      let below = 2 * at + 1;
      if (below >= heap.length) return top;
      if (below + 1 < heap.length && before(heap[below + 1], heap[below])) below++;
      if (!before(heap[below], heap[at])) return top;
      [heap[at], heap[below]] = [heap[below], heap[at]];
      at = below;
    }
  }
}

const before = (a: Entry, b: Entry): boolean =>
  a.count > b.count ||
  (a.count === b.count &&
    (a.pair.left < b.pair.left || (a.pair.left === b.pair.left && a.pair.right < b.pair.right)));
