// umbel data: look at, convert, split and group data files.
import { basename, join } from 'node:path';
import { type Command, Option } from 'commander';
import { type Dataset, type Features, selectSamples, stream } from '../data/dataset.ts';
import { extensionOf } from '../data/file.ts';
import { describeFormats, openSamples, readDataset, writeSamples } from '../data/formats.ts';
import { clusteredGroups, groupRows, type Merge, merges, randomGroups } from '../data/group.ts';
import { writeGroups } from '../data/groups-file.ts';
import { type SplitRule, splitRows, splitRules } from '../data/split.ts';
import { type Statistics, streamStatistics } from '../data/stats.ts';
import { badInput, badUsage } from '../errors.ts';
import { CsrBuilder, nnz } from '../math/csr.ts';
import { parseOptions } from '../options.ts';
import { textOptions, Vectoriser } from '../text/vectoriser.ts';
import { checkFiles } from './files.ts';
import {
  type CommonFlags,
  fraction,
  positiveInteger,
  type ReadFlags,
  readOptions,
  reportSkipped,
  type Terminal,
  verb,
  withCommonFlags,
  withReadFlags,
} from './run.ts';
import { color, formatCount, formatPercent, table } from './terminal.ts';

type Flags = CommonFlags & ReadFlags;
type OutputFlags = Flags & { input: string; out: string; to?: string };

export function registerData(program: Command): void {
  const data = program
    .command('data')
    .description('look at, convert, split and group data files')
    .addHelpText('after', `\nFormats (all may be gzipped):\n${describeFormats()}`);

  withReadFlags(
    withCommonFlags(
      data
        .command('stats')
        .argument('<files...>', 'data files')
        .description('sizes, labels per sample, rare labels, empty rows'),
    ),
  ).action(verb(stats));

  withReadFlags(
    withCommonFlags(
      data
        .command('convert')
        .argument('<in>', 'a data file')
        .argument('<out>', 'the file to write; its extension names the format')
        .description('any format to any format'),
    ),
  ).action(verb(convert));

  const split = data
    .command('split')
    .description('cut a file into training, validation and test data')
    .requiredOption('--input <file>', 'a data file')
    .requiredOption('--out <folder>', 'gets train, test and valid files')
    .addOption(new Option('--rule <rule>', 'how rows are chosen').choices(splitRules).default('random'))
    .option('--test <share>', 'share of the rows for testing', fraction('test'), 0.1)
    .option('--valid <share>', 'share of the rows for validation', fraction('valid'));
  withOutputFlags(split).action(verb(splitFile));

  const group = data
    .command('group')
    .description('keep labels only for groups of samples (to try learning from group labels)')
    .requiredOption('--input <file>', 'a data file with labels')
    .requiredOption('--out <folder>', 'gets instances (without labels) and groups.jsonl')
    .option('--random <size>', 'random groups of this many samples', positiveInteger('random'))
    .option('--depth <d>', '2^d groups of similar samples', positiveInteger('depth'))
    .option(
      '--noise <s>',
      'with --depth: blur the similarity, 0 not at all, Infinity to random groups',
      Number,
    )
    .addOption(
      new Option('--merge <rule>', 'list counts repeated labels, set does not')
        .choices(merges)
        .default('list'),
    );
  group.addHelpText(
    'after',
    `
Examples:
  umbel data group --input titles.csv --columns text=title,labels=subjects --random 10 --out grouped
  umbel data group --input titles.jsonl --depth 8 --merge set --out clusters`,
  );
  withOutputFlags(group).action(verb(groupFile));
}

const withOutputFlags = (command: Command): Command =>
  withReadFlags(
    withCommonFlags(
      command.option('--to <extension>', 'format to write, such as .jsonl.gz (default: that of the input)'),
    ),
  );

async function stats(terminal: Terminal, flags: Flags, files: string[]) {
  const results: (Statistics & { file: string })[] = [];
  for (const file of files) {
    const reading = readOptions(flags, terminal);
    const statistics = await streamStatistics(await openSamples(file, reading));
    reportSkipped(reading, terminal);
    terminal.say(`${results.length ? '\n' : ''}${color.bold(basename(file))}\n${showStatistics(statistics)}`);
    results.push({ file, ...statistics });
  }
  return { files: results };
}

/** Nested numbers as `samples per label: mean 3.2, max 17`, labels as `history (17), art (12)`. */
function showStatistics(statistics: Statistics): string {
  const words = (key: string) => key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  const number = (key: string, value: number) => {
    if (/share/i.test(key)) return `${formatPercent(value)}%`;
    return Number.isInteger(value) ? formatCount(value) : value.toFixed(2);
  };
  const show = (key: string, value: unknown): string => {
    if (typeof value === 'number') return number(key, value);
    return Object.entries(value as object)
      .map(([name, inner]) => `${words(name)} ${show(name, inner)}`)
      .join(', ');
  };
  const { mostFrequent, ...numbers } = statistics;
  const rows = Object.entries(numbers)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => [words(key), show(key, value)]);
  const labels = mostFrequent.map(({ label, samples }) => `${clip(label)} (${formatCount(samples)})`);
  if (labels.length > 0) rows.push(['most frequent', labels.join(', ')]);
  return table(['', ''], rows).split('\n').slice(1).join('\n');
}

const clip = (label: string) => (label.length <= 40 ? label : `${label.slice(0, 37)}...`);

async function convert(terminal: Terminal, flags: Flags, input: string, output: string) {
  checkFiles({ read: { input }, written: { output } });
  const reading = readOptions(flags, terminal);
  const rows = await writeSamples(await openSamples(input, reading), output, {
    labelDelimiter: flags.labelDelimiter,
  });
  reportSkipped(reading, terminal);
  terminal.say(`Wrote ${formatCount(rows)} samples to ${color.bold(output)}.`);
  return { n: rows, out: output };
}

async function splitFile(
  terminal: Terminal,
  flags: OutputFlags & { rule: SplitRule; test: number; valid?: number },
) {
  const pathOf = (part: string) => join(flags.out, part + extensionFor(flags));
  for (const part of ['train', 'test', 'valid'])
    checkFiles({ read: { '--input': flags.input }, written: { '--out': pathOf(part) } });
  const dataset = await readWhole(flags, terminal);
  const { rule, test, valid, seed } = flags;
  const parts = Object.entries(splitRows(dataset.labels, { rule, test, valid, seed }));
  const written: Record<string, number> = {};
  for (const [part, rows] of parts) {
    const path = pathOf(part);
    written[part] = await writeSamples(stream(selectSamples(dataset, rows)), path, flags);
    terminal.say(`${formatCount(rows.length)} samples in ${color.bold(path)}`);
  }
  return { rule, out: flags.out, ...written };
}

async function groupFile(
  terminal: Terminal,
  flags: OutputFlags & { random?: number; depth?: number; noise?: number; merge: Merge },
) {
  if ((flags.random === undefined) === (flags.depth === undefined)) {
    throw badUsage('give either --random or --depth', { hint: '--random 10 makes random groups of ten' });
  }
  const { seed, noise = 0 } = flags;
  if (!(noise >= 0)) throw badUsage('--noise must be 0 or more', { value: noise });
  if (flags.noise !== undefined && flags.depth === undefined)
    throw badUsage('--noise must come with --depth: random groups have no similarity to blur', {
      value: noise,
    });
  const path = join(flags.out, `instances${extensionFor(flags)}`);
  const groupsPath = join(flags.out, 'groups.jsonl');
  for (const written of [path, groupsPath])
    checkFiles({ read: { '--input': flags.input }, written: { '--out': written } });
  const dataset = await readWhole(flags, terminal);
  if (nnz(dataset.labels) === 0)
    throw badInput('samples must have labels for groups to carry', {
      file: flags.input,
      hint: 'name their column: --columns labels=subjects',
    });
  const members =
    flags.random !== undefined
      ? randomGroups(dataset.rows, flags.random, seed)
      : clusteredGroups(await featuresOf(dataset, terminal), flags.depth ?? 0, { seed, noise });
  const groups = groupRows(members, dataset.labels, flags.merge);
  const none = new CsrBuilder('binary');
  for (let row = 0; row < dataset.rows; row++) none.add([]);
  const instances = { ...dataset, labels: none.pattern(dataset.vocabulary.size) };
  await writeSamples(stream(instances), path, flags);
  await writeGroups(groupsPath, groups, dataset);
  terminal.say(
    `${formatCount(dataset.rows)} samples in ${formatCount(groups.names.length)} groups: ` +
      `${color.bold(path)} and ${color.bold(groupsPath)}`,
  );
  return { n: dataset.rows, groups: groups.names.length, instances: path, out: flags.out };
}

async function readWhole(flags: OutputFlags, terminal: Terminal): Promise<Dataset> {
  const reading = readOptions(flags, terminal);
  const dataset = await readDataset(flags.input, reading);
  reportSkipped(reading, terminal);
  return dataset;
}

/** Of what is written. */
function extensionFor({ input, to }: OutputFlags): string {
  const [file] = input.split(',');
  const same = extensionOf(file) + (file.toLowerCase().endsWith('.gz') ? '.gz' : '');
  return to?.replace(/^(?!\.)/, '.') ?? same;
}

async function featuresOf(dataset: Dataset, terminal: Terminal): Promise<Features> {
  if (dataset.features) return dataset.features;
  if (!dataset.texts) throw badUsage('--depth needs samples with text or features');
  const { features } = await Vectoriser.fit(dataset.texts, parseOptions(textOptions), terminal);
  return { sparse: features };
}
