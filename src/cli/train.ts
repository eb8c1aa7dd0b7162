// umbel train: data in, model folder out; and umbel options, what --set takes.
import { totalmem } from 'node:os';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Dataset } from '../data/dataset.ts';
import { readDataset } from '../data/formats.ts';
import { bagSamples } from '../data/group.ts';
import { type GroupedRows, readGrouped } from '../data/grouped.ts';
import { readIdList } from '../data/labels.ts';
import { UmbelError } from '../errors.ts';
import { allOptions, Classifier } from '../learn/classifier.ts';
import { imputeSet } from '../learn/impute/impute.ts';
import { imputeMethods, imputeOptions } from '../learn/impute/options.ts';
import type { Estimate } from '../learn/learner.ts';
import { defaultLearner, findLearner, learnerNames } from '../learn/registry.ts';
import type { Option } from '../options.ts';
import { openCheckpoint } from '../store/checkpoint.ts';
import { checkTarget, loadModel, saveModel } from '../store/folder.ts';
import { checkFiles, checkOutside } from './files.ts';
import {
  type GroupFlags,
  groupFiles,
  refuseImputing,
  reportImputed,
  splitSettings,
  withGroupFlags,
} from './impute.ts';
import { describeLabels, type LabelFlags, withLabelFlags } from './label-names.ts';
import {
  type CommonFlags,
  collectSetting,
  once,
  type ReadFlags,
  readOptions,
  refuseAlone,
  reportSkipped,
  type Terminal,
  verb,
  withCommonFlags,
  withReadFlags,
} from './run.ts';
import { color, formatBytes, formatCount, formatSeconds, table } from './terminal.ts';

interface TrainFlags extends CommonFlags, ReadFlags, GroupFlags, LabelFlags {
  impute?: string;
  learner: string;
  train: string;
  valid?: string;
  out: string;
  set?: Record<string, string>;
  vectors?: string;
  include?: string;
  exclude?: string;
  resume?: boolean;
}

export function registerTrain(program: Command): void {
  const command = program
    .command('train')
    .description('train a classifier and save it in a folder')
    .requiredOption('--train <file>', 'training data (umbel data --help lists the formats)', once('train'))
    .requiredOption('--out <folder>', 'where to save the model', once('out'))
    .option('--valid <file>', 'validation data, for learners that choose by them: gmvae', once('valid'))
    .option('--learner <name>', `one of ${learnerNames.join(', ')}`, defaultLearner)
    .option('--set <option=value>', 'an option, as umbel options lists them; repeatable', collectSetting)
    .option(
      '--groups <file>',
      'the labels of groups of samples, where the samples have none (umbel impute --help); miml takes groups as bags',
    )
    .option(
      '--impute <method>',
      `how groups give their labels to samples: ${imputeMethods.join(', ')}; further options as ` +
        '--set impute.rounds=2 (umbel impute --help)',
    )
    .option(
      '--vectors <folder>',
      'a trained prime model: its vectors of the texts become features beside TF-IDF, and are saved with the new model',
      once('vectors'),
    )
    .option('--include <file>', 'only these label ids may be predicted, one per line')
    .option('--exclude <file>', 'these label ids are never predicted, one per line')
    .option('--resume', 'go on where an interrupted training of the same data and options stopped')
    .addHelpText('after', trainExamples);
  withReadFlags(withCommonFlags(withLabelFlags(withGroupFlags(command)))).action(verb(train));

  program
    .command('options')
    .argument('[learner]', `one of ${learnerNames.join(', ')}; or impute`, defaultLearner)
    .description('list the options of a learner and of the text vectoriser, for train --set')
    .option('--json', 'print one machine-readable object on stdout')
    .action(verb(listOptions));
}

const trainExamples = `
Examples:
  umbel train --train titles.csv --columns text=title,labels=subjects --out model
  umbel train --train train.jsonl --set costPositive=0.3 --set text.ngrams=2 --out model
  umbel train --train bibtex-train.arff --out model
  umbel train --train X.trn.npz,Y.trn.npz --labels names.txt --out model
  umbel train --train titles.csv --columns text=title,labels=subjects --vectors prime --out model
  umbel train --train grouped/instances.csv --groups grouped/groups.jsonl --evidence why.jsonl --out model
  umbel train --learner miml --train images.npy --groups albums.jsonl --out model`;

async function train(terminal: Terminal, flags: TrainFlags) {
  // What can be wrong is found before the long work starts.
  const { takesBags } = await findLearner(flags.learner);
  const asBags = takesBags === true && flags.impute === undefined;
  if (asBags) {
    refuseAlone(flags, '--impute', ['evidence', 'corrections']);
    refuseImputing(flags.set, '--impute');
  }
  checkFiles({
    read: { '--train': flags.train, '--valid': flags.valid, ...groupFiles(flags) },
    written: { '--evidence': flags.evidence },
  });
  checkOutside('--evidence', flags.evidence, flags.out);
  await checkTarget(flags.out);
  const vectors = flags.vectors === undefined ? undefined : await loadModel(flags.vectors);
  const started = performance.now();
  const reading = readOptions(flags, terminal);
  const { impute: imputing, rest: settings } = splitSettings(flags.set, flags.impute);
  const { dataset, grouped } = await readTraining(flags, reading);
  if (!grouped) reportSkipped(reading, terminal);
  const { vocabulary } = dataset;
  const described = await describeLabels(vocabulary, flags, terminal);
  if (flags.include) vocabulary.include(await readIdList(flags.include));
  if (flags.exclude) vocabulary.exclude(await readIdList(flags.exclude));
  dataset.labels.cols = vocabulary.size;
  const validation = flags.valid
    ? await readDataset(flags.valid, { ...reading, vocabulary: vocabulary.clone() })
    : undefined;
  const read = (performance.now() - started) / 1000;
  const checkpoint = await openCheckpoint(
    `${resolve(flags.out)}.checkpoint`,
    flags.resume ? 'go on' : 'start anew',
  );
  if (flags.resume) terminal.note(`found ${checkpoint.found} finished pieces of an earlier run`);
  let imputation: Awaited<ReturnType<typeof reportImputed>> | undefined;
  const classifier = await Classifier.train(dataset, {
    ...terminal,
    learner: flags.learner,
    options: settings,
    impute:
      grouped &&
      (async (set) => {
        if (asBags) {
          reportSkipped(reading, terminal);
          return bagSamples(set, grouped.groups);
        }
        const imputed = await imputeSet(set, grouped, imputing, terminal);
        reportSkipped(reading, terminal);
        imputation = await reportImputed(imputed, dataset, grouped, flags, terminal);
        return imputed.set;
      }),
    validation,
    vectors,
    checkpoint,
    onEstimate: (estimate) => checkRoom(estimate, terminal),
  });
  await saveModel(classifier, flags.out);
  await checkpoint.remove();
  const { searchRecall } = classifier;
  if (searchRecall !== undefined)
    terminal.say(`A graph finds ${(100 * searchRecall).toFixed(1)} % of the nearest labels.`);
  const total = (performance.now() - started) / 1000;
  const seconds = { read, vectorise: 0, train: 0, ...classifier.seconds, total };
  const size = { n: dataset.rows, features: classifier.features, labels: vocabulary.size };
  // Learners that read texts have none.
  const features = size.features > 0 ? `${formatCount(size.features)} features, ` : '';
  terminal.say(
    `Trained ${color.bold(flags.learner)} on ${formatCount(size.n)} samples, ${features}` +
      `${formatCount(size.labels)} labels in ${formatSeconds(total)}; saved in ${color.bold(flags.out)}.\n` +
      `Try: umbel predict --model ${flags.out} ${classifier.takesText ? '--text "..."' : '--input FILE'}`,
  );
  return {
    learner: flags.learner,
    seconds,
    peakRssMB: process.resourceUsage().maxRSS / 1024,
    ...size,
    described,
    skipped: reading.skipped?.count,
    imputation,
    searchRecall,
    model: flags.out,
  };
}

/** Samples with labels, or without them and their groups. */
async function readTraining(
  flags: TrainFlags,
  reading: ReturnType<typeof readOptions>,
): Promise<{ dataset: Dataset; grouped?: GroupedRows }> {
  const { groups, train } = flags;
  if (groups !== undefined) return readGrouped(train, { ...flags, groups }, reading);
  refuseAlone(flags, '--groups', ['impute', 'evidence', 'corrections']);
  refuseImputing(flags.set, '--groups');
  return { dataset: await readDataset(train, reading) };
}

/** Says what training will need, and refuses what this machine cannot hold. */
function checkRoom({ memory, disk, remark }: Estimate, { note }: Terminal): void {
  if (remark) note(remark);
  const room = Math.min(totalmem(), process.constrainedMemory?.() || Number.POSITIVE_INFINITY);
  if (memory > room) {
    throw new UmbelError(
      'too-large',
      `training must fit into this machine's memory of ${formatBytes(room)}`,
      {
        value: `an estimate of ${formatBytes(memory)}`,
        hint: 'use fewer rows or features (--set text.maxFeatures=100000), a larger threshold, or fewer --threads',
      },
    );
  }
  if (memory > 1e9)
    note(`training will need about ${formatBytes(memory)} of memory, the model ${formatBytes(disk)} of disk`);
}

async function listOptions(terminal: Terminal, _flags: CommonFlags, learnerName: string) {
  const isImputing = learnerName === 'impute';
  const learner = isImputing ? imputeStep : await findLearner(learnerName);
  const options = isImputing ? imputeOptions : allOptions(await findLearner(learnerName));
  const rows = Object.entries(options).map(([name, option]) => [
    color.bold(name),
    String(option.default),
    option.help + range(option),
  ]);
  terminal.say(`${learner.name}: ${learner.summary}\n\n${table(['option', 'default', 'meaning'], rows)}`);
  return { learner: learner.name, options };
}

/** Not a learner, but a step before any, with options of its own. */
const imputeStep = {
  name: 'impute',
  summary: 'labels of groups become labels of their members (train --set impute.rounds=2)',
};

function range(option: Option): string {
  if (option.kind === 'choice') return ` (${option.choices.join(' | ')})`;
  if (option.kind === 'flag') return ' (true | false)';
  return '';
}
