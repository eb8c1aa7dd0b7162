// Times the stratified split of 653,427 library titles with 25,138 labels and compares it with the
// other rules (fastest of three runs each).
// Argument: the folder of data sets. Run from the project's folder; writes bench/results/stratify.json.
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readLines } from '../src/data/file.ts';
import { type Split, splitRows, splitRules } from '../src/data/split.ts';
import { CsrBuilder, columnCounts, nnz, type Pattern, selectRows } from '../src/math/csr.ts';
import { machine, rounded } from './figures.ts';

const fraction = 0.1;

async function readLabels(files: string[]): Promise<Pattern> {
  const labels = new CsrBuilder('binary');
  for (const file of files) {
    for await (const { lines } of readLines(file)) {
      for (const line of lines) labels.add(line.slice(0, line.indexOf('\t')).split(',').map(Number));
    }
  }
  return labels.pattern();
}

/** How far the labels' shares of the test part are from the fraction asked for. */
function quality(labels: Pattern, { train, test }: Split) {
  const total = columnCounts(labels);
  const inTest = columnCounts(selectRows(labels, test));
  const inTrain = columnCounts(selectRows(labels, train));
  const used = [...total.keys()].filter((label) => total[label] > 0);
  const frequent = used.filter((label) => total[label] * fraction >= 1);
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    testRows: test.length,
    meanAbsoluteError: rounded(mean(used.map((label) => Math.abs(inTest[label] / total[label] - fraction)))),
    frequentLabelsMissingInTest: frequent.filter((label) => inTest[label] === 0).length,
    labelsInTestOnly: used.filter((label) => inTrain[label] === 0).length,
  };
}

const folder = join(process.argv[2] ?? '', 'yso-finna-en');
if (!existsSync(folder)) {
  console.log(`skipped: no folder ${folder}; give the folder of data sets as the first argument`);
} else {
  const labels = await readLabels(['train.tsv.gz', 'test.tsv.gz'].map((name) => join(folder, name)));
  const { rows, cols } = labels;
  const rules = splitRules.map((rule) => {
    const runs = [1, 2, 3].map(() => {
      const start = performance.now();
      const split = splitRows(labels, { rule, test: fraction, seed: 1 });
      return { split, seconds: (performance.now() - start) / 1000 };
    });
    const seconds = Math.min(...runs.map((run) => run.seconds));
    return [rule, { seconds: rounded(seconds), ...quality(labels, runs[0].split) }];
  });
  const result = {
    machine: machine(),
    data: 'yso-finna-en train + test',
    rows,
    labels: cols,
    positives: nnz(labels),
    test: fraction,
    ...Object.fromEntries(rules),
  };
  await mkdir(join('bench', 'results'), { recursive: true });
  await writeFile(join('bench', 'results', 'stratify.json'), `${JSON.stringify(result, null, 2)}\n`);
  console.log(result);
}
