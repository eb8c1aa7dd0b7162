// Writes docs/measured.md, and the headlines in the README, from the files in bench/results; a test compares them. Run
// from the project's folder.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EagleRow } from './eagle.ts';
import type { Mean } from './figures.ts';
import { eagleSection, eagleTables, partsSection } from './report-eagle.ts';
import {
  type BagResults,
  bagSection,
  type GmvaeResults,
  gmvaeSection,
  type StepResults,
  stepSection,
} from './report-networks.ts';
import { type PrimeResults, primeSections, type SearchResults, searchSection } from './report-prime.ts';

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

/** Rows of `bench/overlap.ts`. */
interface OverlapResults {
  seeds: number[];
  rows: ({ set: string; variant: string } & Record<string, Mean>)[];
}

/** Of `bench/serve.ts`. */
interface Served {
  perSecond: number;
  refusedPerSecond: number;
  failed: number;
  milliseconds: { median: number; p99: number };
}
interface ServeResults {
  full: Served;
  steady: Served & { rate: number };
  overload: Served & { seconds: number; rate: number; resident: { mostMB: number[] } };
  after: Served;
}

const markers = ['<!-- measured: npm run bench:report -->', '<!-- end of measured -->'] as const;

const reader =
  (results: string) =>
  <T>(name: string): T | undefined => {
    const path = join(results, `${name}.json`);
    return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
  };

/** The size of random groups that the README tells of. */
const headlineSize = '10';

/** What the README tells of the results in a folder: the tree beside its peer, training from groups, serving. */
export function headlines(results: string): string {
  const read = reader(results);
  const [tree, eagle] = [read<TreeResults>('tree'), read<{ rows: EagleRow[] }>('eagle-random')];
  const told = eagle?.rows.filter(
    ({ groups, merge }) => merge === 'list' && ['none', headlineSize].includes(groups),
  );
  const served = read<ServeResults>('serve');
  return [
    tree && treeSection(tree),
    told && eagleSection(told, eagleTables[0]),
    served && serveSection(served),
  ]
    .filter((section) => section !== undefined)
    .join('\n\n');
}

/** All that was measured, for the results in a folder. */
export function measured(results: string): string {
  const read = reader(results);
  const trees = ['tree', 'tree-synthetic', 'tree-same-cost'].map((name) => read<TreeResults>(name));
  const [text, split] = [read<TextResults>('tfidf'), read<SplitResults>('stratify')];
  const growth = read<GrowthResults>('growth');
  const gmvae = read<GmvaeResults>('gmvae');
  const overlaps = overlapTables.map(({ name, ...table }) => {
    const found = read<OverlapResults>(`overlap-${name}`);
    return found && overlapSection(found, table);
  });
  const [bags, steps] = [read<BagResults>('miml'), read<StepResults>('nn')];
  const served = read<ServeResults>('serve');
  const [prime, search] = [read<PrimeResults>('prime'), read<SearchResults>('search')];
  const parts = read<{ rows: EagleRow[] }>('eagle-parts');
  const eagles = eagleTables.map(({ name, ...table }) => {
    const found = read<{ rows: EagleRow[] }>(`eagle-${name}`);
    return found && eagleSection(found.rows, table);
  });
  return [
    ...trees.map((tree) => tree && treeSection(tree)),
    growth && growthSection(growth),
    ...overlaps,
    ...eagles,
    parts && partsSection(parts.rows),
    gmvae && gmvaeSection(gmvae),
    bags && bagSection(bags),
    steps && stepSection(steps),
    ...(prime ? primeSections(prime) : []),
    search && searchSection(search),
    text && textSection(text),
    split && splitSection(split),
    served && serveSection(served),
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

const overlapTables: { name: string; title: string; columns: Record<string, string> }[] = [
  {
    name: 'real',
    title:
      '**Overlapping clusters** (`overlap=true`) beside the plain tree. Sets of at most 1,000 labels have no tree ' +
      'by default (flat); here they got one of sixteen leaves',
    columns: {
      'P@1': 'P@1',
      'P@3': 'P@3',
      'P@5': 'P@5',
      trainSeconds: 'train s',
      microseconds: 'batch µs/input',
    },
  },
  {
    name: 'variants',
    title: '**What the parts of overlap bring**',
    columns: { 'P@1': 'P@1', 'P@3': 'P@3', 'P@5': 'P@5' },
  },
  {
    name: 'lambda',
    title: '**By the number of clusters per label** (plot: `bench/results/overlap-lambda.svg`)',
    columns: { 'P@1': 'P@1', 'P@3': 'P@3', 'P@5': 'P@5' },
  },
  {
    name: 'fused',
    title:
      '**Labels fused on purpose**, 2, 4 or 8 into one: neighbours (easy), from one region (medium), any (hard); ' +
      'as many clusters per label as it has parts, 4 at most, both trees with the same leaves; ' +
      'the last column is how far the two copies of a label tell its two parts apart (above 0 is better than chance)',
    columns: {
      'plain P@5': 'plain P@5',
      'overlap P@5': 'overlap P@5',
      'relative gain %': 'gain %',
      disentanglement: 'disentangled (nats)',
    },
  },
];

function overlapSection(
  { seeds, rows }: OverlapResults,
  { title, columns }: { title: string; columns: Record<string, string> },
): string {
  const cell = (value: Mean | undefined) =>
    value === undefined ? '' : `${value.mean} ± ${Number(value.deviation.toPrecision(2))}`;
  return [
    `${title}: means of ${seeds.length} seeds ± standard deviation.`,
    '',
    `| data | | ${Object.values(columns).join(' | ')} |`,
    `| --- | --- |${' --- |'.repeat(Object.keys(columns).length)}`,
    ...rows.map(({ set, variant, ...figures }) => {
      const cells = Object.keys(columns).map((name) => cell(figures[name]));
      return `| ${[set, variant, ...cells].join(' | ')} |`;
    }),
  ].join('\n');
}

const textSection = (r: TextResults) =>
  `**TF-IDF beside scikit-learn ${r.sklearn.version}**: ${thousands(r.rows)} titles, ${thousands(r.features)} words, ` +
  `${r.umbel.seconds.toFixed(2)} s with ${r.threads} threads against ${r.sklearn.seconds.toFixed(2)} s, ` +
  `${r.timesSklearn.toFixed(1)} times as fast in the median of ${r.repeats} pairs of runs; the values are ` +
  (r.largestDifference === 0 ? 'the same.' : `the same to ${r.largestDifference}.`);

const splitSection = (r: SplitResults) =>
  `**Stratified split**: ${thousands(r.rows)} samples with ${thousands(r.labels)} labels in ` +
  `${r.stratified.seconds.toFixed(2)} s; labels' shares are off by ${r.stratified.meanAbsoluteError} on average ` +
  `(at random: ${r.random.meanAbsoluteError}).`;

const serveSection = ({ full, steady, overload, after }: ServeResults) =>
  '**Over HTTP**: one text per request to the WordNet tree, the load (autocannon) on the same two cores. ' +
  `${thousands(full.perSecond)} suggestions per second at most; at ${thousands(steady.rate)} per second half are there within ` +
  `${steady.milliseconds.median} ms and 99% within ${steady.milliseconds.p99} ms. At ${thousands(overload.rate)} per second for ` +
  `${overload.seconds} s and with short queues it answered ${thousands(overload.perSecond)} per second, refused ` +
  `${thousands(overload.refusedPerSecond)} with 503 and lost ${overload.failed}; its memory in each tenth of that time was at ` +
  `most ${overload.resident.mostMB.map((mb) => mb.toFixed(0)).join(', ')} MB. Right after, 8 clients had ` +
  `${thousands(after.perSecond)} answers per second, 99% within ${after.milliseconds.p99} ms.`;

/** A page as what stands before, between and after the markers. */
function parts(page: string): [string, string, string] {
  const [start, end] = [page.indexOf(markers[0]) + markers[0].length, page.indexOf(markers[1])];
  return [page.slice(0, start), page.slice(start, end), page.slice(end)];
}
export const measuredPart = (page: string): string => parts(page)[1].trim();

/** The pages that quote results, and what they quote. */
export const pages = [
  { file: 'README.md', quote: headlines },
  { file: join('docs', 'measured.md'), quote: measured },
];

if (process.argv[1]?.endsWith('report.js')) {
  for (const { file, quote } of pages) {
    const [before, , after] = parts(readFileSync(file, 'utf8'));
    writeFileSync(file, `${before}\n\n${quote(join('bench', 'results'))}\n\n${after}`);
  }
}
