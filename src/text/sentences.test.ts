import { expect, it } from 'vitest';
import { splitSentences } from './sentences.ts';

it('gives the sentences of a text without the space around them', () => {
  expect(splitSentences(' It rained.  Did it?\nYes! 3.5 mm fell ')).toEqual([
    'It rained.',
    'Did it?',
    'Yes!',
    '3.5 mm fell',
  ]);
  expect(splitSentences(' \n ')).toEqual([]);
});
