// umbel demo: the whole flow on WordNet, from glosses to their broader terms, then what to try next.
import type { Command } from 'commander';
import { type Dataset, selectSamples, stream } from '../data/dataset.ts';
import { writeSamples } from '../data/formats.ts';
import { splitRows } from '../data/split.ts';
import { readWordNet } from '../data/wordnet.ts';
import { evaluate, type Report } from '../judge/evaluate.ts';
import { Classifier } from '../learn/classifier.ts';
import { rowIndices } from '../math/csr.ts';
import { Random } from '../math/random.ts';
import { checkTarget, saveModel } from '../store/folder.ts';
import { type CommonFlags, type Terminal, verb, withCommonFlags } from './run.ts';
import { color, formatCount, formatPercent, formatSeconds, table } from './terminal.ts';

interface DemoFlags extends CommonFlags {
  out: string;
}

export function registerDemo(program: Command): void {
  const command = program
    .command('demo')
    .description('the whole flow on WordNet in seconds: split, vectorise, train, evaluate')
    .option('--out <folder>', 'where the model goes', 'umbel-demo');
  withCommonFlags(command).action(verb(demo));
}

async function demo(terminal: Terminal, { out }: DemoFlags) {
  const started = performance.now();
  const model = `${out}/model`;
  await checkTarget(model);
  const wordnet = await readWordNet(terminal);
  terminal.say(
    `${color.bold('WordNet')}: ${formatCount(wordnet.rows)} glosses, each to be given its broader terms ` +
      `out of ${formatCount(wordnet.vocabulary.size)}.`,
  );
  const split = splitRows(wordnet.labels, { rule: 'random', test: 0.1, seed: terminal.seed });
  const [train, test] = [selectSamples(wordnet, split.train), selectSamples(wordnet, split.test)];
  const classifier = await Classifier.train(train, { ...terminal, learner: 'tree' });
  await saveModel(classifier, model);
  await writeSamples(stream(test), `${out}/test.jsonl`);
  const { vectorise = 0, train: trained = 0 } = classifier.seconds ?? {};
  terminal.say(
    `Trained ${color.bold('tree')} on ${formatCount(train.rows)} of them in ` +
      `${formatSeconds(vectorise + trained)} (vectorising ${formatSeconds(vectorise)}).\n`,
  );
  const floor = await Classifier.train(train, { ...terminal, learner: 'popular' });
  const reports = {
    popular: await judge(floor, test, terminal),
    tree: await judge(classifier, test, terminal),
  };
  terminal.say(showReports(reports));
  terminal.say(`\nTen of the ${formatCount(test.rows)} held-out glosses (${color.green('green')}: right):\n`);
  terminal.say(await showExamples(classifier, test, terminal));
  const seconds = (performance.now() - started) / 1000;
  terminal.say(`\nDone in ${formatSeconds(seconds)}. Try next:\n${nextCommands(out)}`);
  return { n: train.rows, labels: wordnet.vocabulary.size, seconds, model, ...reports };
}

async function judge(classifier: Classifier, test: Dataset, terminal: Terminal): Promise<Report> {
  const ranking = await classifier.rank(test, { ...terminal, top: 20 });
  return evaluate(ranking, test.labels, { counts: classifier.counts, rows: classifier.rows });
}

function showReports(reports: Record<string, Report>): string {
  const metrics = ['P@1', 'P@3', 'P@5', 'nDCG@5', 'PSP@5', 'R@10'] as const;
  const rows = Object.entries(reports).map(([learner, report]) => [
    color.bold(learner),
    ...metrics.map((metric) => formatPercent(report[metric])),
  ]);
  return table(['%', ...metrics], rows);
}

async function showExamples(classifier: Classifier, test: Dataset, { seed }: Terminal): Promise<string> {
  const rows = new Random(seed, 'examples').permutation(test.rows).slice(0, 10);
  const samples = selectSamples(test, rows);
  const suggestions = await classifier.suggest(samples, { top: 5 });
  const lines = suggestions.map((labels, row) => {
    const truth = new Set(
      Array.from(rowIndices(samples.labels, row), (column) => test.vocabulary.label(column).id),
    );
    const shown = labels.map(({ label, name }) => (truth.has(label) ? color.green(name) : color.dim(name)));
    return `${color.bold(samples.ids?.[row].split('.')[0] ?? '')}: ${samples.texts?.[row]}\n  ${shown.join(', ')}`;
  });
  return lines.join('\n');
}

const nextCommands = (
  out: string,
) => `  npx umbel predict --model ${out}/model --text "a small yellow bird that sings"
  npx umbel explain --model ${out}/model --text "a small yellow bird that sings"
  npx umbel evaluate --model ${out}/model --test ${out}/test.jsonl
  npx umbel serve --model wordnet=${out}/model --state ${out}/state --data glosses=${out}/test.jsonl`;
