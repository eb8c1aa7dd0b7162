// Chooses the options of a learner: trains once with each of them and judges on rows that none of them learned from.
import type { Dataset } from '../data/dataset.ts';
import { badUsage } from '../errors.ts';
import { allOptions, Classifier } from '../learn/classifier.ts';
import type { Tries } from '../learn/learner.ts';
import { defaultLearner, findLearner } from '../learn/registry.ts';
import { Random } from '../math/random.ts';
import { type OptionTable, parseOptions } from '../options.ts';
import { type Context, checkCancelled, quiet } from '../progress.ts';
import { type Comparison, compare } from './bootstrap.ts';
import { rowMetrics } from './evaluate.ts';
import { metricValue, type RowMetric } from './metric.ts';

type Given = Readonly<Record<string, unknown>>;

export interface TuneOptions extends Partial<Context> {
  learner?: string;
  /** The same in all trials. */
  options?: Given;
  /** The values to try of each option; what the learner says is worth trying, where it is left out. */
  tries?: Tries;
  /** A ranking metric at a depth: `nDCG@5`. */
  metric?: string;
  /** At most this many; where there are more combinations, some are drawn. */
  trials?: number;
  /** Told of each trial as it ends. */
  onTrial?: (trial: Trial) => void;
}

export interface Trial {
  /** What was set beside `options`; the first trial sets nothing. */
  tried: Given;
  score: number;
  seconds: number;
}

export interface Tuned {
  metric: string;
  /** In the order in which they were made. */
  trials: Trial[];
  best: Trial;
  /** The best beside the first, on the same rows. */
  gain: Comparison;
}

const mostCombinations = 2 ** 31;

/** Trains on `train` and judges on `held`, whose labels have the columns of `train`, and further ones behind them. */
export async function tune(train: Dataset, held: Dataset, given: TuneOptions = {}): Promise<Tuned> {
  const { learner: name = defaultLearner, options = {}, metric = 'nDCG@5', trials = 20, ...rest } = given;
  const { tries, onTrial, ...asked } = rest;
  const context: Context = { seed: 1, threads: 1, progress: quiet, ...asked };
  const top = depthOf(metric);
  const learner = await findLearner(name);
  const plan = planTrials(allOptions(learner), options, tries ?? learner.tries ?? {}, trials, context.seed);
  const judge = async (tried: Given, running: Context): Promise<Judged> => {
    const started = performance.now();
    const settings = { learner: name, options: { ...options, ...tried } };
    const classifier = await Classifier.train(train, { ...running, ...settings });
    const seconds = (performance.now() - started) / 1000;
    const ranking = await classifier.rank(held, { ...running, top });
    const { counts, rows } = classifier;
    const metrics = rowMetrics(ranking, held.labels, { counts, rows, ks: [top] });
    const byRow = metrics.filter((one) => one.name === metric);
    return { trial: { tried, score: metricValue(byRow[0]), seconds }, byRow };
  };
  const judged: Judged[] = [];
  for (const [i, tried] of plan.entries()) {
    checkCancelled(context.signal);
    const progress: Context['progress'] = (step) =>
      context.progress({ ...step, phase: `trial ${i + 1} of ${plan.length}, ${step.phase}` });
    judged.push(await judge(tried, { ...context, progress }));
    onTrial?.(judged[i].trial);
  }
  // Of equals the earlier stays: the defaults come first.
  const best = judged.reduce((a, b) => (b.trial.score > a.trial.score ? b : a));
  const { [metric]: gain } = compare(judged[0].byRow, best.byRow, { seed: context.seed });
  return { metric, trials: judged.map(({ trial }) => trial), best: best.trial, gain };
}

interface Judged {
  trial: Trial;
  /** The metric, row by row. */
  byRow: RowMetric[];
}

function depthOf(metric: string): number {
  const depth = Number(/^(?:P|R|nDCG|PSP|PSnDCG)@([1-9]\d*)$/.exec(metric)?.[1]);
  if (Number.isNaN(depth))
    throw badUsage('metric must be P, R, nDCG, PSP or PSnDCG at a depth, such as nDCG@5', { value: metric });
  return depth;
}

/** What each trial sets: nothing, then every combination of the values, or as many as are wanted, drawn at random. */
export function planTrials(
  table: OptionTable,
  options: Given,
  tries: Tries,
  most: number,
  seed: number,
): Given[] {
  if (!Number.isSafeInteger(most) || most < 1)
    throw badUsage('trials must be a positive integer', { value: most });
  const names = Object.keys(tries);
  const twice = names.find((name) => Object.hasOwn(options, name));
  if (twice) throw badUsage(`${twice} must be either set or tried`, { value: options[twice] });
  const none = names.find((name) => tries[name].length === 0);
  if (none) throw badUsage(`${none} must be given values to try`, { value: 'none' });
  // A value that is not allowed is found before anything is trained.
  for (const name of names)
    for (const value of tries[name]) parseOptions(table, { ...options, [name]: value });
  const count = names.reduce((product, name) => product * tries[name].length, 1);
  if (count > mostCombinations)
    throw badUsage(`there must be at most ${mostCombinations} combinations`, { value: count });
  const decode = (number: number): Given => {
    let rest = number;
    return Object.fromEntries(
      names.map((name) => {
        const values = tries[name];
        const value = values[rest % values.length];
        rest = Math.floor(rest / values.length);
        return [name, value];
      }),
    );
  };
  const key = (tried: Given) => JSON.stringify(parseOptions(table, { ...options, ...tried }));
  const known = new Set([key({})]);
  const plan: Given[] = [{}];
  for (const number of numbers(count, new Random(seed, 'tune'), count > most)) {
    if (plan.length === most) break;
    const tried = decode(number);
    if (known.has(key(tried))) continue;
    known.add(key(tried));
    plan.push(tried);
  }
  return plan;
}

/** All numbers below `count`, each once: in order, or shuffled without a list of them all. */
function* numbers(count: number, random: Random, shuffled: boolean): Generator<number> {
  if (!shuffled) for (let i = 0; i < count; i++) yield i;
  else {
    // Fisher and Yates, with only the places written down that were swapped.
    const moved = new Map<number, number>();
    for (let i = 0; i < count; i++) {
      const j = i + random.integer(count - i);
      yield moved.get(j) ?? j;
      moved.set(j, moved.get(i) ?? i);
    }
  }
}
