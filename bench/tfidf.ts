// Times the vectoriser beside scikit-learn's TfidfVectorizer on 588,021 titles in memory, in turns, and compares the two
// matrices value by value. Argument: the folder of data sets. Needs python3 with scikit-learn.
// Run from the project's folder, compiled; writes bench/results/tfidf.json.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { readLines } from '../src/data/file.ts';
import type { Csr } from '../src/math/csr.ts';
import { quiet } from '../src/progress.ts';
import { Vectoriser } from '../src/text/vectoriser.ts';
import { machine, median, rounded } from './figures.ts';

const repeats = 5;
const python = '/usr/bin/python3';
/** scikit-learn's defaults. */
const options = { words: 'sklearn', sublinear: false } as const;

interface Run {
  seconds: number;
  cpu: number;
}

async function readTexts(file: string): Promise<string[]> {
  const texts: string[] = [];
  for await (const { lines } of readLines(file))
    for (const line of lines) texts.push(line.slice(line.indexOf('\t') + 1));
  return texts;
}

/** The other side: says something of itself first, then answers each line with the figures of a run. */
class Peer {
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor(file: string, out: string) {
    const script = join('bench', 'tfidf_sklearn.py');
    this.#process = spawn(python, [script, file, out], { stdio: ['pipe', 'pipe', 'inherit'] });
    if (!this.#process.stdout) throw new Error('python must have an output');
    this.#answers = createInterface(this.#process.stdout)[Symbol.asyncIterator]();
  }

  async answer<T>(): Promise<T> {
    return JSON.parse((await this.#answers.next()).value);
  }

  run(): Promise<Run> {
    this.#process.stdin?.write('run\n');
    return this.answer();
  }

  end(): Promise<void> {
    this.#process.stdin?.end();
    return new Promise((resolve) => this.#process.on('close', () => resolve()));
  }
}

async function timedFit(texts: string[], threads: number) {
  const cpu = process.cpuUsage();
  const start = performance.now();
  const fitted = await Vectoriser.fit(texts, options, { threads, progress: quiet });
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { ...fitted, run: { seconds, cpu: (user + system) / 1e6 } };
}

/** The largest difference between two matrices whose columns have the same names in another order. */
function largestDifference(ours: Csr, ourNames: string[], theirs: Csr, theirNames: string[]): number {
  const columns = new Map(ourNames.map((name, column) => [name, column]));
  const moved = theirNames.map((name) => columns.get(name) ?? -1);
  if (moved.includes(-1) || ourNames.length !== theirNames.length)
    throw new Error('vocabularies must be equal');
  let largest = 0;
  const row = new Map<number, number>();
  for (let i = 0; i < ours.rows; i++) {
    row.clear();
    for (let p = ours.indptr[i]; p < ours.indptr[i + 1]; p++) row.set(ours.indices[p], ours.values[p]);
    if (row.size !== theirs.indptr[i + 1] - theirs.indptr[i])
      throw new Error(`row ${i} must have as many values`);
    for (let p = theirs.indptr[i]; p < theirs.indptr[i + 1]; p++)
      largest = Math.max(largest, Math.abs((row.get(moved[theirs.indices[p]]) ?? 9) - theirs.values[p]));
  }
  return largest;
}

async function readPeer(folder: string): Promise<{ matrix: Csr; names: string[] }> {
  const numbers = async (name: string) => new Uint8Array(await readFile(join(folder, name))).buffer;
  const [indptr, indices] = [
    new Uint32Array(await numbers('indptr')),
    new Uint32Array(await numbers('indices')),
  ];
  const values = new Float32Array(await numbers('values'));
  const names = (await readFile(join(folder, 'names.txt'), 'utf8')).split('\n');
  return { matrix: { rows: indptr.length - 1, cols: names.length, indptr, indices, values }, names };
}

/** Seconds that the machine's cores have worked since it started, whoever they worked for. */
const busySeconds = () =>
  cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0) / 1000;

const summary = (runs: Run[], rows: number) => {
  const seconds = median(runs.map((run) => run.seconds));
  return {
    seconds: rounded(seconds),
    cpuSeconds: rounded(median(runs.map(({ cpu }) => cpu))),
    textsPerSecond: Math.round(rows / seconds),
  };
};

async function compare(file: string, scratch: string): Promise<void> {
  const texts = await readTexts(file);
  const threads = cpus().length;
  const peer = new Peer(file, scratch);
  const versions = await peer.answer<{ rows: number; sklearn: string; python: string }>();
  const [many, one, sklearn]: Run[][] = [[], [], []];
  let last = await timedFit(texts, threads);
  const [start, busy] = [performance.now(), busySeconds()];
  for (let i = 0; i < repeats; i++) {
    sklearn.push(await peer.run());
    last = await timedFit(texts, threads);
    many.push(last.run);
    one.push((await timedFit(texts, 1)).run);
  }
  // The share of the machine that others used: it slows two threads more than one.
  const own = [...many, ...one, ...sklearn].reduce((sum, { cpu }) => sum + cpu, 0);
  const otherWork = (busySeconds() - busy - own) / (((performance.now() - start) / 1000) * threads);
  await peer.end();
  const { vectoriser, features } = last;
  const names = Array.from({ length: vectoriser.columns }, (_, column) => vectoriser.featureName(column));
  const theirs = await readPeer(scratch);
  const startSingle = performance.now();
  for (const text of texts) vectoriser.vector(text);
  const microseconds = ((performance.now() - startSingle) * 1000) / texts.length;
  const times = (runs: Run[]) => rounded(median(sklearn.map((run, i) => run.seconds / runs[i].seconds)));
  const result = {
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    data: 'yso-finna-en train',
    rows: texts.length,
    features: names.length,
    values: features.indices.length,
    largestDifference: rounded(largestDifference(features, names, theirs.matrix, theirs.names)),
    repeats,
    threads,
    otherWork: rounded(otherWork),
    umbel: summary(many, texts.length),
    umbelOneThread: summary(one, texts.length),
    sklearn: { ...summary(sklearn, texts.length), version: versions.sklearn, python: versions.python },
    timesSklearn: times(many),
    timesSklearnOneThread: times(one),
    microsecondsPerSingleText: rounded(microseconds),
  };
  await mkdir(join('bench', 'results'), { recursive: true });
  await writeFile(join('bench', 'results', 'tfidf.json'), `${JSON.stringify(result, null, 2)}\n`);
  console.log(result);
  if (otherWork > 0.05) console.log('other work kept cores busy: run again when the machine is idle');
}

const file = join(process.argv[2] ?? '', 'yso-finna-en', 'train.tsv.gz');
if (!existsSync(file)) {
  console.log(`skipped: no file ${file}; give the folder of data sets as the first argument`);
} else if (spawnSync(python, ['-c', 'import sklearn']).status !== 0) {
  console.log(`skipped: ${python} must have scikit-learn (Debian: python3-sklearn)`);
} else {
  const scratch = await mkdtemp(join(tmpdir(), 'umbel-tfidf-'));
  try {
    await compare(file, scratch);
  } finally {
    await rm(scratch, { recursive: true });
  }
}
