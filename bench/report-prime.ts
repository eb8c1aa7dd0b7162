// The tables of `bench/prime.ts` and `bench/search.ts`, from what they keep.
import { type Mean, means } from './figures.ts';

type Figures = Record<string, number>;
/** By experiment, data, row and seed; blends of two models are figures by the way they were blended. */
export interface PrimeResults {
  runs: Record<string, Figures | Record<string, Figures>>;
}

const titles: Record<string, string> = {
  main: '**PRIME beside a text-only Siamese encoder and the label tree** (`--with` blends by score, weight 0.5, if nothing is said)',
  losses: "**What the losses of PRIME bring**, as in the paper's table 6",
  sampling: "**How positives of PRIME are drawn**, as in the paper's table 11",
  free: "**By the number of free vectors**, as in the paper's table 9",
  convergence: "**What centroids do for convergence**, as in the paper's figure 3",
  start: '**Where the encoder of PRIME starts**',
};

const columns = ['P@1', 'P@3', 'P@5', 'PSP@1', 'PSP@3', 'PSP@5', 'R@100', 'cpuSeconds'];
// Runs that go on where others were cut off, beside other work, have no other time worth telling.
const headings: Record<string, string> = { cpuSeconds: 'train CPU s' };

interface Line {
  experiment: string;
  data: string;
  row: string;
  figures: Figures;
}

const isNested = (run: PrimeResults['runs'][string]): run is Record<string, Figures> =>
  Object.values(run).some((value) => typeof value === 'object');

function linesOf({ runs }: PrimeResults): Line[] {
  return Object.entries(runs).flatMap(([name, run]) => {
    // All rows of a set are what readers expect.
    const [experiment, whole, row] = name.replace(' x 1,', ',').split(' | ');
    // Rows of this experiment name their epochs themselves.
    const data = experiment === 'convergence' ? whole.replace(/\d+ epochs of/, 'batches of') : whole;
    if (!isNested(run)) return [{ experiment, data, row, figures: run }];
    return Object.entries(run).map(([how, figures]) => ({ experiment, data, row: `${row} ${how}`, figures }));
  });
}

export function primeSections(results: PrimeResults): string[] {
  const lines = linesOf(results);
  const tables = Object.entries(titles).flatMap(([experiment, title]) => {
    const own = lines.filter((line) => line.experiment === experiment);
    return own.length > 0 ? [[title, tableOf(own, columns)].join(': %, means over seeds.\n\n')] : [];
  });
  const added = lines.filter((line) => line.experiment === 'new');
  if (added.length === 0) return tables;
  const title =
    '**Labels taken in after training** (a tenth of them): R@10 of these labels, %, means over seeds.';
  return [...tables, `${title}\n\n${tableOf(added, Object.keys(added[0].figures))}`];
}

/** A line for each row of each set; seeds become one. */
function tableOf(lines: Line[], names: string[]): string {
  const kinds = [...new Set(lines.map(({ data, row }) => `${data} | ${row}`))];
  const rows = kinds.map((kind) => {
    const own = lines.filter(({ data, row }) => `${data} | ${row}` === kind).map(({ figures }) => figures);
    const together = means(own);
    return `| ${kind} | ${own.length} | ${names.map((name) => cell(together[name])).join(' | ')} |`;
  });
  return [
    `| data | | seeds | ${names.map((name) => headings[name] ?? name).join(' | ')} |`,
    `| --- | --- | --- |${' --- |'.repeat(names.length)}`,
    ...rows,
  ].join('\n');
}

const cell = (mean: Mean | undefined): string => (mean === undefined ? '' : mean.mean.toFixed(1));

interface Side {
  perSecond: number;
  perCpuSecond: number;
  recall?: number;
}
/** By kind of search, size, queries at once and threads. */
export interface SearchResults {
  runs: Record<string, { umbel: Side; faiss: Side; timesFaiss: number; version: string }>;
}

export function searchSection({ runs }: SearchResults): string {
  const side = ({ perSecond, perCpuSecond, recall }: Side) =>
    [perSecond, perCpuSecond].map((rate) => rate.toFixed(0)).join(' / ') +
    (recall === undefined ? '' : `, recall ${recall.toFixed(3)}`);
  const rows = Object.entries(runs).map(
    ([name, { umbel, faiss, timesFaiss }]) =>
      `| ${name.split(' | ').join(', ')} | ${side(umbel)} | ${side(faiss)} | ${timesFaiss.toFixed(2)} |`,
  );
  const [{ version }] = Object.values(runs);
  return [
    `**The ten nearest of many vectors beside Faiss ${version}**: queries per second / per second of CPU; recall is that of the ten.`,
    '',
    '| search | umbel | Faiss | times Faiss (CPU) |',
    '| --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}
