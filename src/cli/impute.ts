// umbel impute: labels of groups in, labels of instances out; and what train --groups shares with it.
import type { Command } from 'commander';
import { type Dataset, stream } from '../data/dataset.ts';
import { writeEvidence } from '../data/evidence-file.ts';
import { writeSamples } from '../data/formats.ts';
import { type GroupedRows, readGrouped } from '../data/grouped.ts';
import { badUsage } from '../errors.ts';
import { evidenceOf } from '../learn/impute/evidence.ts';
import { type ImputedSet, imputeDataset } from '../learn/impute/impute.ts';
import { type ImputeOptions, imputeOptions, parseImputeOptions } from '../learn/impute/options.ts';
import { nnz, type Pattern } from '../math/csr.ts';
import { checkFiles, type Files } from './files.ts';
import { describeLabels, type LabelFlags, withLabelFlags } from './label-names.ts';
import {
  type CommonFlags,
  flagsOf,
  once,
  type ReadFlags,
  readOptions,
  reportSkipped,
  type Terminal,
  verb,
  withCommonFlags,
  withOptionFlags,
  withReadFlags,
} from './run.ts';
import { color, formatCount, formatSeconds } from './terminal.ts';

/** Flags of everything that starts from groups. */
export interface GroupFlags {
  groups?: string;
  corrections?: string;
  evidence?: string;
}

interface ImputeFlags extends CommonFlags, ReadFlags, GroupFlags, LabelFlags {
  train: string;
  groups: string;
  out: string;
}

export const groupFiles = ({ groups, corrections, labels }: GroupFlags & LabelFlags): Files => ({
  '--groups': groups,
  '--corrections': corrections,
  '--labels': labels,
});

export const withGroupFlags = (command: Command): Command =>
  command
    .option('--evidence <file>', 'write for every group and label who got it, and by how much (JSONL)')
    .option(
      '--corrections <file>',
      'lines of such a file with instances set right, and only those lines: these pairs are kept so',
    );

export function registerImpute(program: Command): void {
  const command = program
    .command('impute')
    .description('decide which members of a group its labels belong to')
    .requiredOption('--train <file>', 'the instances, without labels', once('train'))
    .requiredOption(
      '--groups <file>',
      'lines {"group", "instances", "labels"} (umbel data group writes them)',
    )
    .requiredOption('--out <file>', 'gets the instances with their labels; its extension names the format')
    .addHelpText('after', examples);
  const described = withLabelFlags(withGroupFlags(command));
  withReadFlags(withCommonFlags(withOptionFlags(described, imputeOptions))).action(verb(imputeFile));
}

const examples = `
Examples:
  umbel data group --input titles.jsonl --random 10 --out grouped
  umbel impute --train grouped/instances.jsonl --groups grouped/groups.jsonl --out labelled.jsonl --evidence why.jsonl
  umbel impute --train instances.jsonl --groups groups.jsonl --labels names.tsv --out labelled.jsonl
  umbel impute --train instances.jsonl --groups groups.jsonl --corrections mended.jsonl --out labelled.jsonl`;

async function imputeFile(terminal: Terminal, flags: ImputeFlags) {
  const options = parseImputeOptions(flagsOf(imputeOptions, flags));
  checkFiles({
    read: { '--train': flags.train, ...groupFiles(flags) },
    written: { '--out': flags.out, '--evidence': flags.evidence },
  });
  const started = performance.now();
  const reading = readOptions(flags, terminal);
  const { dataset, grouped } = await readGrouped(flags.train, flags, reading);
  await describeLabels(dataset.vocabulary, flags, terminal);
  const read = performance.now();
  const imputed = await imputeDataset(dataset, grouped, options, terminal);
  const done = performance.now();
  const n = await writeSamples(stream(imputed.dataset), flags.out, flags);
  const report = await reportImputed(imputed, dataset, grouped, flags, terminal);
  reportSkipped(reading, terminal);
  const seconds = {
    read: (read - started) / 1000,
    impute: (done - read) / 1000,
    total: (performance.now() - started) / 1000,
  };
  const assigned = nnz(imputed.labels);
  const dropped = dataset.rows - n;
  const unlabelled = emptyRows(imputed.labels);
  if (unlabelled > 0)
    terminal.note(
      `samples ${dropped > 0 ? 'left out for want of' : 'without'} a label: ${formatCount(unlabelled)}`,
    );
  terminal.say(
    `Imputed ${formatCount(assigned)} labels of ${formatCount(n)} samples in ${formatSeconds(seconds.impute)}: ` +
      color.bold(flags.out),
  );
  return {
    n,
    ...report,
    assigned,
    unlabelled,
    dropped,
    seconds,
    skipped: reading.skipped?.count,
    out: flags.out,
  };
}

const emptyRows = ({ rows, indptr }: Pattern): number =>
  Array.from({ length: rows }).filter((_, row) => indptr[row] === indptr[row + 1]).length;

/** Says what was decided and why, and writes the evidence where it is asked for. */
export async function reportImputed(
  imputed: ImputedSet,
  dataset: Dataset,
  grouped: GroupedRows,
  { evidence }: GroupFlags,
  terminal: Terminal,
) {
  for (const reason of imputed.reasons) terminal.note(reason);
  const corrected = grouped.corrections?.length ?? 0;
  if (corrected > 0)
    terminal.note(
      `kept as corrected: ${formatCount(corrected)} of ${formatCount(nnz(grouped.groups.labels))} pairs of group and label`,
    );
  const pairs = evidence ? await writeEvidence(evidence, evidenceOf(imputed, dataset, grouped)) : undefined;
  if (evidence) terminal.say(`Evidence for ${formatCount(pairs ?? 0)} pairs: ${color.bold(evidence)}`);
  return {
    method: imputed.method,
    reasons: imputed.reasons,
    groups: grouped.groups.names.length,
    labels: dataset.vocabulary.size,
    corrected,
    evidence,
  };
}

const prefix = 'impute.';

/** Settings of imputing mean nothing where there is none. */
export function refuseImputing(settings: Record<string, string> = {}, other: string): void {
  const own = Object.keys(settings).find((name) => name.startsWith(prefix));
  if (own !== undefined) throw badUsage(`options of imputing must come with ${other}`, { value: own });
}

/** `impute.step=0.2` among the settings of train is the option `step` of imputing. */
export function splitSettings(
  settings: Record<string, string> = {},
  method: string | undefined,
): { impute: ImputeOptions; rest: Record<string, string> } {
  if (method !== undefined && settings['impute.method'] !== undefined)
    throw badUsage('--impute must be given instead of impute.method, not beside it', {
      value: settings['impute.method'],
    });
  const own = Object.entries(settings).filter(([name]) => name.startsWith(prefix));
  const rest = Object.entries(settings).filter(([name]) => !name.startsWith(prefix));
  const given = Object.fromEntries(own.map(([name, value]) => [name.slice(prefix.length), value]));
  return {
    impute: parseImputeOptions(method === undefined ? given : { ...given, method }),
    rest: Object.fromEntries(rest),
  };
}
