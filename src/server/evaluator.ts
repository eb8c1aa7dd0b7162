// The thread that evaluates one uploaded file: reads it through the data room, has a model of its own answer it, and
// judges the answers.
import { parentPort, workerData } from 'node:worker_threads';
import { collect } from '../data/dataset.ts';
import { openSamples } from '../data/formats.ts';
import { badInput } from '../errors.ts';
import { evaluate, evaluateOptions } from '../judge/evaluate.ts';
import { parseOptions } from '../options.ts';
import { type Failure, packError, renamePlaces } from './problem.ts';
import type { EvaluateQuery, EvaluationReport } from './schemas.ts';
import { loadServed } from './served.ts';

export interface Evaluation {
  folder: string;
  format: string;
  query: EvaluateQuery;
  file: string;
}

export type Judged = { report: EvaluationReport } | { failure: Failure };

/** What the file is called in errors: its place here is nobody's business. */
const uploadName = 'upload';

async function judge({ folder, file, format, query }: Evaluation): Promise<EvaluationReport> {
  const { classifier, version } = await loadServed(folder);
  const { columns, labelDelimiter, top = 100, format: _, ...options } = query;
  const { a, b, ...settings } = parseOptions(evaluateOptions, options);
  const notes: string[] = [];
  const vocabulary = classifier.vocabulary.clone();
  const note = (text: string) => notes.push(text.replaceAll(file, uploadName));
  const samples = await openSamples(file, { format, columns, labelDelimiter, vocabulary, note });
  classifier.checkDeclared(samples.width);
  const dataset = await collect(samples);
  if (dataset.rows === 0) throw badInput('file must hold at least one sample');
  const started = performance.now();
  const ranking = await classifier.rank(dataset, { top });
  const seconds = (performance.now() - started) / 1000;
  const { counts, rows } = classifier;
  const { indices } = dataset.labels;
  const unknown = indices.filter((column) => column >= classifier.vocabulary.size).length;
  return {
    ...evaluate(ranking, dataset.labels, { ...settings, counts, rows, propensity: { a, b } }),
    unknownLabels: indices.length ? unknown / indices.length : 0,
    seconds,
    microsecondsPerInput: (1e6 * seconds) / dataset.rows,
    version,
    notes,
  };
}

const post = (judged: Judged) => parentPort?.postMessage(judged);
const evaluation = workerData as Evaluation;
judge(evaluation).then(
  (report) => post({ report }),
  (error) => {
    const names = { [evaluation.file]: uploadName, [evaluation.folder]: 'model' };
    post({ failure: packError(renamePlaces(error, names)) });
  },
);
