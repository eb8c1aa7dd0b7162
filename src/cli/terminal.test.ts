import { describe, expect, it } from 'vitest';
import { table } from './terminal.ts';

describe('table', () => {
  const rows = [
    ['1', 'one two three four'],
    ['22', 'five'],
  ];

  it('sets numbers right and texts left', () => {
    expect(plain(table(['n', 'text'], rows))).toEqual([' n  text', ' 1  one two three four', '22  five']);
  });

  it('wraps the last column between words where the line is too short', () => {
    expect(plain(table(['n', 'text'], rows, 16))).toEqual([
      ' n  text',
      ' 1  one two',
      '    three four',
      '22  five',
    ]);
  });

  it('leaves lines long where there is hardly any room', () => {
    expect(table(['n', 'text'], rows, 8)).toBe(table(['n', 'text'], rows, 80));
  });
});

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with a control character
const plain = (text: string) => text.replaceAll(/\u001b\[\d+m/g, '').split('\n');
