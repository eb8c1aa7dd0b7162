// umbel impute: labels of groups in, labels of instances out; and what train --groups shares with it.
import type { Command } from 'commander';
import { type Dataset, selectSamples, stream } from '../data/dataset.ts';
import { type EvidenceRecord, readCorrections, writeEvidence } from '../data/evidence-file.ts';
import type { ReadOptions } from '../data/format.ts';
import { readDataset, writeSamples } from '../data/formats.ts';
import { leaveOutUngrouped, readGroups } from '../data/groups-file.ts';
import { badInput } from '../errors.ts';
import { choiceOf } from '../learn/impute/assignment.ts';
import {
  type Grouped,
  type ImputedSet,
  type ImputeOptions,
  imputeOptions,
  imputeSet,
} from '../learn/impute/impute.ts';
import { Preparation, preparationOptions } from '../learn/preparation.ts';
import { nnz, rowIndices } from '../math/csr.ts';
import { parseOptions } from '../options.ts';
import {
  type CommonFlags,
  once,
  optionFlags,
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

interface ImputeFlags extends CommonFlags, ReadFlags, GroupFlags {
  train: string;
  groups: string;
  out: string;
}

export const withGroupFlags = (command: Command): Command =>
  command
    .option('--evidence <file>', 'write for every group and label who got it, and by how much (JSONL)')
    .option('--corrections <file>', 'lines of such a file with instances set right: those pairs are kept so');

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
  withReadFlags(withCommonFlags(withOptionFlags(withGroupFlags(command), imputeOptions))).action(
    verb(imputeFile),
  );
}

const examples = `
Examples:
  umbel data group --input titles.jsonl --random 10 --out grouped
  umbel impute --train grouped/instances.jsonl --groups grouped/groups.jsonl --out labelled.jsonl --evidence why.jsonl
  umbel impute --train instances.jsonl --groups groups.jsonl --corrections mended.jsonl --out labelled.jsonl`;

async function imputeFile(terminal: Terminal, flags: ImputeFlags) {
  const options = optionFlags(imputeOptions, flags);
  const started = performance.now();
  const reading = readOptions(flags, terminal);
  const { dataset, grouped } = await readGrouped(flags.train, flags, reading);
  const read = performance.now();
  const { features } = await Preparation.fit(dataset, parseOptions(preparationOptions), terminal);
  const vectorised = performance.now();
  const imputed = await imputeSet({ ...dataset, features }, grouped, options, terminal);
  const done = performance.now();
  const { labels, kept } = imputed;
  const labelled: Dataset = { ...dataset, labels };
  const n = await writeSamples(stream(kept ? selectSamples(labelled, kept) : labelled), flags.out, flags);
  const report = await reportImputed(imputed, dataset, grouped, flags, terminal);
  reportSkipped(reading, terminal);
  const seconds = {
    read: (read - started) / 1000,
    vectorise: (vectorised - read) / 1000,
    impute: (done - vectorised) / 1000,
    total: (performance.now() - started) / 1000,
  };
  terminal.say(
    `Imputed ${formatCount(nnz(labels))} labels of ${formatCount(n)} samples in ${formatSeconds(seconds.impute)}: ` +
      color.bold(flags.out),
  );
  return { n, ...report, assigned: nnz(labels), seconds, skipped: reading.skipped?.count, out: flags.out };
}

/** Instances and their groups; what is wrong with them is refused, or left out and counted. */
export async function readGrouped(
  train: string,
  flags: GroupFlags & { groups: string },
  reading: ReadOptions & { format?: string },
): Promise<{ dataset: Dataset; grouped: Grouped }> {
  const instances = await readDataset(train, reading);
  if (nnz(instances.labels) > 0)
    throw badInput('instances must come without labels where groups carry them', {
      file: train,
      value: `${nnz(instances.labels)} labels`,
      hint: 'umbel data group takes them away',
    });
  const { vocabulary } = instances;
  // Only a file that names its labels says what a label may be.
  const closed = vocabulary.size > 0;
  const read = await readGroups(flags.groups, instances, { ...plain(reading), closed });
  const { dataset, groups } = leaveOutUngrouped(instances, read, reading.skipped);
  dataset.labels.cols = vocabulary.size;
  const corrections = flags.corrections
    ? await readCorrections(flags.corrections, groups, dataset, plain(reading))
    : [];
  return { dataset, grouped: { groups, corrections, skipped: reading.skipped } };
}

/** Groups and corrections are JSON lines, whatever the instances are. */
const plain = ({ skipped, note, progress, signal }: ReadOptions): ReadOptions => ({
  skipped,
  note,
  progress,
  signal,
});

/** Says what was decided and why, and writes the evidence where it is asked for. */
export async function reportImputed(
  imputed: ImputedSet,
  dataset: Dataset,
  grouped: Grouped,
  { evidence }: GroupFlags,
  terminal: Terminal,
) {
  for (const reason of imputed.reasons) terminal.note(reason);
  const corrected = grouped.corrections?.length ?? 0;
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

/** Group after group, label after label; then what was corrected. */
function* evidenceOf(imputed: ImputedSet, dataset: Dataset, grouped: Grouped): Generator<EvidenceRecord> {
  const { groups, assignment } = imputed;
  const { names } = grouped.groups;
  const idOf = (row: number) => dataset.ids?.[row] ?? String(row);
  const labelOf = (column: number) => dataset.vocabulary.label(column).id;
  for (let group = 0; group < names.length; group++) {
    for (let pair = groups.labels.indptr[group]; pair < groups.labels.indptr[group + 1]; pair++) {
      const record = { group: names[group], label: labelOf(groups.labels.indices[pair]) };
      if (!assignment) {
        yield { ...record, instances: Array.from(rowIndices(groups.members, group), idOf) };
        continue;
      }
      const { places, similarities, margin } = choiceOf(assignment, pair);
      const members = rowIndices(groups.members, group);
      yield {
        ...record,
        instances: places.map((place) => idOf(members[place])),
        similarities: similarities.map(short),
        margin: margin === null ? null : short(margin),
      };
    }
  }
  for (const { group, label, rows } of grouped.corrections ?? [])
    yield { group: names[group], label: labelOf(label), instances: rows.map(idOf), pinned: true };
}

const short = (value: number) => Number(value.toPrecision(4));

/** `impute.step=0.2` among the settings of train is the option `step` of imputing. */
export function splitSettings(
  settings: Record<string, string> = {},
  method: string | undefined,
): { impute: ImputeOptions; rest: Record<string, string> } {
  const prefix = 'impute.';
  const own = Object.entries(settings).filter(([name]) => name.startsWith(prefix));
  const rest = Object.entries(settings).filter(([name]) => !name.startsWith(prefix));
  const given = Object.fromEntries(own.map(([name, value]) => [name.slice(prefix.length), value]));
  return {
    impute: parseOptions(imputeOptions, method === undefined ? given : { ...given, method }),
    rest: Object.fromEntries(rest),
  };
}
