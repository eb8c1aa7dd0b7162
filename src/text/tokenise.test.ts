import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { slowWords, trickyText } from '../../test/slow-text.ts';
import { Tokeniser, type WordRule } from './tokenise.ts';
import { fromBlocks, pack } from './utf8.ts';

function words(text: string, rule: WordRule = 'unicode', stripAccents = false): string[] {
  const { bytes, offsets } = pack([text]);
  const found: string[] = [];
  new Tokeniser(rule, stripAccents).words(bytes, 0, offsets[1], (blocks, start, end) => {
    found.push(fromBlocks(blocks, start, end));
  });
  return found;
}

describe('words', () => {
  it.each([
    ["Don't stop: C3PO_x & a b", ['don', 'stop', 'c3po_x']],
    ['Cafe\u0301 CAFÉ', ['café', 'café']],
    ['हिन्दी भाषा', ['हिन्दी', 'भाषा']],
    ['ΟΔΥΣΣΕΥΣ ΣΑΣ', ['οδυσσευς', 'σας']],
    ['東京タワー', ['東京', '京タ', 'タワ', 'ワー']],
    ['道 in Xの本', ['道', 'in', 'の本']],
    ['é ßa 𐐀 𐐀𐐁', ['ßa', '𐐨𐐩']],
    ['', []],
  ])('of %j are %j', (text, expected) => {
    expect(words(text)).toEqual(expected);
  });

  it('can lose their accents, but not the vowel signs of other scripts', () => {
    expect(words('Äänekoski ŽIŽEK naïve हिन्दी', 'unicode', true)).toEqual([
      'aanekoski',
      'zizek',
      'naive',
      'हिन्दी',
    ]);
  });

  it('of scikit-learn stop at marks and run through scripts without spaces', () => {
    expect(words('cafe\u0301s 東京タワー', 'sklearn')).toEqual(['cafe', '東京タワー']);
  });

  it.each<[WordRule, boolean]>([
    ['unicode', false],
    ['unicode', true],
    ['sklearn', false],
    ['sklearn', true],
  ])('by the %s rule (accents stripped: %s) are those of a slow reading of the rule', (rule, strip) => {
    fc.assert(
      fc.property(fc.oneof(trickyText, fc.string({ unit: 'binary' })), (text) => {
        expect(words(text, rule, strip)).toEqual(slowWords(text, rule, strip));
      }),
      { numRuns: 1500 },
    );
  });

  it('of one text do not depend on the texts around it', () => {
    fc.assert(
      fc.property(fc.array(trickyText, { minLength: 1, maxLength: 5 }), (texts) => {
        const tokeniser = new Tokeniser('unicode', false);
        const { bytes, offsets } = pack(texts);
        texts.forEach((text, i) => {
          const found: string[] = [];
          tokeniser.words(bytes, offsets[i], offsets[i + 1], (blocks, start, end) => {
            found.push(fromBlocks(blocks, start, end));
          });
          expect(found).toEqual(words(text));
        });
      }),
    );
  });

  it('longer than any buffer are read whole', () => {
    const long = 'ab'.repeat(50_000);
    expect(words(`${long} ${long}é`)).toEqual([long, `${long}é`]);
  });
});

describe('placed words', () => {
  it('are the same words', () => {
    fc.assert(
      fc.property(trickyText, fc.boolean(), (text, strip) => {
        const tokeniser = new Tokeniser('unicode', strip);
        const placed = Array.from(tokeniser.placedWords(text), ({ word }) => word);
        expect(placed).toEqual(words(text, 'unicode', strip));
      }),
    );
  });

  it('come from characters that fold to them', () => {
    fc.assert(
      fc.property(trickyText, fc.boolean(), (text, strip) => {
        const tokeniser = new Tokeniser('unicode', strip);
        const { starts, ends } = tokeniser.origins(text);
        for (const { word, start } of tokeniser.placedWords(text)) {
          const written = text.slice(starts[start], ends[start + word.length]);
          const folded = [...new Tokeniser('unicode', strip).placedWords(`${written}`)];
          // A sigma alone cannot know whether it ends a word of its text.
          const plain = (s: string) => s.replaceAll('ς', 'σ');
          expect(folded.map((f) => plain(f.word))).toContain(plain(word));
        }
      }),
      { numRuns: 1000 },
    );
  });
});
