// umbel's label tree beside PECOS XR-Linear: the same features, settings and threads, in turns, each in fresh
// processes. Arguments: the folder of data sets (a folder of X/Y.trn/tst.npz each), then flags. Run from the project's
// folder after `npm run build`; writes bench/results/tree.json.
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Figures, machine, measure, median, rounded, runJson } from './figures.ts';

const { positionals, values: flags } = parseArgs({
  allowPositionals: true,
  options: {
    /** Python that finds an installed pecos; without it only umbel is measured. */
    python: { type: 'string' },
    sets: { type: 'string', default: 'bibtex,delicious,rcv1sub,yso-titles-l3,synthetic' },
    threads: { type: 'string', default: '2' },
    runs: { type: 'string', default: '3' },
    learner: { type: 'string', default: 'tree' },
    /** Settings of both sides, by the names of umbel's options: leafSize here is --leaf-size there. */
    both: { type: 'string', multiple: true, default: ['branching=32'] },
    /** Options of umbel's learner alone. */
    set: { type: 'string', multiple: true, default: [] },
    top: { type: 'string', default: '20' },
    out: { type: 'string', default: join('bench', 'results', 'tree.json') },
  },
});

interface Peer extends Omit<Figures, 'train'> {
  version: string;
  settings: Record<string, unknown>;
  train: { total: number; cpu: number; [phase: string]: number };
}

/** What both sides report. */
type Common = Omit<Figures, 'train'> & { train: { total: number; cpu: number } };

const roundedAll = (figures: Record<string, number>) =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, rounded(value)]));

const pairs = (given: string[]) => given.map((pair) => pair.split('=', 2) as [string, string]);

function runPecos(python: string, data: string, seed: number): Promise<unknown> {
  const flag = (name: string) => `--${name.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)}`;
  const shared = pairs(flags.both).flatMap(([name, value]) => [flag(name), value]);
  const script = join('bench', 'peers', 'pecos_run.py');
  const own = ['--unit', '--threads', flags.threads, '--top', flags.top, '--seed', String(seed)];
  return runJson(python, [script, data, ...own, ...shared]);
}

async function runUmbel(data: string, seed: number): Promise<Figures> {
  const scratch = await mkdtemp(join(tmpdir(), 'umbel-bench-'));
  try {
    return await measure({
      data,
      model: join(scratch, 'model'),
      learner: flags.learner,
      options: Object.fromEntries(pairs([...flags.both, ...flags.set])),
      threads: Number(flags.threads),
      seed,
      top: Number(flags.top),
      batches: 7,
      singles: 1000,
    });
  } finally {
    await rm(scratch, { recursive: true });
  }
}

/** One number per figure. Every run has a seed of its own, and accuracies are their mean. */
function summary(runs: Common[]) {
  const of = (figure: (run: Common) => number) => rounded(median(runs.map(figure)));
  const percent = (k: number) =>
    Number((runs.reduce((sum, { precision }) => sum + 100 * precision[k], 0) / runs.length).toFixed(2));
  return {
    trainSeconds: of(({ train }) => train.total),
    cpuSeconds: of(({ train }) => train.cpu),
    batchMicroseconds: of((run) => run.batchMicroseconds),
    singleMicroseconds: of((run) => run.singleMicroseconds),
    trainPeakMB: of((run) => run.trainPeakMB),
    predictPeakMB: of((run) => run.predictPeakMB),
    modelMB: of((run) => run.modelMB),
    'P@1': percent(1),
    'P@3': percent(3),
    'P@5': percent(5),
  };
}

/** umbel's figure over the peer's: below one is faster or smaller. Accuracies as differences in points. */
function compared(own: ReturnType<typeof summary>, peer: ReturnType<typeof summary>) {
  const names = Object.keys(own) as (keyof typeof own)[];
  const entries = names.map((name) => [
    name,
    name.startsWith('P@') ? Number((own[name] - peer[name]).toFixed(2)) : rounded(own[name] / peer[name]),
  ]);
  return Object.fromEntries(entries);
}

async function benchmark(data: string) {
  const own: Figures[] = [];
  const peers: Peer[] = [];
  for (let seed = 1; seed <= Number(flags.runs); seed++) {
    own.push(await runUmbel(data, seed));
    if (flags.python) peers.push((await runPecos(flags.python, data, seed)) as Peer);
  }
  const umbel = { ...summary(own), phases: roundedAll(own[0].train.phases) };
  if (peers.length === 0) return { umbel };
  const [{ version, settings, train }] = peers;
  const { total, cpu, ...phases } = train;
  const pecos = { version, settings, ...summary(peers), phases: roundedAll(phases) };
  return { umbel, pecos, ratio: compared(summary(own), summary(peers)) };
}

const [folder = ''] = positionals;
const { version } = JSON.parse(await readFile('package.json', 'utf8'));
const results: Record<string, unknown> = {};
for (const name of flags.sets.split(',')) {
  const data = join(folder, name);
  if (!existsSync(join(data, 'X.trn.npz'))) {
    console.log(`skipped: no X.trn.npz in ${data}`);
    continue;
  }
  results[name] = await benchmark(data);
  console.log(name, results[name]);
}
const { threads, runs, learner, both, set, top } = flags;
const report = { umbel: version, machine: machine(), threads, runs, learner, both, set, top, sets: results };
await mkdir(dirname(flags.out), { recursive: true });
await writeFile(flags.out, `${JSON.stringify(report, null, 2)}\n`);
