import { describe, expect, it } from 'vitest';
import { choice, flag, integer, number, parseOptions } from './options.ts';

const table = {
  cost: number(1, 'price', { min: 0 }),
  beam: integer(10, 'width', { min: 1, max: 100 }),
  loss: choice('hinge', ['hinge', 'logistic'], 'loss'),
  bias: flag(true, 'constant feature'),
};

describe('options', () => {
  it('fill in defaults', () => {
    expect(parseOptions(table)).toEqual({ cost: 1, beam: 10, loss: 'hinge', bias: true });
  });

  it('understand strings from a command line', () => {
    const given = { cost: '0.5', beam: '7', loss: 'logistic', bias: 'false' };
    expect(parseOptions(table, given)).toEqual({ cost: 0.5, beam: 7, loss: 'logistic', bias: false });
  });

  it.each([
    [{ cost: -1 }, 'cost must be a number >= 0, got -1'],
    [{ cost: 'x' }, 'cost must be a number >= 0, got "x"'],
    [{ cost: '' }, 'cost must be a number >= 0, got ""'],
    [{ cost: Number.NaN }, 'cost must be a number >= 0, got NaN'],
    [{ beam: 1.5 }, 'beam must be an integer >= 1 and <= 100, got 1.5'],
    [{ beam: 101 }, 'beam must be an integer >= 1 and <= 100, got 101'],
    [{ loss: 'squared' }, 'loss must be one of hinge, logistic, got "squared"'],
    [{ bias: 'yes' }, 'bias must be true or false, got "yes"'],
    [{ beem: 3 }, 'unknown option, got "beem" (did you mean beam?)'],
    [{ constructor: 3 }, 'unknown option, got "constructor" (known: cost, beam, loss, bias)'],
  ])('refuse %j', (given, message) => {
    expect(() => parseOptions(table, given as Record<string, unknown>)).toThrow(message);
  });
});
