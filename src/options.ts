// Options described once, beside their algorithm: the description is the default, the validator, the command-line
// help and (later) the HTTP schema and the studio's form.
import { badUsage, type UmbelError, unknownName } from './errors.ts';

interface Described<T> {
  default: T;
  help: string;
}
export interface NumberOption extends Described<number> {
  kind: 'number' | 'integer';
  min?: number;
  max?: number;
}
export interface ChoiceOption<T extends string = string> extends Described<T> {
  kind: 'choice';
  choices: readonly T[];
}
export interface FlagOption extends Described<boolean> {
  kind: 'flag';
}
export interface TextOption extends Described<string> {
  kind: 'text';
}
export type Option = NumberOption | ChoiceOption | FlagOption | TextOption;
export type OptionTable = Record<string, Option>;

/** The values a table describes: `{ cost: number; loss: 'hinge' | 'logistic' }`. */
export type OptionsOf<T extends OptionTable> = { [K in keyof T]: T[K]['default'] };

type Bounds = { min?: number; max?: number };
export const number = (value: number, help: string, bounds: Bounds = {}): NumberOption => ({
  kind: 'number',
  default: value,
  help,
  ...bounds,
});
export const integer = (value: number, help: string, bounds: Bounds = {}): NumberOption => ({
  kind: 'integer',
  default: value,
  help,
  ...bounds,
});
export const choice = <const T extends string>(
  value: NoInfer<T>,
  choices: readonly T[],
  help: string,
): ChoiceOption<T> => ({ kind: 'choice', default: value, choices, help });
export const flag = (value: boolean, help: string): FlagOption => ({ kind: 'flag', default: value, help });
export const text = (value: string, help: string): TextOption => ({ kind: 'text', default: value, help });

/** Fills in defaults and checks every value; strings (from a command line) are understood for every kind. */
export function parseOptions<T extends OptionTable>(
  table: T,
  given: Record<string, unknown> = {},
): OptionsOf<T> {
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(table, name)) throw unknownOption(name, Object.keys(table));
  }
  const values = Object.entries(table).map(([name, option]) => {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    return [name, value === undefined ? option.default : parseValue(name, option, value)];
  });
  return Object.fromEntries(values) as OptionsOf<T>;
}

/** `ngrams` where only `text.ngrams` is known is a forgotten prefix, not a typo. */
function unknownOption(name: string, known: string[]): UmbelError {
  const full = known.find((key) => key.endsWith(`.${name}`));
  if (full) return badUsage('unknown option', { value: name, hint: `did you mean ${full}?` });
  return unknownName('option', name, known);
}

function parseValue(name: string, option: Option, value: unknown): number | string | boolean {
  switch (option.kind) {
    case 'flag':
      if (value === true || value === 'true') return true;
      if (value === false || value === 'false') return false;
      throw badUsage(`${name} must be true or false`, { value });
    case 'choice':
      if (typeof value === 'string' && option.choices.includes(value)) return value;
      throw badUsage(`${name} must be one of ${option.choices.join(', ')}`, { value });
    case 'text':
      if (typeof value === 'string') return value;
      throw badUsage(`${name} must be a text`, { value });
    case 'number':
    case 'integer':
      return parseNumber(name, option, value);
    default:
      return option satisfies never;
  }
}

function parseNumber(name: string, { kind, min, max }: NumberOption, value: unknown): number {
  const parsed = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  const article = kind === 'integer' ? 'an integer' : 'a number';
  const range = [min === undefined ? '' : ` >= ${min}`, max === undefined ? '' : ` <= ${max}`];
  const rule = `${name} must be ${article}${range.filter(Boolean).join(' and')}`;
  if (typeof parsed !== 'number' || Number.isNaN(parsed)) throw badUsage(rule, { value });
  if (kind === 'integer' && !Number.isInteger(parsed)) throw badUsage(rule, { value });
  if ((min !== undefined && parsed < min) || (max !== undefined && parsed > max))
    throw badUsage(rule, { value });
  return parsed;
}

export function checkPositive(name: string, value: number): void {
  if (!Number.isInteger(value) || value < 1) throw badUsage(`${name} must be a positive integer`, { value });
}
