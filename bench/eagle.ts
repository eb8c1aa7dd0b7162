// Training from group labels on real data: what each method of imputing loses against knowing every sample's labels.
// Arguments: the folder of data sets, then flags; one experiment per run. Every figure is a mean over seeds with its
// standard deviation. Writes bench/results/eagle-<experiment>.json, and for each set a plot of what is lost at P@1; rows
// of earlier runs stay unless they are measured again, since all of them together take hours.
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type * as grouping from '../src/data/group.ts';
import type * as imputing from '../src/learn/impute/impute.ts';
import type * as imputeSettings from '../src/learn/impute/options.ts';
import type * as plus from '../src/learn/impute/plus.ts';
import type * as registry from '../src/learn/registry.ts';
import type * as csr from '../src/math/csr.ts';
import type * as options from '../src/options.ts';
import { built } from './built.ts';
import { type Mean, machine, means } from './figures.ts';
import { linePlot } from './plot.ts';
import { percentages } from './precision.ts';
import { openSet, type RealSet, setNames } from './sets.ts';

const usualMethods = ['baseline', 'eagle-0', 'eagle', 'eagle-plus', 'auto'];

const { positionals, values: flags } = parseArgs({
  allowPositionals: true,
  options: {
    /** random: groups of g; clustered: like rows, about g to a group; noise: the same, blurred by s. */
    experiment: { type: 'string', default: 'random' },
    sets: { type: 'string', default: setNames.join(',') },
    seeds: { type: 'string', default: '1,2,3' },
    /** What is varied, where it is not the usual: sizes g, or noises s. */
    groups: { type: 'string' },
    /** With options that are not the usual, or an ingredient left out: eagle-plus:rounds=1, eagle-plus:without=centring. */
    methods: { type: 'string', default: usualMethods.join(',') },
    /** Of the file that is written, where it is not the experiment. */
    name: { type: 'string' },
    merge: { type: 'string', default: 'list' },
    learner: { type: 'string', default: 'tree' },
    threads: { type: 'string', default: '2' },
    out: { type: 'string', default: join('bench', 'results') },
  },
});

const [
  { clusteredGroups, groupRows, randomGroups },
  { chooseFor, impute },
  { imputeOptions },
  { ingredients },
] = await Promise.all([
  built<typeof grouping>('data/group.js'),
  built<typeof imputing>('learn/impute/impute.js'),
  built<typeof imputeSettings>('learn/impute/options.js'),
  built<typeof plus>('learn/impute/plus.js'),
]);
type Ingredient = (typeof ingredients)[number];
const [{ findLearner }, { parseOptions }, { nnz, rowIndices }] = await Promise.all([
  built<typeof registry>('learn/registry.js'),
  built<typeof options>('options.js'),
  built<typeof csr>('math/csr.js'),
]);
const learner = await findLearner(flags.learner);
const threads = Number(flags.threads);
const seeds = flags.seeds.split(',').map(Number);
const methods = flags.methods.split(',');
/** Of a table: with those of earlier runs. */
const columns = [...new Set(['oracle', ...usualMethods, ...methods])];

/** Halvings that leave about `size` rows to a group. */
const depthFor = (rows: number, size: number) => Math.max(0, Math.round(Math.log2(rows / size)));
const noisySize = 16;

const experiments: Record<
  string,
  { usual: string; members: (set: RealSet, value: number, seed: number) => csr.Pattern }
> = {
  random: { usual: '2,4,6,8,10', members: ({ train }, size, seed) => randomGroups(train.rows, size, seed) },
  clustered: {
    usual: '8,32,128',
    members: ({ train }, size, seed) => clusteredGroups(train.features, depthFor(train.rows, size), { seed }),
  },
  noise: {
    usual: '0,0.25,0.5,1,2,Infinity',
    members: ({ train }, noise, seed) =>
      clusteredGroups(train.features, depthFor(train.rows, noisySize), { seed, noise }),
  },
};

type Figures = Record<string, number>;
/** Of one method on one kind of groups. */
export interface EagleRow {
  set: string;
  merge: string;
  groups: string;
  method: string;
  seeds: number[];
  figures: Record<string, Mean>;
  /** What `auto` chose, seed by seed. */
  chosen?: string[];
}

async function judge({ train, test }: RealSet, labels: csr.Pattern, seed: number): Promise<Figures> {
  const context = { seed, threads, progress: () => {} };
  const model = await learner.train({ ...train, labels }, parseOptions(learner.options), context);
  const ranking = await model.predict(test.features, { top: 5, threads });
  return percentages(ranking, test.labels);
}

/** Of the labels given, the share that are right. */
function precisionOf(given: csr.Pattern, truth: csr.Pattern): number {
  let right = 0;
  for (let row = 0; row < truth.rows; row++) {
    const own = new Set(rowIndices(truth, row));
    for (const label of rowIndices(given, row)) if (own.has(label)) right++;
  }
  return right / nnz(given);
}

function optionsOf(method: string): Record<string, string | undefined> {
  const [name, ...settings] = method.split(':');
  return { method: name, ...Object.fromEntries(settings.map((setting) => setting.split('='))) };
}

/** All methods on the same groups; what `auto` chose is not done again. */
async function compare(set: RealSet, members: csr.Pattern, oracle: Figures, seed: number) {
  const groups = groupRows(members, set.train.labels, flags.merge as grouping.Merge);
  const context = { seed, threads, progress: () => {} };
  const found = new Map<string, { figures: Figures; chosen: string }>();
  for (const method of methods) {
    const started = performance.now();
    const seconds = () => (performance.now() - started) / 1000;
    const { without, ...given } = optionsOf(method);
    if (without !== undefined && !ingredients.includes(without as Ingredient))
      throw new Error(`without must be one of ${ingredients.join(', ')}`);
    const o = { ...parseOptions(imputeOptions, given), without: without as Ingredient | undefined };
    if (method === 'auto') {
      const { method: chosen } = await chooseFor(set.train, groups, o, context);
      const known = found.get(chosen);
      if (!known) throw new Error(`auto chose ${chosen}, which must be among --methods`);
      found.set(method, {
        figures: { ...known.figures, seconds: seconds() + known.figures.seconds },
        chosen,
      });
      continue;
    }
    const imputed = await impute(set.train, groups, o, context);
    const figures: Figures = { seconds: seconds(), right: precisionOf(imputed.labels, set.train.labels) };
    Object.assign(figures, await judge(set, imputed.labels, seed));
    for (const k of ['P@1', 'P@3', 'P@5'])
      figures[`lost ${k} %`] = (100 * (oracle[k] - figures[k])) / oracle[k];
    found.set(method, { figures, chosen: imputed.method });
  }
  return found;
}

/** Calls `keep` with the rows of each kind of groups as they are done. */
async function runSet(set: RealSet, keep: (rows: EagleRow[]) => Promise<void>): Promise<void> {
  const row = (groups: string, method: string, figures: Figures[], chosen?: string[]): EagleRow => {
    const { merge } = flags;
    return { set: set.name, merge, groups, method, seeds, figures: means(figures), chosen };
  };
  const oracles = new Map<number, Figures>();
  for (const seed of seeds) oracles.set(seed, await judge(set, set.train.labels, seed));
  await keep([row('none', 'oracle', [...oracles.values()])]);
  for (const groups of (flags.groups ?? experiment.usual).split(',')) {
    const runs: Awaited<ReturnType<typeof compare>>[] = [];
    for (const seed of seeds) {
      const members = experiment.members(set, Number(groups), seed);
      runs.push(await compare(set, members, oracles.get(seed) ?? {}, seed));
    }
    await keep(
      methods.map((method) => {
        const ofMethod = runs.flatMap((run) => run.get(method) ?? []);
        const chosen = method === 'auto' ? ofMethod.map((run) => run.chosen) : undefined;
        return row(
          groups,
          method,
          ofMethod.map(({ figures }) => figures),
          chosen,
        );
      }),
    );
  }
}

function say({ set, groups, method, figures, chosen }: EagleRow): void {
  const shown = ['P@1', 'P@3', 'P@5'].map((k) => `${figures[k].mean} ± ${figures[k].deviation}`).join('  ');
  console.log(`${set}, groups ${groups}, ${method.padEnd(10)}  ${shown}  ${chosen?.join() ?? ''}`);
}

/** What each method loses at P@1, by what is varied; what is not a size is drawn one beside the other. */
function lostPlot(set: string, rows: EagleRow[]): string {
  const own = rows.filter((row) => row.set === set && row.merge === 'list' && row.groups !== 'none');
  const values = [...new Set(own.map((row) => row.groups))];
  const curves = columns.slice(1).map((method) => ({
    name: method,
    points: own
      .filter((row) => row.method === method)
      .map((row): [number, number] => [
        flags.experiment === 'random' ? Number(row.groups) : values.indexOf(row.groups),
        row.figures['lost P@1 %'].mean,
      ]),
  }));
  return linePlot({
    title: `${set}: P@1 lost, %, by ${flags.experiment} groups (${values.join(', ')})`,
    curves,
  });
}

const order = (row: EagleRow) => [
  setNames.indexOf(row.set),
  row.merge === 'list' ? 0 : 1,
  row.groups === 'none' ? -1 : Number(row.groups),
  columns.indexOf(row.method),
];
const byOrder = (a: EagleRow, b: EagleRow) => {
  const [left, right] = [order(a), order(b)];
  const first = left.findIndex((value, i) => value !== right[i]);
  return first < 0 ? 0 : left[first] < right[first] ? -1 : 1;
};
const keyOf = (row: EagleRow) => [row.set, row.merge, row.groups, row.method].join();

const experiment = experiments[flags.experiment];
if (!experiment) throw new Error(`experiment must be one of ${Object.keys(experiments).join(', ')}`);
const [folder = ''] = positionals;
await mkdir(flags.out, { recursive: true });
const file = join(flags.out, `eagle-${flags.name ?? flags.experiment}`);

async function keepRows(set: string, measured: EagleRow[]): Promise<void> {
  for (const row of measured) say(row);
  const earlier: EagleRow[] = existsSync(`${file}.json`)
    ? JSON.parse(await readFile(`${file}.json`, 'utf8')).rows
    : [];
  const again = new Set(measured.map(keyOf));
  const rows = [...earlier.filter((row) => !again.has(keyOf(row))), ...measured].sort(byOrder);
  const { learner, threads } = flags;
  await writeFile(
    `${file}.json`,
    `${JSON.stringify({ machine: machine(), learner, threads, rows }, null, 2)}\n`,
  );
  const kinds = new Set(rows.flatMap((row) => (row.set === set && row.groups !== 'none' ? row.groups : [])));
  if (kinds.size > 1) await writeFile(`${file}-${set}.svg`, lostPlot(set, rows));
}

for (const name of flags.sets.split(',')) {
  const set = await openSet(name, folder);
  if (set) await runSet(set, (rows) => keepRows(name, rows));
}
