import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FeatureScanner, featureText, labelsEnd, rowOf, shortFloat } from './sparse-rows.ts';

const scan = (row: string, width?: number) => {
  const { indices, values } = new FeatureScanner(width).scan(row, labelsEnd(row));
  return Array.from(indices, (column, i) => [column, values[i]]);
};

describe('FeatureScanner', () => {
  it('reads features by ascending column, between any blanks', () => {
    expect(scan('1,2  7:0.5\t3:-2 ')).toEqual([
      [3, -2],
      [7, 0.5],
    ]);
    expect(scan('')).toEqual([]);
    expect(scan('4,5')).toEqual([]);
    expect(scan(' 0:1')).toEqual([[0, 1]]);
    expect(scan('0:1 1:2')).toEqual([
      [0, 1],
      [1, 2],
    ]);
  });

  it('reads every way to write a number as JavaScript does', () => {
    const number = fc.oneof(
      fc.double({ noNaN: true, min: -1e38, max: 1e38 }).map(String),
      fc.float({ noNaN: true, noDefaultInfinity: true }).map((value) => value.toExponential()),
      fc.tuple(fc.constantFrom('', '-', '+'), fc.nat(), fc.nat()).map(([sign, a, b]) => `${sign}${a}.${b}`),
      fc.constantFrom(
        '1.',
        '.5',
        '-.25',
        '1E5',
        '00012',
        '1e-400',
        '12345678901234567890',
        '0.1234567890123456789',
      ),
    );
    fc.assert(
      fc.property(number, (text) => {
        expect(scan(` 1:${text} 2:1`)[0][1]).toBe(Math.fround(Number(text)));
      }),
    );
  });

  it('grows with the row', () => {
    const row = Array.from({ length: 1000 }, (_, i) => `${i}:${i}`).join(' ');
    expect(scan(` ${row}`)).toHaveLength(1000);
  });

  it.each([
    ['1:NaN', 'feature value must be a finite number, got "NaN"'],
    ['1:Infinity', 'feature value must be a finite number, got "Infinity"'],
    ['1:-inf', 'got "-inf"'],
    ['1:1e39', 'got "1e39"'],
    ['1:0x10', 'got "0x10"'],
    ['1:1_0', 'got "1_0"'],
    ['1:', 'feature value must be a finite number, got ""'],
    ['1:.', 'got "."'],
    ['1:2:3', 'got "2:3"'],
    ['1:5,2', 'got "5,2"'],
    ['a:1', 'a feature must be written as id:value, got "a:1"'],
    [':1', 'got ":1"'],
    ['-1:1', 'got "-1:1"'],
    ['1.5:1', 'got "1.5:1"'],
    ['\u0661:1', 'written as id:value'],
    ['12', 'a feature must be written as id:value, got "12"'],
    ['10:1', 'feature id must be below 10, got "10"'],
    ['99999999999999999999:1', 'feature id must be below 10'],
    ['3:1 3:2', 'a feature must appear once in a row, got 3'],
    ['3:1 1:1 3:2', 'a feature must appear once in a row, got 3'],
  ])('refuses %s', (features, message) => {
    expect(() => scan(`0 ${features}`, 10)).toThrow(message);
  });
});

describe('the way back', () => {
  it('reads back as the same 32-bit numbers', () => {
    const value = fc.float({ noNaN: true, noDefaultInfinity: true }).filter((v) => !Object.is(v, -0));
    fc.assert(
      fc.property(fc.array(value), (values) => {
        const text = featureText({ indices: values.map((_, i) => i), values });
        expect(scan(text).map(([, v]) => v)).toEqual(values);
      }),
    );
  });

  it('is short', () => {
    expect(shortFloat(Math.fround(0.1))).toBe(0.1);
    expect(shortFloat(3)).toBe(3);
  });

  it('writes dense features without their zeros, and refuses a text', () => {
    expect(rowOf('xmc', { labels: [], dense: Float32Array.of(0, 2, 0) })).toEqual({
      indices: [1],
      values: [2],
    });
    expect(() => rowOf('xmc', { labels: [], text: 'a' })).toThrow(
      'xmc cannot hold a text (write .jsonl, .csv or .tsv, or vectorise it by training a model)',
    );
    expect(() => rowOf('xmc', { labels: [] })).toThrow('xmc needs features');
  });
});
