// How many suggestions per second `umbel serve` gives on this machine, how long they take, and that its memory stays
// bounded at twice what it can take. The load comes from autocannon on loopback, so it shares the cores with the server.
// Run from the project's folder after `npm run build`, for the README with --duration 300; writes
// bench/results/serve.json.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import autocannon, { type Options, type Result } from 'autocannon';
import { machine, rounded } from './figures.ts';

const { values: flags } = parseArgs({
  options: {
    /** Seconds at twice what it can take. */
    duration: { type: 'string', default: '30' },
    /** Folder with the demo's model and test.jsonl; made where it is missing. */
    demo: { type: 'string', default: join(tmpdir(), 'umbel-bench-serve') },
    threads: { type: 'string', default: '1' },
    /** Rate at which the time of an answer is measured. */
    rate: { type: 'string', default: '5000' },
    out: { type: 'string', default: join('bench', 'results', 'serve.json') },
  },
});

const umbel = join('dist', 'cli', 'main.js');

async function startServer(...limits: string[]): Promise<{ url: string; server: ChildProcess }> {
  const model = `wordnet=${join(flags.demo, 'model')}`;
  const args = ['serve', '--model', model, '--port', '0', '--threads', flags.threads, '--log', 'warn'];
  const server = spawn(process.execPath, [umbel, ...args, '--rate', '0', ...limits], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(server.stdout.setEncoding('utf8'), 'data');
  return { url: /http:\/\/[^;\s]+/.exec(line)?.[0] ?? '', server };
}

async function load(url: string, requests: Options['requests'], options: Partial<Options>): Promise<Result> {
  return autocannon({ url, requests, ...options });
}

/** Resident memory of a process in MB, as the system sees it. */
async function residentMB(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) / 1024;
}

/** Looked at once a second. */
async function watchMemory(pid: number | undefined, running: Promise<unknown>): Promise<number[]> {
  const seen: number[] = [];
  let done = false;
  const end = () => {
    done = true;
  };
  running.then(end, end);
  while (!done) {
    seen.push(await residentMB(pid));
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  return seen;
}

/** The most of every stretch of seconds, so that growth can be seen. */
function memoryFigures(seen: number[], stretches = 10) {
  const length = Math.max(1, Math.ceil(seen.length / stretches));
  const most = Array.from({ length: Math.ceil(seen.length / length) }, (_, i) =>
    rounded(Math.max(...seen.slice(i * length, (i + 1) * length))),
  );
  return { seconds: length, mostMB: most };
}

const summary = ({ latency, non2xx, errors, timeouts, duration, '2xx': answered }: Result) => ({
  perSecond: rounded(answered / duration),
  refusedPerSecond: rounded(non2xx / duration),
  failed: errors + timeouts,
  milliseconds: { median: latency.p50, p99: latency.p99, max: latency.max },
});

if (!existsSync(join(flags.demo, 'model'))) {
  spawnSync(process.execPath, [umbel, 'demo', '--out', flags.demo], { stdio: 'inherit' });
}
const lines = (await readFile(join(flags.demo, 'test.jsonl'), 'utf8')).trim().split('\n').slice(0, 100);
const headers = { 'content-type': 'application/json' };
const requests = lines.map((line) => {
  const { text } = JSON.parse(line) as { text: string };
  return {
    method: 'POST' as const,
    path: '/v1/models/wordnet/suggest',
    headers,
    body: JSON.stringify({ text }),
  };
});

const { url, server } = await startServer();
await load(url, requests, { connections: 16, duration: 3 });
const full = summary(await load(url, requests, { connections: 32, duration: 10 }));
console.log('as many as it can:', JSON.stringify(full));
const steady = summary(
  await load(url, requests, { connections: 32, duration: 10, overallRate: Number(flags.rate) }),
);
console.log(`at ${flags.rate} per second:`, JSON.stringify(steady));
server.kill();
await once(server, 'exit');

// Short queues, so that refusing is part of what is measured.
const overloadRate = Math.round(2 * full.perSecond);
const second = await startServer('--queue', '100', '--requests', '200');
const overload = load(second.url, requests, {
  connections: 400,
  duration: Number(flags.duration),
  overallRate: overloadRate,
});
const memory = await watchMemory(second.server.pid, overload);
const over = summary(await overload);
const after = summary(await load(second.url, requests, { connections: 8, duration: 3 }));
second.server.kill();
await once(second.server, 'exit');
const resident = memoryFigures(memory);
console.log('at twice as many:', JSON.stringify(over), JSON.stringify(resident));
console.log('right after:', JSON.stringify(after));

const result = {
  machine: machine(),
  threads: Number(flags.threads),
  full,
  steady: { rate: Number(flags.rate), ...steady },
  overload: { seconds: Number(flags.duration), rate: overloadRate, ...over, resident },
  after,
};
await mkdir(dirname(flags.out), { recursive: true });
await writeFile(flags.out, `${JSON.stringify(result, null, 2)}\n`);
