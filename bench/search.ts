// Searches for the nearest of many vectors beside Faiss, in turns: exactly against IndexFlatIP, approximately (usearch)
// against its HNSW graphs at the same recall. Needs python3 with faiss (Debian: python3-faiss). Run from the project's
// folder, compiled. Rows are added to bench/results/search.json as they end; those found there are not run again.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import type * as dense from '../src/math/dense.ts';
import type * as random from '../src/math/random.ts';
import type * as approximate from '../src/search/approximate.ts';
import type * as exact from '../src/search/exact.ts';
import type { VectorSearch } from '../src/search/search.ts';
import { built } from './built.ts';
import { median, rounded } from './figures.ts';
import { Results } from './kept.ts';

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

const { values: flags } = parseArgs({
  options: {
    vectors: { type: 'string', default: '131072' },
    dimensions: { type: 'string', default: '384' },
    rounds: { type: 'string', default: '3' },
    threads: { type: 'string', default: String(availableParallelism()) },
    /** Vectors of the approximate part, if fewer, or 0 to leave it out: graphs take minutes to build. */
    graph: { type: 'string' },
    out: { type: 'string', default: join('bench', 'results', 'search.json') },
  },
});
const [rows, cols, rounds] = [flags.vectors, flags.dimensions, flags.rounds].map(Number);
const threads = Number(flags.threads);
const graphRows = Number(flags.graph ?? rows);
const queryCount = 1024;
/** Of the true ten nearest, that approximate searches must find. */
const wanted = 0.95;

const vectors = draw(rows, cols, 'vectors');
const queries = draw(queryCount, cols, 'queries');
const folder = await mkdtemp(join(tmpdir(), 'umbel-search-'));
const files = [join(folder, 'vectors'), join(folder, 'queries')];
await writeFile(files[0], vectors.values);
await writeFile(files[1], queries.values);
const peer = new Peer(...files, String(cols), String(threads));
const { faiss } = await peer.hear<{ faiss: string }>();

/** Faiss's answer as a ranking like another. */
const asRanking = (found: Found, like: Awaited<ReturnType<typeof timed>>['ranking']) => ({
  ...like,
  indices: Uint32Array.from(found.flat()),
});

async function compareExact(size: number) {
  const ours = await exactSearch(vectors);
  const some = { ...queries, rows: size, values: queries.values.slice(0, size * cols) };
  const [umbel, other]: Timing[][] = [[], []];
  // The first search compiles.
  await timed(ours, some, threads);
  let agreement = 0;
  for (let round = 0; round < rounds; round++) {
    const theirs = await peer.ask(`exact ${size}`);
    const mine = await timed(ours, some, threads);
    agreement = recallOf(asRanking(theirs.found, mine.ranking), mine.ranking);
    other.push(theirs);
    umbel.push(mine);
  }
  const [a, b] = [rates(umbel, size), rates(other, size)];
  const timesFaiss = rounded(a.perCpuSecond / b.perCpuSecond);
  return { umbel: a, faiss: b, timesFaiss, target: 0.5, agreement: rounded(agreement), version: faiss };
}

async function compareGraphs() {
  const some = { ...vectors, rows: graphRows, values: vectors.values.subarray(0, graphRows * cols) };
  const truth = (await timed(await exactSearch(some), queries, threads)).ranking;
  const buildStart = process.cpuUsage();
  const near = await approximateSearch(some, { recall: wanted, sample: draw(256, cols, 'sample') });
  const buildCpu = process.cpuUsage(buildStart).user / 1e6;
  const { cpu: faissBuild } = await peer.ask(`build ${graphRows}`);
  let inView = 16;
  let reached = await peer.ask(`graph ${inView}`);
  while (recallOf(asRanking(reached.found, truth), truth) < wanted && inView < 2048) {
    inView = Math.ceil(inView * 1.25);
    reached = await peer.ask(`graph ${inView}`);
  }
  const [umbel, other]: Timing[][] = [[], []];
  // Whoever wants an idle machine for the searches alone waits for this line.
  console.log('graphs are built');
  await timed(near, queries, threads);
  let recall = 0;
  for (let round = 0; round < rounds; round++) {
    other.push(await peer.ask(`graph ${inView}`));
    const mine = await timed(near, queries, threads);
    recall = recallOf(mine.ranking, truth);
    umbel.push(mine);
  }
  const [a, b] = [rates(umbel, queryCount), rates(other, queryCount)];
  const theirRecall = recallOf(asRanking(reached.found, truth), truth);
  return {
    umbel: { ...a, recall: rounded(recall), buildCpuSeconds: rounded(buildCpu) },
    faiss: { ...b, recall: rounded(theirRecall), buildCpuSeconds: rounded(faissBuild) },
    timesFaiss: rounded(a.perCpuSecond / b.perCpuSecond),
    target: 1,
    version: faiss,
  };
}

const results = new Results(flags.out);
const on = `${threads} ${threads === 1 ? 'thread' : 'threads'}`;
for (const size of [1, 32, queryCount])
  await results.keep(`exact | ${rows} x ${cols} | ${size} queries at once | ${on}`, () => compareExact(size));
if (graphRows > 0) await results.keep(`approximate | ${graphRows} x ${cols} | ${on}`, compareGraphs);
peer.end();
await rm(folder, { recursive: true });
