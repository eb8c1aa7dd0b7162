import { describe, expect, it } from 'vitest';
import { badInput, locate, suggest, UmbelError, unknownName } from './errors.ts';

describe('errors', () => {
  it('say place, rule, value and hint in one line', () => {
    const error = badInput('label id must be below 10', {
      file: 'a.txt',
      line: 3,
      value: 12,
      hint: 'check the header',
    });
    expect(error.message).toBe('a.txt:3: label id must be below 10, got 12 (check the header)');
  });

  it('shorten long values', () => {
    expect(badInput('x must be short', { value: 'y'.repeat(5000) }).message.length).toBeLessThan(120);
  });

  it('learn their place later without losing what they knew', () => {
    const located = locate(badInput('rule', { line: 3 }), { file: 'a.txt', line: 9 }) as UmbelError;
    expect(located.message).toBe('a.txt:3: rule');
    const bug = new TypeError('ours');
    expect(locate(bug, { file: 'a.txt' })).toBe(bug);
  });

  it('become JSON a program can read', () => {
    const json = JSON.parse(JSON.stringify(badInput('rule', { file: 'a', value: Number.NaN })));
    expect(json.error).toMatchObject({ code: 'input', rule: 'rule', file: 'a', value: 'NaN' });
  });

  it('suggest a close name, and list the names when none is close', () => {
    expect(suggest('poplar', ['popular', 'tree'])).toBe('popular');
    expect(suggest('tere', ['popular', 'tree'])).toBe('tree');
    expect(suggest('cost', ['tree', 'costPositive'])).toBe('costPositive');
    expect(suggest('xyzzy', ['popular', 'tree'])).toBeUndefined();
    expect(unknownName('learner', 'poplar', ['popular', 'tree']).message).toContain('did you mean popular?');
    expect(unknownName('learner', 'zzz', ['popular', 'tree']).message).toContain('known: popular, tree');
    expect(unknownName('learner', 'zzz', []) instanceof UmbelError).toBe(true);
  });

  it('list no more than the start of many or long names', () => {
    const known = Array.from({ length: 5000 }, (_, i) => `${i} ${'word '.repeat(1000)}`);
    const { message } = unknownName('column', 'text', known);
    expect(message.length).toBeLessThan(1000);
    expect(message).toMatch(/known: 0 word .*\.\.\., 1 word .*, \.\.\.\)$/);
    expect(unknownName('column', '4999', known).message).toMatch(/\(did you mean 4999 [word ]*\.\.\.\?\)$/);
  });
});
