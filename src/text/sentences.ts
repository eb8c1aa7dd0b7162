// A text as its sentences, by the rules of Unicode.

/** Made when first needed: it takes as long as all else that a program loads. */
let segmenter: Intl.Segmenter | undefined;

/** In order, without the space around them; none in a text of nothing but space. */
export function splitSentences(text: string): string[] {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'sentence' });
  return Array.from(segmenter.segment(text), ({ segment }) => segment.trim()).filter(Boolean);
}
