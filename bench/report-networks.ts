// The parts of docs/measured.md that tell of networks: C-GMVAE beside other learners, bags of images, training steps.
import { type Mean, means } from './figures.ts';
import type { GmvaeRun } from './gmvae.ts';
import type { BagRow } from './miml.ts';

/** Of `bench/gmvae.ts`. */
export interface GmvaeResults {
  runs: GmvaeRun[];
  /** What the paper reports, by set, %: example-, micro- and macro-F1, Hamming accuracy, P@1. */
  published: Record<string, number[]>;
}

/** Of `bench/miml.ts`. */
export interface BagResults {
  heldBack: number;
  rows: BagRow[];
}

/** Of `bench/nn.ts`. */
export interface StepResults {
  rounds: number;
  steps: number;
  nets: Record<
    string,
    {
      timesTorch: number;
      runs: { threads: number; umbel: StepFigures; torch: StepFigures & { version: string } }[];
    }
  >;
}
interface StepFigures {
  best: number;
  median: number;
}

const setMetrics = ['exampleF1', 'microF1', 'macroF1', 'hammingAccuracy'] as const;

/** One row per set, method and share of the training rows; each cell by protocol of thresholds. */
export function gmvaeSection({ runs, published }: GmvaeResults): string {
  const kindOf = ({ set, method, share, split }: GmvaeRun) => [
    set,
    [
      method,
      ...(share === 1 ? [] : [`${100 * share}% of the rows`]),
      ...(split === 0 ? ["the set's own test part"] : []),
    ].join(', '),
  ];
  const kinds = new Map(runs.map((run) => [kindOf(run).join(), kindOf(run)]));
  const rows = [...kinds].map(([key, [set, method]]) => {
    const own = runs.filter((run) => kindOf(run).join() === key);
    const spread = (values: number[]) => means(values.map((value) => ({ value: 100 * value }))).value;
    const cell = (name: (typeof setMetrics)[number]) => {
      const by = (protocol: keyof GmvaeRun['protocols']) =>
        spread(own.map(({ protocols }) => protocols[protocol]?.[name] ?? 0));
      const others = [by('val'), by('fixed@.5')].map((value) => value.mean.toFixed(1));
      return [inWords(by('oracle_test')), ...others].join(' / ');
    };
    // One split has no deviation.
    const inWords = ({ mean, deviation }: Mean) =>
      mean.toFixed(1) + (own.length > 1 ? ` ± ${deviation.toFixed(1)}` : '');
    return [
      set,
      method,
      String(own.length),
      ...setMetrics.map(cell),
      inWords(spread(own.map((run) => run['P@1']))),
    ];
  });
  const paper = (set: string) =>
    published[set]
      ? [[set, 'C-GMVAE as published', '3', ...published[set].map((value) => value.toFixed(1))]]
      : [];
  const sets = [...new Set(rows.map(([set]) => set))];
  const all = sets.flatMap((set) => [...paper(set), ...rows.filter((row) => row[0] === set)]);
  return [
    '**C-GMVAE and others on random splits 80/10/10**: means ± standard deviation over splits (their number is in the third ' +
      'column) with thresholds by oracle_test, as in the paper (27 are tried here, 9 there), then by val, then .5.',
    '',
    '| data | | splits | example-F1 | micro-F1 | macro-F1 | Hamming accuracy | P@1 |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...all.map((row) => `| ${row.join(' | ')} |`),
  ].join('\n');
}

const bagMethods = { none: 'plain', 'eagle-0': 'EAGLE-0', eagle: 'EAGLE' };
/** EAGLE's table 3. */
const bagPaper: Record<string, string> = {
  'mnist 4': '94.70 94.82 94.82',
  'mnist 50': '33.33 36.10 38.46',
  'fashion 4': '84.70 84.89 85.09',
  'fashion 50': '19.00 27.62 28.65',
};

export function bagSection({ heldBack, rows }: BagResults): string {
  const settingOf = ({ set, size, epochs, rate }: BagResults['rows'][number]) =>
    [set, size, epochs, rate].join(' | ');
  const settings = [...new Set(rows.map(settingOf))];
  const lines = settings.map((setting) => {
    const own = rows.filter((row) => settingOf(row) === setting);
    const cells = Object.keys(bagMethods).map((method) => bagCell(own, method));
    const { set, size } = own[0];
    return `| ${[setting, ...cells, bagPaper[`${set} ${size}`] ?? ''].join(' | ')} |`;
  });
  return [
    '**Bags of images** (`miml`): top-1 accuracy on single test images in percent, learned from bags with the labels of ' +
      `the bag; the epoch and tau with the best accuracy on ${heldBack.toLocaleString('en-US')} single training images. In brackets ` +
      'tau (0 is the plain network), and the seeds where there are several. The paper has plain, EAGLE-0 and EAGLE.',
    '',
    `| data | images in a bag | epochs at most | rate | ${Object.values(bagMethods).join(' | ')} | paper |`,
    `|${' --- |'.repeat(8)}`,
    ...lines,
  ].join('\n');
}

/** The mean over seeds, each with the tau that validated best; without attention tau is 0, which may be the best. */
function bagCell(rows: BagResults['rows'], method: string): string {
  const seeds = new Set(rows.filter((row) => row.method === method).map(({ seed }) => seed));
  const best = Array.from(seeds, (seed) =>
    rows
      .filter((row) => row.seed === seed && [method, 'none'].includes(row.method))
      .reduce((a, b) => (b.validation > a.validation ? b : a)),
  );
  if (best.length === 0) return '';
  const mean = best.reduce((sum, { test }) => sum + test, 0) / best.length;
  const taus = [...new Set(best.map(({ tau }) => tau))].sort((a, b) => a - b).join(', ');
  const notes = [method === 'none' ? '' : taus, seeds.size > 1 ? `${seeds.size} seeds` : ''];
  const shown = notes.filter(Boolean).join('; ');
  return `${mean.toFixed(2)}${shown && ` (${shown})`}`;
}

const netNames: Record<string, string> = { gmvae: 'C-GMVAE', transformer: 'transformer' };

export function stepSection({ nets, rounds, steps }: StepResults): string {
  const milliseconds = ({ best, median }: StepFigures) =>
    `${(1000 * best).toFixed(0)} / ${(1000 * median).toFixed(0)}`;
  const rows = Object.entries(nets).flatMap(([net, { timesTorch, runs }]) =>
    runs.map(({ threads, umbel, torch }, i) =>
      [
        netNames[net],
        threads,
        milliseconds(umbel),
        milliseconds(torch),
        i === runs.length - 1 ? timesTorch.toFixed(2) : '',
      ].join(' | '),
    ),
  );
  const [{ runs }] = Object.values(nets);
  return [
    '**A training step beside PyTorch on the CPU** ' +
      `(${runs[0].torch.version}, threads that wait without spinning): forward, backward and Adam, in turns, ` +
      `${rounds} rounds of ${steps} steps. C-GMVAE with 500 features, 983 labels, embeddings of 2,048, batch 128; a transformer ` +
      'of 2 layers, width 128, 32 tokens, batch 256. The last column is the best of ours over the best of theirs, over threads.',
    '',
    '| network | threads | umbel ms, best / median | PyTorch ms, best / median | best over best |',
    '| --- | --- | --- | --- | --- |',
    ...rows.map((row) => `| ${row} |`),
  ].join('\n');
}
