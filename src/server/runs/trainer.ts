// The process of one run: reads, trains, judges, saves. A process of its own, so that running out of memory ends the
// run and not the server; it ends when the server does.
import { setPriority } from 'node:os';
import { type Dataset, selectSamples } from '../../data/dataset.ts';
import { readDataset } from '../../data/formats.ts';
import { readLabels } from '../../data/labels.ts';
import { datasetOf } from '../../data/plain-samples.ts';
import { splitRows } from '../../data/split.ts';
import { badInput } from '../../errors.ts';
import { Classifier } from '../../learn/classifier.ts';
import { rowIndices } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import type { Context, Step } from '../../progress.ts';
import { saveModel } from '../../store/folder.ts';
import { type Evaluation, judgeAnswers } from '../judged.ts';
import { type Failure, packError, renamePlaces } from '../problem.ts';
import { loadServed } from '../served.ts';
import type { CurvePoint, RunResult, RunSpec } from './schemas.ts';
import type { NamedFile } from './sources.ts';

/** What people decided about a text. */
export interface Reviewed {
  text: string;
  accepted: string[];
  rejected: string[];
}

export interface Task {
  spec: RunSpec;
  source: NamedFile;
  /** Names for the labels. */
  labels?: string;
  reviewed: Reviewed[];
  /** The folder of the model. */
  out: string;
  threads: number;
}

export type News =
  | { progress: Step }
  | { point: CurvePoint }
  | { done: Omit<RunResult, 'report'>; evaluation: Evaluation }
  | { failure: Failure };

/** Bootstrap resamples of the intervals. */
const resamples = 200;
const curveShares = [1 / 8, 1 / 4, 1 / 2];
const curveMetrics = ['P@1', 'P@5', 'nDCG@5', 'PSP@5'] as const;
const newsEveryMs = 100;

async function train(task: Task, context: Context): Promise<News> {
  const { spec, out } = task;
  const { test = 0.1, learner, options } = spec;
  const started = performance.now();
  const dataset = applyReviews(await read(task, context), task.reviewed);
  const split = splitRows(dataset.labels, { rule: 'random', test, seed: context.seed });
  const held = selectSamples(dataset, split.test);
  const read_ = performance.now();
  const settings = { learner, options, ...context };
  const judge = (classifier: Classifier) => judgeAnswers(classifier, held, { resamples }, context);
  if (spec.curve) {
    for (const share of curveShares) {
      const rows = someRows(split.train, share, context.seed);
      const began = performance.now();
      const classifier = await Classifier.train(selectSamples(dataset, rows), settings);
      send({ point: curvePoint(rows.length, began, (await judge(classifier)).report) });
    }
  }
  const began = performance.now();
  const classifier = await Classifier.train(selectSamples(dataset, split.train), settings);
  const trained = performance.now();
  const { report, quality } = await judge(classifier);
  if (spec.curve) send({ point: curvePoint(split.train.length, began, report) });
  await saveModel(classifier, out);
  const { version } = await loadServed(out);
  const seconds = {
    read: (read_ - started) / 1000,
    train: (trained - began) / 1000,
    judge: (performance.now() - trained) / 1000,
  };
  const { features, vocabulary } = classifier;
  const size = { samples: split.train.length, features, labels: vocabulary.size };
  return {
    done: { ...size, seconds },
    evaluation: { report: { ...report, version, notes: [] }, quality },
  };
}

async function read({ source, labels }: Task, context: Context): Promise<Dataset> {
  const { file, format, columns, labelDelimiter } = source;
  const dataset = await readDataset(file, { format, columns, labelDelimiter, ...context });
  if (labels) {
    dataset.vocabulary.describe(await readLabels(labels));
    dataset.labels.cols = dataset.vocabulary.size;
  }
  return dataset;
}

/** A text that is in the data gets or loses what was decided; others are added with what was accepted. */
function applyReviews(dataset: Dataset, reviewed: Reviewed[]): Dataset {
  if (reviewed.length === 0) return dataset;
  const { texts, vocabulary, labels } = dataset;
  if (!texts) throw badInput('data must have texts where reviewed texts are added');
  const decided = new Map(reviewed.map((review) => [review.text, review]));
  const known = texts.map((text, row) => {
    const own = Array.from(rowIndices(labels, row), (column) => vocabulary.label(column).id);
    const { accepted = [], rejected = [] } = decided.get(text) ?? {};
    return { text, labels: [...new Set([...own, ...accepted])].filter((id) => !rejected.includes(id)) };
  });
  const present = new Set(texts);
  const added = reviewed
    .filter(({ text, accepted }) => !present.has(text) && accepted.length > 0)
    .map(({ text, accepted }) => ({ text, labels: accepted }));
  return datasetOf([...known, ...added], vocabulary);
}

/** The same rows come first for every share, so that a longer run has seen what a shorter one has. */
function someRows(rows: Uint32Array, share: number, seed: number): Uint32Array {
  const order = new Random(seed, 'curve').permutation(rows.length);
  const size = Math.max(1, Math.round(share * rows.length));
  return order
    .slice(0, size)
    .map((i) => rows[i])
    .sort();
}

function curvePoint(
  samples: number,
  began: number,
  report: Awaited<ReturnType<typeof judgeAnswers>>['report'],
): CurvePoint {
  const metrics = curveMetrics.map((name) => {
    const { low = report[name], high = report[name] } = report.intervals?.[name] ?? {};
    return [name, { value: report[name], low, high }];
  });
  return { samples, seconds: (performance.now() - began) / 1000, metrics: Object.fromEntries(metrics) };
}

const send = (news: News) => process.send?.(news);

/** At most ten steps a second, but every new phase. */
function throttled(): (step: Step) => void {
  let [phase, last] = ['', 0];
  return (step) => {
    const time = performance.now();
    if (step.phase === phase && time - last < newsEveryMs) return;
    [phase, last] = [step.phase, time];
    send({ progress: step });
  };
}

function run(task: Task, signal: AbortSignal): Promise<News> {
  const context = { seed: task.spec.seed ?? 1, threads: task.threads, progress: throttled(), signal };
  return train(task, context).catch((error) => {
    const names = { [task.source.file]: task.source.name, [task.out]: 'model' };
    return { failure: packError(renamePlaces(error, names)) };
  });
}

const cancel = new AbortController();
process.on('message', (order: Task | 'cancel') => {
  if (order === 'cancel') return cancel.abort();
  // Whoever asks for suggestions comes first.
  setPriority(10);
  run(order, cancel.signal).then((news) => process.send?.(news, () => process.disconnect()));
});
process.on('disconnect', () => process.exit());
