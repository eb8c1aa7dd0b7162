import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../parts.ts';
import { trainSubwords } from './subword-trainer.ts';
import { Subwords } from './subwords.ts';

const options = { size: 60, minCount: 2, lowercase: true };
const texts = ['The violin and the viola', 'A history of the violin', 'violins, violas; and cellos'];

const vocabularyOf = (file: Json): string[] => {
  const { model } = file as { model: { vocab: Record<string, number> } };
  return Object.entries(model.vocab)
    .sort(([, a], [, b]) => a - b)
    .map(([token]) => token);
};

const tokensOf = (subwords: Subwords, text: string, longest = 100): string[] =>
  Array.from(subwords.encode([text], longest).ids, (id) => subwords.token(id));

/** Counts all pairs anew for every subword. */
function learnSlowly(words: string[], size: number, minCount: number): string[] {
  const spelled = words.map((word) => [...word].map((letter, i) => (i === 0 ? letter : `##${letter}`)));
  const counts = new Map<string, number>();
  for (const part of spelled.flat()) counts.set(part, (counts.get(part) ?? 0) + 1);
  const letters = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).map(([part]) => part);
  const tokens = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', ...letters];
  while (tokens.length < size) {
    const pairs = new Map<string, number>();
    for (const parts of spelled)
      for (let i = 1; i < parts.length; i++) {
        const pair = `${parts[i - 1]} ${parts[i]}`;
        pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
      }
    const order = (pair: string) => pair.split(' ').map((part) => tokens.indexOf(part));
    const [best] = [...pairs].sort(([a, m], [b, n]) => {
      const [[al, ar], [bl, br]] = [order(a), order(b)];
      return n - m || al - bl || ar - br;
    });
    if (!best || best[1] < minCount) break;
    const [left, right] = best[0].split(' ');
    tokens.push(left + right.slice(2));
    for (const parts of spelled)
      for (let i = 1; i < parts.length; i++)
        if (parts[i - 1] === left && parts[i] === right) parts.splice(i - 1, 2, left + right.slice(2));
  }
  return tokens;
}

describe('a vocabulary of subwords', () => {
  it('is what joining the most frequent pair again and again gives', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 7 });
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 25 }),
        fc.integer({ min: 8, max: 40 }),
        (words, size) => {
          const learned = vocabularyOf(trainSubwords([words.join(' ')], { ...options, size }));
          expect(learned).toEqual(learnSlowly(words, size, 2));
        },
      ),
      { numRuns: 60 },
    );
  });

  it('spells every word it was learned from', async () => {
    const subwords = await Subwords.from(trainSubwords(texts, options));
    for (const text of texts) {
      const tokens = tokensOf(subwords, text);
      expect(tokens).not.toContain('[UNK]');
      const spelled = tokens.slice(1, -1).join(' ').replaceAll(' ##', '').replaceAll(' ', '');
      expect(spelled).toBe(text.toLowerCase().replaceAll(' ', ''));
    }
    expect(tokensOf(subwords, 'qqq')).toEqual(['[CLS]', '[UNK]', '[SEP]']);
  });

  it('is the same however often it is learned, and goes through JSON', async () => {
    const file = trainSubwords(texts, options);
    expect(trainSubwords(texts, options)).toEqual(file);
    const again = await Subwords.from(JSON.parse(JSON.stringify(file)));
    expect(again.encode(texts, 50)).toEqual((await Subwords.from(file)).encode(texts, 50));
    expect(again.size).toBe(vocabularyOf(file).length);
  });

  it('keeps case where it is told to', async () => {
    const subwords = await Subwords.from(trainSubwords(texts, { ...options, lowercase: false }));
    expect(tokensOf(subwords, 'The').join('')).toContain('T');
  });

  it('leaves out the end of long texts, but not what closes them', async () => {
    const subwords = await Subwords.from(trainSubwords(texts, options));
    const whole = tokensOf(subwords, texts[0]);
    expect(tokensOf(subwords, texts[0], 5)).toEqual([...whole.slice(0, 4), '[SEP]']);
    expect(tokensOf(subwords, '', 5)).toEqual(['[CLS]', '[SEP]']);
    expect(() => subwords.encode(texts, 2)).toThrow('texts must be allowed more than 2 tokens, got 2');
  });

  it('must be learned from words', () => {
    expect(() => trainSubwords(['', ' \n '], options)).toThrow('texts must have words');
  });
});

describe('a tokenizer.json of someone else', () => {
  it('may put nothing around texts and leave out what it does not need', async () => {
    const model = { type: 'WordPiece', unk_token: '?', vocab: { '?': 0, a: 1, b: 7 } };
    const subwords = await Subwords.from({ model, pre_tokenizer: { type: 'Whitespace' } });
    expect([...subwords.encode(['b a c'], 2).ids]).toEqual([7, 1]);
    expect(subwords.size).toBe(8);
  });

  it.each([
    ['nothing', null],
    ['a list', [1]],
    ['no model', { version: '1.0' }],
    ['an unknown kind of model', { model: { type: 'Abacus' } }],
    ['an unknown step', { model: { type: 'WordPiece', vocab: { a: 0 } }, pre_tokenizer: { type: 'Abacus' } }],
  ])('is refused with %s, naming the file', async (_, file) => {
    await expect(Subwords.from(file as Json, 'folder/tokenizer.json')).rejects.toThrow(
      /^folder\/tokenizer\.json: a tokenizer must/,
    );
  });
});
