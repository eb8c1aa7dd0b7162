// umbel predict: texts (or features) in, labels out; on the terminal, as JSONL or as CSV.
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import Papa from 'papaparse';
import { collect, type Sample, type SampleStream } from '../data/dataset.ts';
import { AtomicFile, extensionOf } from '../data/file.ts';
import { openSamples } from '../data/formats.ts';
import { readGroups } from '../data/groups-file.ts';
import { badUsage } from '../errors.ts';
import type { Classifier, Suggestion } from '../learn/classifier.ts';
import { checkCancelled } from '../progress.ts';
import { type BlendFlags, loadBlended, withBlendFlags } from './blend.ts';
import { checkFiles } from './files.ts';
import {
  type CommonFlags,
  fraction,
  once,
  positiveInteger,
  type ReadFlags,
  readOptions,
  reportSkipped,
  type Terminal,
  verb,
  withCommonFlags,
  withReadFlags,
} from './run.ts';
import { color, formatCount } from './terminal.ts';

interface PredictFlags extends CommonFlags, ReadFlags, BlendFlags {
  model: string;
  input?: string;
  text?: string;
  groups?: string;
  out?: string;
  top: number;
  threshold?: number;
}

interface Prediction {
  id?: string;
  text?: string;
  labels: Suggestion[];
}

const batchRows = 4096;

export function registerPredict(program: Command): void {
  const command = program
    .command('predict')
    .description('suggest labels for a text, a file, or each line of standard input')
    .requiredOption('--model <folder>', 'a trained model', once('model'))
    .option('--text <text>', 'one text', once('text'))
    .option('--input <file>', 'a file in any format; labels in it are ignored', once('input'))
    .option(
      '--groups <file>',
      'lines {"group", "instances"}: labels for each group, by a model that takes bags',
    )
    .option('--top <k>', 'labels per input', positiveInteger('top'), 5)
    .option('--threshold <score>', 'leave out labels that score lower', fraction('threshold'))
    .option('--out <file>', 'write .jsonl (one input a line) or .csv (one suggestion a line)', once('out'))
    .addHelpText(
      'after',
      `
Examples:
  umbel predict --model model --text "a small yellow bird"
  cat titles.txt | umbel predict --model model --top 3
  umbel predict --model model --input titles.csv --columns id=1,text=title --out suggestions.csv
  umbel predict --model tree --with prime --weight 0.4 --text "a small yellow bird"`,
    );
  withBlendFlags(withReadFlags(withCommonFlags(command))).action(verb(predict));
}

async function predict(terminal: Terminal, flags: PredictFlags) {
  if (flags.text !== undefined && flags.input !== undefined) {
    throw badUsage('give --text or --input, not both', { value: flags.input });
  }
  if (flags.groups !== undefined && flags.input === undefined)
    throw badUsage('--groups must come with --input', { value: flags.groups });
  checkFiles({
    read: { '--input': flags.input, '--groups': flags.groups },
    written: { '--out': flags.out },
  });
  const render = flags.out ? rendererFor(flags.out) : undefined;
  const classifier = await loadBlended(flags.model, flags);
  const reading = readOptions(flags, terminal);
  const source = await openInputs(flags, classifier, reading, terminal.signal);
  classifier.checkDeclared(source.width);
  const answers = flags.groups
    ? predictGroups(classifier, source, flags.groups, flags, terminal)
    : predictAll(classifier, source, flags, terminal);
  const file = flags.out ? await AtomicFile.create(flags.out) : undefined;
  const kept: Prediction[] = [];
  let done = 0;
  try {
    for await (const predictions of answers) {
      if (file && render) await file.write(render(predictions));
      else if (flags.json) kept.push(...predictions);
      else for (const [i, prediction] of predictions.entries()) terminal.say(show(prediction, done + i + 1));
      done += predictions.length;
    }
  } catch (error) {
    await file?.abort();
    throw error;
  }
  await file?.close();
  reportSkipped(reading, terminal);
  if (file) terminal.say(`Labels for ${formatCount(done)} inputs are in ${color.bold(file.path)}.`);
  const skipped = reading.skipped?.count;
  return file ? { n: done, skipped, out: file.path } : { n: done, skipped, predictions: kept };
}

async function openInputs(
  flags: PredictFlags,
  classifier: Classifier,
  reading: ReturnType<typeof readOptions>,
  signal: AbortSignal,
): Promise<SampleStream> {
  const vocabulary = classifier.vocabulary.clone();
  if (flags.input) return openSamples(flags.input, { ...reading, vocabulary });
  async function* batches(): AsyncGenerator<Sample[]> {
    if (flags.text !== undefined) yield [{ text: flags.text, labels: [] }];
    else yield* standardInput(signal);
  }
  return { vocabulary, batches: batches() };
}

/** Lines as they come: a person typing gets an answer after each, a pipe is read in batches. */
async function* standardInput(signal: AbortSignal): AsyncGenerator<Sample[]> {
  const size = process.stdin.isTTY ? 1 : batchRows;
  if (process.stdin.isTTY) process.stderr.write('Type a text and press Enter; Ctrl-D ends.\n');
  let batch: Sample[] = [];
  let isFirst = true;
  for await (const line of createInterface({ input: process.stdin, signal })) {
    // As files do, texts may come with a mark of their encoding.
    const text = isFirst ? line.replace(/^\ufeff/, '') : line;
    isFirst = false;
    batch.push({ text, labels: [] });
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  checkCancelled(signal);
  if (batch.length) yield batch;
}

async function* predictAll(
  classifier: Classifier,
  source: SampleStream,
  { top, threshold }: PredictFlags,
  { threads, signal }: Terminal,
): AsyncGenerator<Prediction[]> {
  async function* one(samples: Sample[]) {
    yield samples;
  }
  for await (const samples of source.batches) {
    const dataset = await collect({ ...source, batches: one(samples) });
    const labels = await classifier.suggest(dataset, { top, threshold, threads, signal });
    yield labels.map((suggestions, row) => ({
      id: samples[row].id,
      text: samples[row].text,
      labels: suggestions,
    }));
  }
}

/** All of the samples are read first: the members of a group may be anywhere among them. */
async function* predictGroups(
  classifier: Classifier,
  source: SampleStream,
  file: string,
  { top, threshold }: PredictFlags,
  { threads, signal, note }: Terminal,
): AsyncGenerator<Prediction[]> {
  const { features, texts, ...dataset } = await collect(source);
  const { names, members } = await readGroups(file, dataset, { signal, note });
  const inputs = { texts, features: { ...features, bags: members } };
  const labels = await classifier.suggest(inputs, { top, threshold, threads, signal });
  yield labels.map((suggestions, group) => ({ id: names[group], labels: suggestions }));
}

function show({ id, text, labels }: Prediction, row: number): string {
  const title = [id, text].filter((part) => part !== undefined).join('  ') || `row ${row}`;
  const lines = labels.map(({ label, name, score }) => {
    const shown = name === label ? name : `${name} ${color.dim(`(${label})`)}`;
    return `  ${score.toFixed(3)}  ${shown}`;
  });
  return [color.bold(title), ...(lines.length ? lines : [color.dim('  no label')])].join('\n');
}

function rendererFor(path: string): (predictions: Prediction[]) => string {
  switch (extensionOf(path)) {
    case '.jsonl':
      return (predictions) => predictions.map((prediction) => `${JSON.stringify(prediction)}\n`).join('');
    case '.csv':
      return csvRenderer();
    default:
      throw badUsage('--out must end in .jsonl or .csv', { value: path });
  }
}

function csvRenderer(): (predictions: Prediction[]) => string {
  let row = 0;
  let head = `${Papa.unparse([['row', 'id', 'text', 'rank', 'label', 'name', 'score']])}\n`;
  return (predictions) => {
    const lines = predictions.flatMap(({ id, text, labels }) => {
      row++;
      return labels.map(({ label, name, score }, i) => [
        row,
        id ?? '',
        text ?? '',
        i + 1,
        label,
        name,
        score,
      ]);
    });
    const rendered = head + (lines.length ? `${Papa.unparse(lines, { newline: '\n' })}\n` : '');
    head = '';
    return rendered;
  };
}
