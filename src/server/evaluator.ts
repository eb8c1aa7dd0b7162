// The thread that evaluates one uploaded file: reads it through the data room, has a model of its own answer it, and
// judges the answers.
import { workerData } from 'node:worker_threads';
import { collect } from '../data/dataset.ts';
import { openSamples } from '../data/formats.ts';
import { badInput } from '../errors.ts';
import { type Evaluation, judgeAnswers } from './judged.ts';
import type { EvaluateQuery } from './schemas.ts';
import { loadServed } from './served.ts';
import { reply } from './thread.ts';

export interface Task {
  folder: string;
  format: string;
  query: EvaluateQuery;
  file: string;
}

/** What the file is called in errors: its place here is nobody's business. */
const uploadName = 'upload';

async function judge({ folder, file, format, query }: Task): Promise<Evaluation> {
  const { classifier, version } = await loadServed(folder);
  const { columns, labelDelimiter, top = 100, format: _, ...options } = query;
  const notes: string[] = [];
  const vocabulary = classifier.vocabulary.clone();
  const note = (text: string) => notes.push(text.replaceAll(file, uploadName));
  const samples = await openSamples(file, { format, columns, labelDelimiter, vocabulary, note });
  classifier.checkDeclared(samples.width);
  const dataset = await collect(samples);
  if (dataset.rows === 0) throw badInput('file must hold at least one sample');
  const { report, quality } = await judgeAnswers(classifier, dataset, options, { top });
  return { report: { ...report, version, notes }, quality };
}

const task = workerData as Task;
reply(judge(task), { [task.file]: uploadName, [task.folder]: 'model' });
