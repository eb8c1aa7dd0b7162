// Training by epochs: validated after each, the best weights kept, stopped early, gone on with where a run was cut off.
// Runs on a thread of its own. What an epoch does, and what its scores are, is the learner's.
import type { LongJob, Task } from '../kernels/pool.ts';
import type { Value } from '../nn/graph.ts';
import type { Trainer } from '../nn/train.ts';
import { type Tensors, vector } from '../parts.ts';
import type { TrainContext } from './learner.ts';

/** Higher is better. */
export type Scores = Record<string, number>;

export interface EpochReport {
  /** Steps made, and those of the whole run if it does not stop early. */
  done: number;
  total: number;
  losses: Record<string, number>;
  /** Of the last epoch that ended. */
  scores?: Scores;
  /** All that is needed to go on, at the end of an epoch. */
  state?: Tensors;
}

export interface EpochPlan {
  trainer: Trainer;
  epochs: number;
  /** Steps of one. */
  steps: number;
  /** Epochs in which no score got better after which training stops; 0: never. */
  patience: number;
  /** The scores to go by, each where those before it are equal. */
  select: readonly string[];
  /** What an earlier run left. */
  kept?: Tensors;
  /** Makes the steps of an epoch, counted from 0, and tells of each. */
  run(epoch: number, told: (losses: Record<string, number>) => void): Promise<void>;
  /** Without it the last epoch is the best. */
  validate?(): Promise<Scores>;
  /** What else is needed to go on, beside the trainer's own. */
  state?(): Tensors;
}

/** How far a run is, and the best of it. */
export interface Course {
  /** Epochs made, and which of them was the best, counted from 1. */
  epochs: number;
  chosen: number;
  /** Of the chosen one. */
  scores?: Scores;
  /** The best of each score so far, and the last epoch in which one of them rose. */
  bests: Scores;
  improved: number;
  weights: Map<string, Float32Array>;
}

export async function runEpochs(plan: EpochPlan, report: (message: EpochReport) => void): Promise<Course> {
  const { trainer, kept, patience } = plan;
  let course: Course = { epochs: 0, chosen: 0, bests: {}, improved: 0, weights: new Map() };
  if (kept) {
    trainer.restore(kept);
    course = courseFrom(kept);
  }
  let scores = course.scores;
  const settled = () => patience > 0 && scores !== undefined && course.epochs - course.improved >= patience;
  while (course.epochs < plan.epochs && !settled()) {
    let losses: Record<string, number> = {};
    const tell = (state?: Tensors) =>
      report({ done: trainer.step, total: plan.epochs * plan.steps, losses, scores, state });
    await plan.run(course.epochs, (latest) => {
      losses = latest;
      tell();
    });
    scores = await plan.validate?.();
    course = advance(course, scores, plan.select, trainer);
    tell({ ...trainer.state(), ...courseTensors(course), ...plan.state?.() });
  }
  return course;
}

/** One epoch further; equal scores are no better. */
function advance(
  before: Course,
  scores: Scores | undefined,
  select: readonly string[],
  trainer: Trainer,
): Course {
  const epochs = before.epochs + 1;
  const risen = Object.entries(scores ?? {}).filter(
    ([name, score]) => score > (before.bests[name] ?? Number.NEGATIVE_INFINITY),
  );
  const bests = { ...before.bests, ...Object.fromEntries(risen) };
  const course = { ...before, epochs, bests, improved: risen.length > 0 ? epochs : before.improved };
  if (scores && before.scores && !isBetter(scores, before.scores, select)) return course;
  const weights = Array.from(trainer.weights(), ([value, numbers]): [string, Float32Array] => [
    value.name ?? '',
    numbers.slice(),
  ]);
  return { ...course, chosen: epochs, scores, weights: new Map(weights) };
}

function isBetter(scores: Scores, than: Scores, select: readonly string[]): boolean {
  const deciding = select.find((name) => scores[name] !== than[name]);
  return deciding !== undefined && scores[deciding] > than[deciding];
}

/** The course's weights by the inputs they stand for. */
export const weightsOf = ({ weights }: Course, values: Iterable<Value>): Map<Value, Float32Array> =>
  new Map(
    Array.from(values).flatMap((value): [Value, Float32Array][] => {
      const numbers = weights.get(value.name ?? '');
      return numbers ? [[value, numbers]] : [];
    }),
  );

// A course as tensors, beside those of the trainer.

const [weightPrefix, scorePrefix, bestPrefix] = ['kept ', 'score ', 'best '];

/** Copies: a thread hands over what it reports. */
function courseTensors({ epochs, chosen, improved, scores = {}, bests, weights }: Course): Tensors {
  const named = (prefix: string, numbers: Scores) =>
    Object.entries(numbers).map(([name, score]) => [prefix + name, vector(Float64Array.of(score))]);
  const kept = Array.from(weights, ([name, numbers]) => [weightPrefix + name, vector(numbers.slice())]);
  return {
    ...Object.fromEntries([...kept, ...named(scorePrefix, scores), ...named(bestPrefix, bests)]),
    course: vector(Uint32Array.of(epochs, chosen, improved)),
  };
}

function courseFrom(tensors: Tensors): Course {
  const named = (prefix: string) =>
    Object.entries(tensors).flatMap(([name, { data }]): [string, Tensors[string]['data']][] =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), data]] : [],
    );
  const numbers = (prefix: string): Scores =>
    Object.fromEntries(named(prefix).map(([name, [score]]) => [name, Number(score)]));
  const [epochs, chosen, improved] = Array.from(tensors.course.data, Number);
  const scores = numbers(scorePrefix);
  return {
    epochs,
    chosen,
    improved,
    scores: Object.keys(scores).length > 0 ? scores : undefined,
    bests: numbers(bestPrefix),
    weights: new Map(named(weightPrefix) as [string, Float32Array][]),
  };
}

/**
 * Runs a job made of `runEpochs` on a thread, shows how it goes, and keeps its state after each epoch as the piece of
 * this name, from which a later run goes on.
 */
export async function trainOnThread<Setup extends { kept?: Tensors }, Result>(
  task: Task<Setup, undefined, Result>,
  setup: Setup,
  piece: string,
  { checkpoint, signal, progress }: TrainContext,
): Promise<Result> {
  const { runThread } = await import('../kernels/pool.ts');
  const kept = await checkpoint?.load(piece);
  let saving = Promise.resolve();
  const onReport = ({ done, total, losses, scores, state }: EpochReport) => {
    if (state && checkpoint) {
      saving = saving.then(() => checkpoint.save(piece, state));
      // Heard of at the end.
      saving.catch(() => {});
    }
    progress({ phase: 'train', done, total, unit: 'steps', detail: inWords({ ...losses, ...scores }) });
  };
  try {
    return await runThread<Setup, EpochReport, Result>(task, { ...setup, kept }, { signal, onReport });
  } finally {
    await saving;
  }
}

/** What `trainOnThread` runs. */
export type EpochJob<Setup, Result> = LongJob<Setup, EpochReport, Result>;

const inWords = (numbers: Record<string, number>): string =>
  Object.entries(numbers)
    .map(([name, value]) => `${name} ${Number(value.toPrecision(3))}`)
    .join(', ');
