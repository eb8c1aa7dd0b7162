// The text room's rules read slowly: words character by character, TF-IDF with maps. What the fast code is tested
// against, and the texts it is tested on.
import fc from 'fast-check';
import type { WordRule } from '../src/text/tokenise.ts';
import type { TextOptions } from '../src/text/vectoriser.ts';

/** Pieces that are hard to fold, cut or place; some join their neighbours. */
export const trickyText = fc
  .array(
    fc.constantFrom(
      ...[
        'a',
        'B',
        'q',
        'word',
        'é',
        'É',
        'e\u0301',
        'E\u0301\u0327',
        'İ',
        'I\u0307',
        'ß',
        'ẞ',
        'Σ',
        'ΑΣ',
        'ΒΣΣ',
        'J\u030c',
      ],
      ...[
        '\u212a',
        '\u212b',
        'Ⱥ',
        'ſ',
        'ŉ',
        '1',
        '²',
        '٣',
        '_',
        ' ',
        ' ',
        ' ',
        '\n',
        '-',
        "'",
        '.',
        '\u00ad',
        '=\u0338',
        '\u0301',
      ],
      ...[
        '漢',
        '字',
        'ひ',
        'カ\u3099',
        'ー',
        '〇',
        'ไ',
        'ที่',
        'ย',
        'ພາ',
        'ကို',
        'हिन्दी',
        'क\u093c',
        'עִבְ',
        '각',
        'ᄀ',
        'ᅡ',
        'ᆨ',
      ],
      ...['𝐀', '𐐀', '𠀀', '😀', '\ud835', '\udc00', '\ufeff', '\u0000', '\u200d', '豈', 'ﬁ', '–'],
    ),
    { maxLength: 14 },
  )
  .map((pieces) => pieces.join(''));

const isLetter = (c: string) => /^[\p{L}\p{N}_]$/u.test(c);
const isMark = (c: string) => /^\p{M}$/u.test(c);
const joins = (c: string) => isMark(c) || /^[\u1160-\u11ff\ud7b0-\ud7ff]$/u.test(c);
const scripts = ['Han', 'Hiragana', 'Katakana', 'Bopomofo', 'Thai', 'Lao', 'Khmer', 'Myanmar'];
const isUnspaced = (c: string) =>
  scripts.some((s) => new RegExp(`^\\p{Script_Extensions=${s}}$`, 'u').test(c));

/** The rule, character by character, with no tables and no runs. */
export function slowWords(text: string, rule: WordRule, stripAccents: boolean): string[] {
  let folded = text.toLowerCase();
  if (rule === 'unicode') folded = folded.normalize('NFC');
  if (stripAccents) {
    const isAccent = (c: string) =>
      /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]/.test(c);
    folded = [...folded.normalize('NFD')]
      .filter((c) => !isAccent(c))
      .join('')
      .normalize('NFC');
  }
  const words: string[] = [];
  let run: string[] = [];
  let paired = false;
  const end = () => {
    if (!paired && run.length >= 2) words.push(run.join(''));
    if (paired) {
      const units: string[] = [];
      for (const c of run) units.length > 0 && joins(c) ? units.push(units.pop() + c) : units.push(c);
      if (units.length === 1) words.push(units[0]);
      for (let i = 1; i < units.length; i++) words.push(units[i - 1] + units[i]);
    }
    run = [];
  };
  for (const c of folded) {
    if (rule === 'unicode' && isMark(c) && run.length > 0) {
      run.push(c);
    } else if (isLetter(c)) {
      const isPaired = rule === 'unicode' && isUnspaced(c);
      if (isPaired !== paired) end();
      paired = isPaired;
      run.push(c);
    } else {
      end();
    }
  }
  end();
  return words;
}

/** Terms of a text by name, in any order. */
export function slowTerms(
  text: string,
  options: TextOptions,
  stem: (word: string) => string,
  stopWords: string[],
) {
  const { ngrams, charMin, charMax } = options;
  const words = slowWords(text, options.words, options.accents === 'strip').filter(
    (w) => !stopWords.includes(w),
  );
  const terms: string[] = [];
  for (let n = 1; n <= ngrams; n++)
    for (let i = 0; i + n <= words.length; i++)
      terms.push(
        words
          .slice(i, i + n)
          .map(stem)
          .join(' '),
      );
  for (const word of words) {
    const padded = [...` ${word} `];
    for (let n = charMin; n <= charMax; n++) {
      if (n >= padded.length) {
        terms.push(`~${padded.join('')}`);
        break;
      }
      for (let i = 0; i + n <= padded.length; i++) terms.push(`~${padded.slice(i, i + n).join('')}`);
    }
  }
  return terms;
}

/** Rows as name → value, and the names in column order. */
export function slowFit(documents: string[][], options: TextOptions) {
  const frequency = new Map<string, number>();
  for (const terms of documents)
    for (const term of new Set(terms)) frequency.set(term, (frequency.get(term) ?? 0) + 1);
  const isKept = (count: number) =>
    count >= options.minDocuments && count <= options.maxShare * documents.length;
  let names = [...frequency].filter(([, count]) => isKept(count)).map(([name]) => name);
  const count = (name: string) => frequency.get(name) ?? 0;
  names.sort((a, b) => count(b) - count(a) || Buffer.compare(Buffer.from(a), Buffer.from(b)));
  if (options.maxFeatures > 0) names = names.slice(0, options.maxFeatures);
  const idf = (name: string) => Math.log((1 + documents.length) / (1 + count(name))) + 1;
  const rows = documents.map((terms) => slowRow(terms, new Set(names), options.idf ? idf : () => 1, options));
  return { names, rows };
}

function slowRow(
  terms: string[],
  known: Set<string>,
  idf: (name: string) => number,
  { sublinear, normalise }: TextOptions,
): Map<string, number> {
  const row = new Map<string, number>();
  for (const term of terms) if (known.has(term)) row.set(term, (row.get(term) ?? 0) + 1);
  for (const [name, n] of row) row.set(name, (sublinear ? 1 + Math.log(n) : n) * idf(name));
  const length = Math.hypot(...row.values());
  if (normalise) for (const [name, value] of row) row.set(name, value / length);
  return row;
}
