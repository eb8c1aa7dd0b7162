// Searches for the nearest of many vectors beside Faiss, in turns: exactly against IndexFlatIP, approximately (usearch)
// against its HNSW graphs at the same recall. Needs python3 with faiss (Debian: python3-faiss). Run from the project's
// folder, compiled; writes bench/results/search.json. Arguments: vectors (131072), dimensions (384), rounds
// (3), vectors of the approximate part (as many; graphs take minutes to build).
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type * as dense from '../src/math/dense.ts';
import type * as random from '../src/math/random.ts';
import type * as approximate from '../src/search/approximate.ts';
import type * as exact from '../src/search/exact.ts';
import type { VectorSearch } from '../src/search/search.ts';
import { built } from './built.ts';
import { machine, median, rounded } from './figures.ts';

const [{ Random }, { unitDenseRows }, { exactSearch }, { approximateSearch, recallOf }] = await Promise.all([
  built<typeof random>('math/random.js'),
  built<typeof dense>('math/dense.js'),
  built<typeof exact>('search/exact.js'),
  built<typeof approximate>('search/approximate.js'),
]);

/** Directions that matter, as in vectors of texts, and noise in all others. */
const latent = 64;

function draw(rows: number, cols: number, key: string): dense.Dense {
  const axes = new Random('axes');
  const plane = Float32Array.from({ length: latent * cols }, () => axes.normal());
  const stream = new Random(key);
  const values = new Float32Array(rows * cols);
  for (let row = 0; row < rows; row++) {
    const at = values.subarray(row * cols, (row + 1) * cols);
    for (let j = 0; j < cols; j++) at[j] = 2 * stream.normal();
    for (let k = 0; k < latent; k++) {
      const size = (1.5 - (1.2 * k) / latent) * stream.normal();
      for (let j = 0; j < cols; j++) at[j] += size * plane[k * cols + j];
    }
  }
  return unitDenseRows({ rows, cols, values });
}

interface Timing {
  seconds: number;
  /** Of all threads: what to go by on a busy machine. */
  cpu: number;
}
type Found = number[][];

/** Faiss in a process of its own; answers one order after the other. */
class Peer {
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor(...args: string[]) {
    const script = join('bench', 'peers', 'faiss_search.py');
    this.#process = spawn('/usr/bin/python3', [script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    if (!this.#process.stdout) throw new Error('python must have an output');
    this.#answers = createInterface(this.#process.stdout)[Symbol.asyncIterator]();
  }

  async hear<T>(): Promise<T> {
    const { value, done } = await this.#answers.next();
    if (done) throw new Error('python with faiss must be installed (Debian: python3-faiss)');
    return JSON.parse(value);
  }

  ask(order: string): Promise<Timing & { found: Found }> {
    this.#process.stdin?.write(`${order}\n`);
    return this.hear();
  }

  end(): void {
    this.#process.stdin?.end();
  }
}

async function timed(search: VectorSearch, queries: dense.Dense, threads: number) {
  const [start, before] = [performance.now(), process.cpuUsage()];
  const ranking = await search.search(queries, { top: 10, threads });
  const { user, system } = process.cpuUsage(before);
  return { seconds: (performance.now() - start) / 1000, cpu: (user + system) / 1e6, ranking };
}

const rates = (timings: Timing[], queries: number) => ({
  perSecond: rounded(queries / median(timings.map(({ seconds }) => seconds))),
  perCpuSecond: rounded(queries / median(timings.map(({ cpu }) => cpu))),
});

const [rows, cols, rounds] = [131_072, 384, 3].map((usual, i) => Number(process.argv[2 + i] ?? usual));
const graphRows = Number(process.argv[5] ?? rows);
const threads = cpus().length;
const vectors = draw(rows, cols, 'vectors');
const queries = draw(1024, cols, 'queries');
const folder = await mkdtemp(join(tmpdir(), 'umbel-search-'));
const files = [join(folder, 'vectors'), join(folder, 'queries')];
await writeFile(files[0], vectors.values);
await writeFile(files[1], queries.values);
const peer = new Peer(...files, String(cols), String(threads));
const { faiss } = await peer.hear<{ faiss: string }>();

const ours = await exactSearch(vectors);
const first = await timed(ours, queries, threads);
const asRanking = (found: Found) => ({
  ...first.ranking,
  indices: Uint32Array.from(found.flat()),
});
const sizes: Record<string, unknown> = {};
for (const size of [1, 32, 1024]) {
  const some = { ...queries, rows: size, values: queries.values.slice(0, size * cols) };
  const [umbel, other]: Timing[][] = [[], []];
  for (let round = 0; round < rounds; round++) {
    other.push(await peer.ask(`exact ${size}`));
    umbel.push(await timed(ours, some, threads));
  }
  const [a, b] = [rates(umbel, size), rates(other, size)];
  sizes[size] = { umbel: a, faiss: b, timesFaiss: rounded(a.perCpuSecond / b.perCpuSecond) };
  console.log(`exact, ${size} queries at once`, JSON.stringify(sizes[size]));
}
const agreement = recallOf(asRanking((await peer.ask('exact 1024')).found), first.ranking);

const some = { ...vectors, rows: graphRows, values: vectors.values.subarray(0, graphRows * cols) };
const truth = (await timed(await exactSearch(some), queries, threads)).ranking;
const buildStart = process.cpuUsage();
const near = await approximateSearch(some, { sample: draw(256, cols, 'sample') });
const buildCpu = process.cpuUsage(buildStart).user / 1e6;
const faissBuild = await peer.ask(`build ${graphRows}`);
const wanted = 0.95;
let inView = 16;
let reached = await peer.ask(`graph ${inView}`);
while (recallOf(asRanking(reached.found), truth) < wanted && inView < 2048) {
  inView = Math.ceil(inView * 1.25);
  reached = await peer.ask(`graph ${inView}`);
}
const [umbel, other]: Timing[][] = [[], []];
let recall = 0;
for (let round = 0; round < rounds; round++) {
  other.push(await peer.ask(`graph ${inView}`));
  const mine = await timed(near, queries, threads);
  recall = recallOf(mine.ranking, truth);
  umbel.push(mine);
}
peer.end();
await rm(folder, { recursive: true });
const graphs = {
  umbel: { ...rates(umbel, 1024), recall: rounded(recall), buildCpuSeconds: rounded(buildCpu) },
  faiss: {
    ...rates(other, 1024),
    recall: rounded(recallOf(asRanking(reached.found), truth)),
    buildCpuSeconds: rounded(faissBuild.cpu),
  },
};
const timesFaiss = rounded(graphs.umbel.perCpuSecond / graphs.faiss.perCpuSecond);
console.log('approximate', JSON.stringify({ ...graphs, timesFaiss }));
await mkdir('bench/results', { recursive: true });
const report = {
  date: new Date().toISOString().slice(0, 10),
  machine: machine(),
  faiss,
  vectors: rows,
  dimensions: cols,
  threads,
  rounds,
  exact: { sizes, agreement: rounded(agreement), target: 0.5 },
  approximate: { vectors: graphRows, ...graphs, timesFaiss, target: 1 },
};
await writeFile('bench/results/search.json', `${JSON.stringify(report, null, 2)}\n`);
