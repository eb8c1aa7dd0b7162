// A text as its sentences, by the rules of Unicode.

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' });

/** In order, without the space around them; none in a text of nothing but space. */
export const splitSentences = (text: string): string[] =>
  Array.from(segmenter.segment(text), ({ segment }) => segment.trim()).filter(Boolean);
