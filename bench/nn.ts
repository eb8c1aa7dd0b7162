// Times training steps of two networks beside PyTorch on the CPU, in turns: C-GMVAE (500 features, 983 labels, batch 128)
// and a transformer of two layers (width 128, 4 heads, 32 tokens, batch 256); forward, backward and Adam. Checks first
// that both sides compute the same losses. Needs python3 with torch. Run from the project's folder, compiled; writes
// bench/results/nn.json. Arguments: rounds (5) and steps per round (5).
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type * as graphs from '../src/nn/graph.ts';
import type * as layering from '../src/nn/layers.ts';
import type * as operations from '../src/nn/ops.ts';
import type * as training from '../src/nn/train.ts';
import { built } from './built.ts';
import { machine, median, rounded } from './figures.ts';

type Value = graphs.Value;

const [{ input, noise, sizeOf }, ops, layers, { Trainer }] = await Promise.all([
  built<typeof graphs>('nn/graph.js'),
  built<typeof operations>('nn/ops.js'),
  built<typeof layering>('nn/layers.js'),
  built<typeof training>('nn/train.js'),
]);
const { add, concat, div, exp, matmul, mean, mul, neg, relu, sub, sum } = ops;
const { dropout, linear, logSoftmax } = layers;

/** The same numbers on both sides, without sending them. */
const wave = (size: number, seed: number, scale: number): Float32Array =>
  Float32Array.from({ length: size }, (_, i) => scale * Math.sin((i + 1) * 12.9898 + seed));

interface Net {
  loss: Value;
  parameters: Map<Value, Float32Array>;
  feeds: Record<string, Float32Array>;
  /** Adam's learning rate and L2 decay. */
  rate: number;
  l2: number;
}

/** Parameters by name, numbered in the order they are asked for, as the other side numbers them. */
function parameterMaker(parameters: Map<Value, Float32Array>) {
  const make = (shape: number[], initial?: number): Value => {
    const value = input(`p${parameters.size}`, shape);
    const scale = 1 / Math.sqrt(shape[0]);
    const start =
      initial === undefined
        ? wave(sizeOf(shape), parameters.size, scale)
        : new Float32Array(sizeOf(shape)).fill(initial);
    parameters.set(value, start);
    return value;
  };
  const layer = (x: Value, width: number): Value =>
    linear(x, make([x.shape[x.shape.length - 1], width]), make([width], 0));
  return { make, layer };
}

/** C-GMVAE as its authors' code has it; the mixture prior as matrix products. Noise is zero where chance is off. */
function gmvae(chance: boolean): Net {
  const [batch, features, labels, embedding, latent] = [128, 500, 983, 2048, 64];
  const parameters = new Map<Value, Float32Array>();
  const { make, layer } = parameterMaker(parameters);
  let masks = 0;
  const drop = (x: Value) => (chance ? dropout(x, 0.5, `mask ${masks++}`) : x);
  const gauss = (name: string, shape: number[]) => (chance ? noise(name, shape) : ops.fill(0, shape));
  const x = input('x', [batch, features]);
  const y = input('y', [batch, labels]);
  const hidden = [256, 512, 256].reduce((h, width) => drop(relu(layer(h, width))), x);
  const [center, logVariance] = [layer(hidden, latent), layer(hidden, latent)];
  const embeddings = make([labels, embedding]);
  const h0 = drop(relu(add(embeddings, make([embedding], 0))));
  const labelHidden = [512, 256].reduce((h, width) => drop(relu(layer(h, width))), h0);
  const [centers, logVariances] = [layer(labelHidden, latent), layer(labelHidden, latent)];
  const deviation = exp(mul(logVariance, 0.5));
  const samples = [0, 1, 2].map((i) => gauss(`noise ${i}`, [batch, latent]));
  const [z, second, fresh] = samples.map((sample) => add(center, mul(deviation, sample)));
  const counts = sum(y, [1], true);
  const ofLabels = div(matmul(y, centers), counts);
  // One layer over features and codes side by side: what the features add is the same for every code of a row.
  const entry = make([features + latent, 512]);
  const fromFeatures = matmul(x, ops.slice(entry, 0, 0, features));
  const codes = concat([z, second, ofLabels], 0);
  const fromCodes = linear(codes, ops.slice(entry, 0, features, features + latent), make([512], 0));
  const entered = relu(add(fromCodes, concat([fromFeatures, fromFeatures, fromFeatures], 0)));
  const decoded = layers.leakyRelu(layer(entered, embedding), 0.01);
  const logits = matmul(layers.unit(decoded), embeddings, { b: true });
  const targets = concat([y, y, y], 0);
  const likelihood = div(sum(sub(layers.softplus(logits), mul(targets, logits))), batch);
  const precision = exp(neg(logVariances));
  const quadratic = matmul(mul(fresh, fresh), precision, { b: true });
  const cross = matmul(fresh, mul(centers, precision), { b: true });
  const own = sum(add(logVariances, mul(mul(centers, centers), precision)), [1]);
  const densities = mul(add(sub(quadratic, mul(cross, 2)), own), -0.5);
  const prior = sub(layers.logSumExp(add(densities, mul(sub(y, 1), 1e6)), [1], true), ops.log(counts));
  const posterior = mul(sum(add(logVariance, mul(samples[2], samples[2])), [1], true), -0.5);
  const divergence = mean(sub(posterior, prior));
  const anchors = concat([ops.slice(logits, 0, 0, batch), ops.slice(logits, 0, 2 * batch, 3 * batch)], 0);
  const share = div(concat([y, y], 0), concat([counts, counts], 0));
  const contrast = neg(mean(sum(mul(share, logSoftmax(anchors)), [1])));
  const loss = add(add(mul(likelihood, 0.5), mul(divergence, 6)), contrast);
  const rare = wave(batch * labels, 2, 1).map((number, i) => Number(number > 0.998 || i % labels === 0));
  return { loss, parameters, feeds: { x: wave(batch * features, 1, 1), y: rare }, rate: 1e-3, l2: 1e-5 };
}

function transformer(): Net {
  const [batch, length, width, heads] = [256, 32, 128, 4];
  const parameters = new Map<Value, Float32Array>();
  const { make, layer } = parameterMaker(parameters);
  const normal = (x: Value) => layers.layerNorm(x, make([width], 1), make([width], 0));
  const inHeads = (x: Value) =>
    ops.transpose(ops.reshape(x, [batch, length, heads, width / heads]), [0, 2, 1, 3]);
  const block = (x: Value) => {
    const [query, key, value] = [layer(x, width), layer(x, width), layer(x, width)].map(inHeads);
    const weights = layers.softmax(mul(matmul(query, key, { b: true }), 1 / Math.sqrt(width / heads)));
    const mixed = ops.reshape(ops.transpose(matmul(weights, value), [0, 2, 1, 3]), x.shape);
    const attended = normal(add(x, layer(mixed, width)));
    return normal(add(attended, layer(layers.gelu(layer(attended, 4 * width)), width)));
  };
  const pooled = layer(mean(block(block(input('x', [batch, length, width]))), [1]), width);
  const distance = sub(pooled, 1);
  const loss = mean(mul(distance, distance));
  return { loss, parameters, feeds: { x: wave(batch * length * width, 1, 1) }, rate: 1e-3, l2: 0 };
}

async function openOurs({ loss, parameters, feeds, rate, l2 }: Net, threads: number) {
  const trainer = await Trainer.create({ groups: [{ parameters, l2 }], seed: 1, runtime: { threads } });
  const steps = await trainer.compile({ loss });
  return { run: async () => (await steps.run(feeds, { rate })).loss, close: steps.close };
}

interface Round {
  losses: number[];
  seconds: number[];
}

async function runOurs(net: Awaited<ReturnType<typeof openOurs>>, steps: number): Promise<Round> {
  const round: Round = { losses: [], seconds: [] };
  for (let i = 0; i < steps; i++) {
    const start = performance.now();
    round.losses.push(await net.run());
    round.seconds.push((performance.now() - start) / 1000);
  }
  return round;
}

/** The other side: says its version first, then answers each line (a number of steps) with a round. */
class Peer {
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor(net: string, chance: boolean, threads: number) {
    const args = [join('bench', 'peers', 'torch_nn.py'), net, chance ? '1' : '0', String(threads)];
    // Threads that wait without spinning are the best setting measured for PyTorch where cores are few.
    const env = { ...process.env, OMP_WAIT_POLICY: 'passive' };
    this.#process = spawn('/usr/bin/python3', args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
    if (!this.#process.stdout) throw new Error('python must have an output');
    this.#answers = createInterface(this.#process.stdout)[Symbol.asyncIterator]();
  }

  async answer<T>(): Promise<T> {
    const { value, done } = await this.#answers.next();
    if (done) throw new Error('python with torch must be installed (Debian: python3-torch)');
    return JSON.parse(value);
  }

  run(steps: number): Promise<Round> {
    this.#process.stdin?.write(`${steps}\n`);
    return this.answer();
  }

  end(): void {
    this.#process.stdin?.end();
  }
}

const nets: Record<string, { build: (chance: boolean) => Net; target: number }> = {
  gmvae: { build: gmvae, target: 0.7 },
  transformer: { build: transformer, target: 1 },
};

/** Relative differences of the losses of a few steps without chance; Adam makes the later ones of tiny first ones. */
async function differences(name: string, threads: number): Promise<number[]> {
  const peer = new Peer(name, false, threads);
  await peer.answer();
  const net = await openOurs(nets[name].build(false), threads);
  const [ours, theirs] = [await runOurs(net, 4), await peer.run(4)];
  await net.close();
  peer.end();
  return ours.losses.map((loss, i) => rounded(Math.abs(loss / theirs.losses[i] - 1)));
}

async function compare(name: string, threads: number, rounds: number, steps: number) {
  const peer = new Peer(name, true, threads);
  const { torch } = await peer.answer<{ torch: string }>();
  const net = await openOurs(nets[name].build(true), threads);
  const [ours, theirs]: number[][] = [[], []];
  await peer.run(2);
  await runOurs(net, 2);
  for (let i = 0; i < rounds; i++) {
    theirs.push(...(await peer.run(steps)).seconds);
    ours.push(...(await runOurs(net, steps)).seconds);
  }
  await net.close();
  peer.end();
  const figures = (seconds: number[]) => ({
    best: rounded(Math.min(...seconds)),
    median: rounded(median(seconds)),
  });
  return { threads, umbel: figures(ours), torch: { version: torch, ...figures(theirs) } };
}

const [rounds, steps] = [process.argv[2], process.argv[3]].map((given) => Number(given ?? 5));
const results: Record<string, unknown> = {};
for (const [name, { target }] of Object.entries(nets)) {
  const lossDifferences = await differences(name, cpus().length);
  const runs: Awaited<ReturnType<typeof compare>>[] = [];
  for (const threads of new Set([1, cpus().length])) runs.push(await compare(name, threads, rounds, steps));
  const best = (side: 'umbel' | 'torch') => Math.min(...runs.map((run) => run[side].best));
  const timesTorch = rounded(best('umbel') / best('torch'));
  results[name] = { lossDifferences, timesTorch, target, runs };
  console.log(name, JSON.stringify(results[name]));
}
await mkdir('bench/results', { recursive: true });
const report = {
  date: new Date().toISOString().slice(0, 10),
  machine: machine(),
  rounds,
  steps,
  nets: results,
};
await writeFile('bench/results/nn.json', `${JSON.stringify(report, null, 2)}\n`);
