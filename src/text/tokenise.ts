// Text → words. Words come folded: in lower case, canonically composed and, on request, without accents. Knows nothing
// of n-grams, stems or vocabularies.
//
// `unicode` words are letters, digits, underscores and the marks on them, at least two characters (Python's \w leaves
// marks out and so cuts Hindi words apart). Scripts written without spaces give overlapping pairs of characters.
// `sklearn` words are exactly those of scikit-learn's default pattern `(?u)\b\w\w+\b` after `str.lower()`.
import { decode, enlarge, toBlocks } from './utf8.ts';

export type WordRule = 'unicode' | 'sklearn';

/** Takes one folded word: `blocks[start..end)`, valid only during the call. */
export type TakeWord = (blocks: Int32Array, start: number, end: number) => void;

/** A folded word and its place in the folded text. */
export interface PlacedWord {
  word: string;
  start: number;
}

const unspaced = ['Han', 'Hira', 'Kana', 'Bopo', 'Thai', 'Laoo', 'Khmr', 'Mymr']
  .map((script) => `\\p{scx=${script}}`)
  .join('');
const pairedRun = `(?=[${unspaced}])[\\p{L}\\p{N}](?:(?=[${unspaced}])[\\p{L}\\p{N}]|\\p{M})*`;
const wordRun = `(?![${unspaced}])[\\p{L}\\p{N}_](?:(?![${unspaced}])[\\p{L}\\p{N}_]|\\p{M})*`;
const unicodeRun = new RegExp(`(${pairedRun})|${wordRun}`, 'gu');
const sklearnRun = /[\p{L}\p{N}_]+/gu;
const isWordCharacter = /[\p{L}\p{N}_]/u;
const isUnspaced = new RegExp(`[${unspaced}]`, 'u');
/** What normalisation may join to the character before it: marks, and Korean vowels and finals. */
const joinsPrevious = /[\p{M}\u1160-\u11ff\ud7b0-\ud7ff]/u;
/** A character with what joins it: pieces that fold the same alone and in their text. */
const cluster = new RegExp(`[^]${joinsPrevious.source}*`, 'gu');
/** Accents proper; the vowel signs of Hindi or Hebrew are other marks and stay. */
const accents = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]/g;

const separator = 0;
/** What one character alone cannot decide: marks, final sigma, scripts without spaces, all beyond U+FFFF. */
const special = 1;

export class Tokeniser {
  readonly #rule: WordRule;
  readonly #stripAccents: boolean;
  readonly #foldTable: Uint16Array;
  /** The folded words of the text at hand: word i is `#blocks[#starts[i]..#starts[i + 1])`. */
  #blocks = new Int32Array(256);
  #bytes = new Uint8Array(this.#blocks.buffer);
  #starts = new Uint32Array(256);

  constructor(rule: WordRule, stripAccents: boolean) {
    this.#rule = rule;
    this.#stripAccents = stripAccents;
    this.#foldTable = foldTable(rule, stripAccents);
  }

  /** Gives every word of the UTF-8 text `bytes[from..to)` to `take`, in order. */
  words(bytes: Uint8Array, from: number, to: number, take: TakeWord): void {
    const count = this.#foldWords(bytes, from, to);
    for (let i = 0; i < count; i++) take(this.#blocks, this.#starts[i], this.#starts[i + 1]);
    if (count >= 0) return;
    for (const { word } of this.placedWords(decode(bytes, from, to))) {
      const blocks = toBlocks(word);
      take(blocks, 0, blocks.length);
    }
  }

  /** The same words, with where they are: the general and slow way, which `words` takes only where it must. */
  *placedWords(text: string): Generator<PlacedWord> {
    const runs = this.#fold(text).matchAll(this.#rule === 'unicode' ? unicodeRun : sklearnRun);
    for (const { 0: run, 1: paired, index } of runs) {
      if (paired !== undefined) yield* characterPairs(paired, index);
      else if (run.length > 2 || (run.length === 2 && run.charCodeAt(0) === run.codePointAt(0)))
        yield { word: run, start: index };
    }
  }

  /** Where the folded text comes from: what is at [start, end) in it was written at [starts[start], ends[end]). */
  origins(text: string): { starts: Uint32Array; ends: Uint32Array } {
    const { length } = this.#fold(text);
    const [starts, ends] = [new Uint32Array(length + 1), new Uint32Array(length + 1)];
    let at = 0;
    for (const { 0: piece, index } of text.matchAll(cluster)) {
      const size = this.#fold(piece).length;
      starts.fill(index, at, at + size);
      ends.fill(index + piece.length, at + 1, at + size + 1);
      at += size;
    }
    return { starts, ends };
  }

  /** Fills `#blocks` and `#starts` and returns the number of words; -1 when the table cannot fold the text. */
  #foldWords(bytes: Uint8Array, from: number, to: number): number {
    // Folding and padding at most double a word and the separator after it.
    if (to - from + 4 > 2 * this.#blocks.length) {
      this.#blocks = new Int32Array(to - from + 4);
      this.#bytes = new Uint8Array(this.#blocks.buffer);
    }
    if (to - from + 2 > this.#starts.length) this.#starts = enlarge(this.#starts, 2 * (to - from));
    const folded = this.#bytes;
    const starts = this.#starts;
    const table = this.#foldTable;
    let [count, start, size] = [0, 0, 0];
    for (let i = from; i <= to; i++) {
      const byte = i < to ? bytes[i] : 0;
      if (byte < 0x80) {
        const unit = table[byte];
        folded[size] = unit;
        if (unit !== separator) {
          size++;
          continue;
        }
      } else {
        if (byte >= 0xf0) return -1;
        const isLong = byte >= 0xe0;
        const point = isLong
          ? ((byte & 0x0f) << 12) | ((bytes[i + 1] & 0x3f) << 6) | (bytes[i + 2] & 0x3f)
          : ((byte & 0x1f) << 6) | (bytes[i + 1] & 0x3f);
        i += isLong ? 2 : 1;
        const unit = table[point];
        if (unit === special) return -1;
        if (unit !== separator) {
          size = writeUnit(folded, size, unit);
          continue;
        }
      }
      if (size - start <= sequenceLength(folded[start])) {
        size = start;
        continue;
      }
      // Three zeros whatever the length: a loop that stops where needed costs more in wrong guesses.
      folded[size] = 0;
      folded[size + 1] = 0;
      folded[size + 2] = 0;
      size = (size + 3) & ~3;
      start = size;
      starts[++count] = size >> 2;
    }
    return count;
  }

  #fold(text: string): string {
    return fold(text, this.#rule, this.#stripAccents);
  }
}

/** Overlapping pairs of characters; a character alone is a word. */
function* characterPairs(run: string, index: number): Generator<PlacedWord> {
  const characters = Array.from(run.matchAll(cluster), ({ 0: word, index: at }) => ({
    word,
    start: index + at,
  }));
  if (characters.length === 1) yield characters[0];
  for (let i = 1; i < characters.length; i++) {
    const [first, second] = [characters[i - 1], characters[i]];
    yield { word: first.word + second.word, start: first.start };
  }
}

/** UTF-8 of a character below U+10000. */
function writeUnit(bytes: Uint8Array, at: number, unit: number): number {
  let end = at;
  if (unit < 0x80) {
    bytes[end++] = unit;
  } else {
    if (unit < 0x800) {
      bytes[end++] = 0xc0 | (unit >> 6);
    } else {
      bytes[end++] = 0xe0 | (unit >> 12);
      bytes[end++] = 0x80 | ((unit >> 6) & 0x3f);
    }
    bytes[end++] = 0x80 | (unit & 0x3f);
  }
  return end;
}

/** Bytes of the character that starts with this byte; a word must be longer than one character. */
const sequenceLength = (byte: number) => (byte < 0x80 ? 1 : byte < 0xe0 ? 2 : 3);

function fold(text: string, rule: WordRule, stripAccents: boolean): string {
  const lower = text.toLowerCase();
  const folded = rule === 'unicode' ? lower.normalize('NFC') : lower;
  return stripAccents ? folded.normalize('NFD').replace(accents, '').normalize('NFC') : folded;
}

const tables = new Map<string, Uint16Array>();

/** For each UTF-16 unit: the unit it folds to, `separator`, or `special`. Made once. */
function foldTable(rule: WordRule, stripAccents: boolean): Uint16Array {
  const key = `${rule} ${stripAccents}`;
  const known = tables.get(key);
  if (known) return known;
  const table = new Uint16Array(65536);
  for (let unit = 0; unit < table.length; unit++) table[unit] = foldUnit(unit, rule, stripAccents);
  tables.set(key, table);
  return table;
}

function foldUnit(unit: number, rule: WordRule, stripAccents: boolean): number {
  const character = String.fromCharCode(unit);
  const normalises = rule === 'unicode' || stripAccents;
  const isSurrogate = unit >= 0xd800 && unit <= 0xdfff;
  if (isSurrogate || character === 'Σ' || (normalises && joinsPrevious.test(character))) return special;
  const folded = fold(character, rule, stripAccents);
  if (!isWordCharacter.test(folded)) return separator;
  if (folded.length > 1 || (rule === 'unicode' && isUnspaced.test(folded))) return special;
  return folded.charCodeAt(0);
}
