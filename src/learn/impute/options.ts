// What imputing can be told: methods and their options.
import { badUsage } from '../../errors.ts';
import { choice, flag, integer, number, type OptionsOf, parseOptions } from '../../options.ts';

/** Those that `auto` chooses from; it prefers the first of equals. */
export const fixedMethods = ['eagle-plus', 'eagle', 'eagle-0', 'baseline'] as const;
export const imputeMethods = [...fixedMethods, 'auto'] as const;

export const imputeOptions = {
  method: choice(
    'auto',
    imputeMethods,
    'baseline: every member gets all labels of its group; eagle-0: the member nearest to the mean of the groups with ' +
      'the label; eagle: that mean is first turned towards the nearest members; eagle-plus: classifiers, other ' +
      'labels and what no label claims decide too; auto: tries them on some groups',
  ),
  iterations: integer(20, 'how often eagle turns', { min: 0 }),
  step: number(0.1, 'how far it turns each time', { min: 0 }),
  weightByCount: flag(true, 'a group that carries a label r times counts r times'),
  assign: choice(
    'best',
    ['best', 'top-r'],
    'a label goes to the best member of a group, or to as many as the group carries it; always so in eagle-plus, and ' +
      'to more where no group carries a label twice',
  ),
  dropUnlabelled: flag(false, 'leave out instances that get no label; otherwise they are negatives for all'),
  rounds: integer(4, 'how often at most classifiers choose anew in eagle-plus', { min: 0 }),
  names: flag(
    true,
    'for eagle-plus, the names of labels are examples of them, where inputs are texts or columns named by words',
  ),
  draw: flag(
    true,
    'for eagle-plus, members of labels that more samples carry than there are features are drawn, the likelier the ' +
      'oftener, which is better to learn from; false: the likeliest, which is better to read',
  ),
};
export type ImputeOptions = OptionsOf<typeof imputeOptions>;

/** Options that only some methods know; `auto` hands them to those. */
const methodsWith: { [name in keyof ImputeOptions]?: readonly (typeof fixedMethods)[number][] } = {
  iterations: ['eagle'],
  step: ['eagle'],
  weightByCount: ['eagle', 'eagle-0'],
  assign: ['eagle', 'eagle-0'],
  rounds: ['eagle-plus'],
  names: ['eagle-plus'],
  draw: ['eagle-plus'],
};

/** Defaults filled in and values checked; an option that the method does not know is refused, if it is not the default. */
export function parseImputeOptions(given: { [name in keyof ImputeOptions]?: unknown }): ImputeOptions {
  const o = parseOptions(imputeOptions, given);
  const { method } = o;
  if (method === 'auto') return o;
  for (const name of Object.keys(imputeOptions) as (keyof ImputeOptions)[]) {
    const methods = methodsWith[name] ?? fixedMethods;
    if (o[name] !== imputeOptions[name].default && !methods.includes(method))
      throw badUsage(`${name} must come with the method ${methods.join(' or ')}`, { value: method });
  }
  return o;
}
