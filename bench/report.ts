// Writes the README's "Measured" section from the files in bench/results; a test compares the two. Run from the
// project's folder.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Figures {
  trainSeconds: number;
  batchMicroseconds: number;
  singleMicroseconds: number;
  trainPeakMB: number;
  modelMB: number;
  'P@1': number;
  'P@3': number;
  'P@5': number;
}

interface TreeResults {
  threads: string;
  runs: string;
  /** Options of umbel that are not the defaults. */
  set: string[];
  sets: Record<string, { umbel: Figures; pecos?: Figures & { version: string } }>;
}

interface TextResults {
  rows: number;
  features: number;
  threads: number;
  repeats: number;
  largestDifference: number;
  umbel: { seconds: number };
  sklearn: { seconds: number; version: string };
  timesSklearn: number;
}

interface SplitResults {
  rows: number;
  labels: number;
  stratified: { seconds: number; meanAbsoluteError: number };
  random: { meanAbsoluteError: number };
}

interface GrowthResults {
  points: {
    labels: number;
    rows: number;
    trainSeconds: number;
    cpuSeconds: number;
    trainPeakMB: number;
    modelMB: number;
  }[];
}

const markers = ['<!-- measured: npm run bench:report -->', '<!-- end of measured -->'] as const;

/** The section's text for the results in a folder. */
export function measured(results: string): string {
  const read = <T>(name: string): T | undefined => {
    const path = join(results, `${name}.json`);
    return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
  };
  const trees = ['tree', 'tree-synthetic', 'tree-same-cost'].map((name) => read<TreeResults>(name));
  const [text, split] = [read<TextResults>('tfidf'), read<SplitResults>('stratify')];
  const growth = read<GrowthResults>('growth');
  return [
    ...trees.map((tree) => tree && treeSection(tree)),
    growth && growthSection(growth),
    text && textSection(text),
    split && splitSection(split),
  ]
    .filter((section) => section !== undefined)
    .join('\n\n');
}

const pair = (own: number, peer: number | undefined, digits: number) =>
  `${own.toFixed(digits)}${peer === undefined ? '' : ` / ${peer.toFixed(digits)}`}`;

function treeSection({ threads, runs, set, sets }: TreeResults): string {
  const version = Object.values(sets).find(({ pecos }) => pecos)?.pecos?.version;
  const rows = Object.entries(sets).map(([name, { umbel, pecos }]) => {
    const precision = (side: Figures) =>
      [side['P@1'], side['P@3'], side['P@5']].map((p) => p.toFixed(1)).join(' ');
    return [
      name,
      pair(umbel.trainSeconds, pecos?.trainSeconds, 2),
      pair(umbel.batchMicroseconds, pecos?.batchMicroseconds, 0),
      pair(umbel.singleMicroseconds, pecos?.singleMicroseconds, 0),
      pair(umbel.trainPeakMB, pecos?.trainPeakMB, 0),
      pair(umbel.modelMB, pecos?.modelMB, 1),
      pecos ? `${precision(umbel)} / ${precision(pecos)}` : precision(umbel),
    ].join(' | ');
  });
  const own = set.length > 0 ? `umbel with ${set.join(', ')}` : "umbel's cost is 0.4, PECOS's is 1";
  return [
    `**The label tree beside PECOS XR-Linear ${version ?? ''}**: the same unit-length rows, ${threads} threads, in turns, ` +
      `${runs === '1' ? 'one run' : `medians of ${runs} runs`}, umbel / PECOS, 32-way, otherwise defaults (${own}).`,
    '',
    '| data | train s | batch µs/input | single µs | train MB | model MB | P@1 P@3 P@5 |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows.map((row) => `| ${row} |`),
  ].join('\n');
}

const thousands = (n: number) => n.toLocaleString('en-US');

const growthSection = ({ points }: GrowthResults) =>
  [
    '**Growth of the label tree**: synthetic sets with as many samples as labels, 2 threads (plot: `bench/results/growth.svg`).',
    '',
    '| labels | train s | CPU s | train MB | model MB |',
    '| --- | --- | --- | --- | --- |',
    ...points.map((p) => {
      const cells = [thousands(p.labels), p.trainSeconds.toFixed(1), p.cpuSeconds.toFixed(1)];
      return `| ${[...cells, p.trainPeakMB.toFixed(0), p.modelMB.toFixed(1)].join(' | ')} |`;
    }),
  ].join('\n');

const textSection = (r: TextResults) =>
  `**TF-IDF beside scikit-learn ${r.sklearn.version}**: ${thousands(r.rows)} titles, ${thousands(r.features)} words, ` +
  `${r.umbel.seconds.toFixed(2)} s with ${r.threads} threads against ${r.sklearn.seconds.toFixed(2)} s, ` +
  `${r.timesSklearn.toFixed(1)} times as fast in the median of ${r.repeats} pairs of runs; the values are ` +
  (r.largestDifference === 0 ? 'the same.' : `the same to ${r.largestDifference}.`);

const splitSection = (r: SplitResults) =>
  `**Stratified split**: ${thousands(r.rows)} samples with ${thousands(r.labels)} labels in ` +
  `${r.stratified.seconds.toFixed(2)} s; labels' shares are off by ${r.stratified.meanAbsoluteError} on average ` +
  `(at random: ${r.random.meanAbsoluteError}).`;

/** The part of the README between the markers. */
export function measuredPart(readme: string): string {
  const [start, end] = [readme.indexOf(markers[0]) + markers[0].length, readme.indexOf(markers[1])];
  return readme.slice(start, end).trim();
}

if (process.argv[1]?.endsWith('report.js')) {
  const readme = readFileSync('README.md', 'utf8');
  const section = measured(join('bench', 'results'));
  writeFileSync(
    'README.md',
    readme.replace(measuredPart(readme), () => section),
  );
}
