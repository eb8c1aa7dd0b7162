// umbel labels: look at the label set of a trained model, and change which labels may be predicted.
import { extname } from 'node:path';
import type { Command } from 'commander';
import Papa from 'papaparse';
import { AtomicFile } from '../data/file.ts';
import { badUsage } from '../errors.ts';
import type { Classifier } from '../learn/classifier.ts';
import type { LabelMap } from '../learn/label-map.ts';
import { type Dense, denseRow } from '../math/dense.ts';
import { loadModel, saveModel } from '../store/folder.ts';
import { heatMapPage, heatMapPng } from './heat-map.ts';
import { registerLabelChanges } from './label-changes.ts';
import { type CommonFlags, once, positiveInteger, type Terminal, verb, withCommonFlags } from './run.ts';
import { color, formatCount, table } from './terminal.ts';
import { tiled } from './tiles.ts';

interface LabelsFlags extends CommonFlags {
  model: string;
}

export function registerLabels(program: Command): void {
  const labels = program.command('labels').description('look at or change the label set of a trained model');
  registerLabelChanges(labels);
  const list = labels
    .command('list')
    .description('labels by frequency in the training data')
    .requiredOption('--model <folder>', 'a trained model')
    .option('--search <text>', 'only labels whose name or id contains this')
    .option('--top <n>', 'how many to show', positiveInteger('top'), 20)
    .addHelpText(
      'after',
      `
Examples:
  umbel labels list --model model
  umbel labels list --model model --search music --top 50`,
    );
  withCommonFlags(list).action(verb(listLabels));
  const map = labels
    .command('map')
    .description('how alike labels are to a model that gives them places (prime, gmvae, miml)')
    .requiredOption('--model <folder>', 'a trained model')
    .option('--top <n>', 'how many, the most frequent first', positiveInteger('top'), 200)
    .option('--out <file>', 'a heat map (.html, .png) or the numbers (.csv, .json)', once('out'))
    .addHelpText(
      'after',
      `
Examples:
  umbel labels map --model model --out map.html
  umbel labels map --model model --top 50 --out similarities.csv`,
    );
  withCommonFlags(map).action(verb(mapLabels));
  const picture = labels
    .command('picture')
    .description('what each label looks like to a model of images (miml): its embedding as an image')
    .requiredOption('--model <folder>', 'a trained model')
    .requiredOption('--out <file>', 'a .png', once('out'))
    .option('--width <n>', 'pixels across an image (default: images are square)', positiveInteger('width'));
  withCommonFlags(picture).action(verb(drawLabels));
  for (const [name, description] of [
    ['exclude', 'never predict these labels again'],
    ['allow', 'predict these labels again'],
  ] as const) {
    const change = labels
      .command(name)
      .description(description)
      .argument('<ids...>', 'label ids')
      .requiredOption('--model <folder>', 'a trained model');
    withCommonFlags(change).action(
      verb((terminal, flags: LabelsFlags, ids: string[]) => changeExcluded(terminal, flags, name, ids)),
    );
  }
}

async function listLabels(terminal: Terminal, flags: LabelsFlags & { search?: string; top: number }) {
  const classifier = await loadModel(flags.model);
  const wanted = flags.search?.toLowerCase();
  const found = Array.from(classifier.vocabulary, (label, column) => ({
    ...describe(classifier, column),
    ...label,
  }))
    .filter(({ id, name, altNames }) => {
      return (
        wanted === undefined ||
        [id, name, ...(altNames ?? [])].some((text) => text?.toLowerCase().includes(wanted))
      );
    })
    .sort((a, b) => b.samples - a.samples);
  const rows = found.slice(0, flags.top).map(({ id, name, samples, excluded }) => {
    return [formatCount(samples), id, name ?? '', excluded ? color.red('excluded') : ''];
  });
  terminal.say(table(['samples', 'id', 'name', ''], rows));
  terminal.say(
    color.dim(`${formatCount(found.length)} of ${formatCount(classifier.vocabulary.size)} labels`),
  );
  return { labels: classifier.vocabulary.size, found: found.length, shown: found.slice(0, flags.top) };
}

async function mapLabels(terminal: Terminal, flags: LabelsFlags & { top: number; out?: string }) {
  const write = flags.out === undefined ? undefined : mapWriter(flags.out);
  const { labels, similarities, groups } = (await loadModel(flags.model)).labelMap(flags.top);
  const closest = closestPairs(similarities, 10).map(({ row, column, similarity }) => ({
    labels: [labels[row].name, labels[column].name],
    similarity,
  }));
  terminal.say(
    table(
      ['cosine', 'labels that are alike'],
      closest.map((pair) => [pair.similarity.toFixed(2), pair.labels.join(' and ')]),
    ),
  );
  if (groups)
    terminal.say(
      `Mean cosine of labels with the same broader label ${groups.within.toFixed(3)}, of others ${groups.between.toFixed(3)}.`,
    );
  await write?.(labels, similarities);
  return { labels, groups, closest, out: flags.out };
}

async function drawLabels(terminal: Terminal, flags: LabelsFlags & { out: string; width?: number }) {
  if (extname(flags.out).toLowerCase() !== '.png')
    throw badUsage('--out must end in .png', { value: flags.out });
  const { labels, vectors } = (await loadModel(flags.model)).labelVectors();
  const file = await AtomicFile.create(flags.out);
  try {
    await file.write(heatMapPng(tiled(vectors, flags.width)));
    await file.close();
  } catch (error) {
    await file.abort();
    throw error;
  }
  terminal.say(`${formatCount(labels.length)} labels, from left to right: ${color.bold(flags.out)}`);
  return { labels, out: flags.out };
}

type MapWriter = (labels: LabelMap['labels'], similarities: Dense) => Promise<void>;

/** What writes a map to a file, by its extension; refuses others before the work. */
function mapWriter(path: string): MapWriter {
  const names = (labels: LabelMap['labels']) => labels.map(({ name }) => name);
  const rows = ({ rows: count, ...dense }: Dense) =>
    Array.from({ length: count }, (_, row) =>
      Array.from(denseRow({ rows: count, ...dense }, row), (value) => Number(value.toFixed(4))),
    );
  const contents: Record<string, (...map: Parameters<MapWriter>) => string | Uint8Array> = {
    '.html': (labels, matrix) => heatMapPage(`${labels.length} labels`, names(labels), matrix),
    '.png': (_, matrix) => heatMapPng(matrix),
    '.json': (labels, matrix) => `${JSON.stringify({ labels, similarities: rows(matrix) })}\n`,
    '.csv': (labels, matrix) => {
      const lines = rows(matrix).map((row, i) => [labels[i].label, ...row]);
      return `${Papa.unparse([['', ...labels.map(({ label }) => label)], ...lines], { newline: '\n' })}\n`;
    },
  };
  const content = contents[extname(path).toLowerCase()];
  if (!content) throw badUsage(`--out must end in ${Object.keys(contents).join(', ')}`, { value: path });
  return async (labels, similarities) => {
    const file = await AtomicFile.create(path);
    await file.write(content(labels, similarities));
    await file.close();
  };
}

function closestPairs({ rows, values }: Dense, count: number) {
  const pairs = Array.from(values, (similarity, at) => ({
    row: Math.floor(at / rows),
    column: at % rows,
    similarity,
  }));
  return pairs
    .filter(({ row, column }) => row < column)
    .sort((a, b) => b.similarity - a.similarity)
    .slice(0, count);
}

function describe(classifier: Classifier, column: number) {
  return { samples: classifier.counts[column] ?? 0, excluded: classifier.vocabulary.isExcluded(column) };
}

async function changeExcluded(
  terminal: Terminal,
  { model }: LabelsFlags,
  change: 'exclude' | 'allow',
  ids: string[],
) {
  const classifier = await loadModel(model);
  if (change === 'exclude') classifier.vocabulary.exclude(ids);
  else classifier.vocabulary.allow(ids);
  const excluded = classifier.vocabulary.excludedIds;
  if (excluded.length === classifier.vocabulary.size)
    throw badUsage('at least one label must remain', { value: 0 });
  await saveModel(classifier, model);
  terminal.say(
    `${formatCount(excluded.length)} of ${formatCount(classifier.vocabulary.size)} labels are excluded.`,
  );
  return { labels: classifier.vocabulary.size, excluded };
}
