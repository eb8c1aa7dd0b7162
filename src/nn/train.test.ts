import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { runThread } from '../kernels/pool.ts';
import { Random } from '../math/random.ts';
import { gradients } from './gradient.ts';
import { input, noise, sizeOf, type Value } from './graph.ts';
import { dropout, linear } from './layers.ts';
import { encodeModel, inputsOf, readWeights } from './onnx.ts';
import { add, log, matmul, mean, mul, neg, relu, sub, sum } from './ops.ts';
import { evaluate } from './reference.ts';
import { Session, type TensorArray } from './session.ts';
import { type Objective, Trainer, type TrainerOptions } from './train.ts';

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);

const normals = (shape: readonly number[], ...key: (number | string)[]): Float32Array => {
  const random = new Random(...key);
  return Float32Array.from({ length: sizeOf(shape) }, () => random.normal());
};

/** A small regression network with everything that is drawn, and two rows of a table of six. */
function network(batch = 4) {
  const parameter = (name: string, shape: number[]): [Value, Float32Array] => [
    input(name, shape),
    normals(shape, name),
  ];
  const weights = [parameter('w', [3, 5]), parameter('b', [5])];
  const heads = [parameter('v', [5, 2]), parameter('c', [2])];
  const parameters = new Map([...weights, ...heads]);
  const [w, b, v, c] = parameters.keys();
  const bank = input('rows', [2, 2]);
  const build = (size: number, chance: boolean): { objective: Objective; answer: Value } => {
    const x = input('x', [size, 3]);
    const hidden = relu(linear(x, w, b));
    const answer = linear(chance ? dropout(hidden, 0.5, 'mask') : hidden, v, c);
    const wanted = add(input('y', [size, 2]), chance ? mul(noise('noise', [size, 2]), 0.1) : 0);
    const distance = sub(answer, add(wanted, mean(bank, [0])));
    const terms = { fit: mean(mul(distance, distance)), size: mul(sum(mul(v, v)), 0.01) };
    return { objective: { loss: add(terms.fit, terms.size), terms, rows: { bank } }, answer };
  };
  const groups = [
    { parameters: new Map(weights), decay: 0.01 },
    { parameters: new Map(heads), l2: 0.01 },
  ];
  const tables = [{ name: 'bank', width: 2, initial: normals([6, 2], 'bank') }];
  const options: TrainerOptions = { groups, tables, seed: 1, maxNorm: 1, runtime: { threads: 1 } };
  return { ...build(batch, true), build, options, parameters };
}

const feeds = (step: number, batch = 4): Record<string, TensorArray> => ({
  x: normals([batch, 3], 'x', step),
  y: normals([batch, 2], 'y', step),
});

async function train({
  trainer,
  objective,
  steps,
}: {
  trainer: Trainer;
  objective: Objective;
  steps: number;
}) {
  const run = await trainer.compile(objective);
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) {
    const rows = { bank: Uint32Array.of(trainer.step % 3, 3 + (trainer.step % 2)) };
    losses.push((await run.run(feeds(trainer.step), { rate: 0.05, rows })).loss);
  }
  await run.close();
  return losses;
}

describe.runIf(runtime)('a trainer', () => {
  it('lowers the loss', async () => {
    const { options, objective } = network();
    const losses = await train({ trainer: await Trainer.create(options), objective, steps: 120 });
    const early = losses.slice(0, 20).reduce((a, b) => a + b);
    expect(losses.slice(-20).reduce((a, b) => a + b)).toBeLessThan(early * 0.6);
  });

  it('moves each parameter and row against its own gradient', async () => {
    const { options, build, parameters } = network();
    const { objective } = build(4, false);
    const trainer = await Trainer.create({ ...options, groups: [{ parameters }], maxNorm: undefined });
    const bank = Object.values(objective.rows ?? {})[0];
    const trained = [...parameters.keys(), bank];
    const start = normals([6, 2], 'bank').slice(4, 8);
    const given = inputsOf([objective.loss]).map((value): [Value, ArrayLike<number>] => [
      value,
      parameters.get(value) ?? (value === bank ? start : (feeds(0)[value.name ?? ''] as Float32Array)),
    ]);
    const slopes = evaluate(gradients(objective.loss, trained), new Map(given));
    const steps = await trainer.compile(objective);
    await steps.run(feeds(0), { rate: 0.1, rows: { bank: Uint32Array.of(2, 3) } });
    const now = [...trainer.weights().values(), trainer.table('bank').subarray(4, 8)];
    // Adam's first step is as long as the rate, whatever the gradient.
    const before = [...parameters.values(), start];
    slopes.forEach((slope, i) => {
      const expected = before[i].map((number, j) => number - 0.1 * Math.sign(slope[j]));
      for (let j = 0; j < expected.length; j++) expect(now[i][j]).toBeCloseTo(expected[j], 3);
    });
  });

  it('gives the same result when it is stopped and goes on', async () => {
    const first = network();
    const unbroken = await Trainer.create(first.options);
    const expected = await train({ trainer: unbroken, objective: first.objective, steps: 7 });
    const stopped = await Trainer.create(first.options);
    const before = await train({ trainer: stopped, objective: first.objective, steps: 3 });
    const second = network();
    const resumed = await Trainer.create(second.options);
    resumed.restore(stopped.state());
    expect(resumed.step).toBe(3);
    const after = await train({ trainer: resumed, objective: second.objective, steps: 4 });
    expect([...before, ...after]).toEqual(expected);
    expect(resumed.state()).toEqual(unbroken.state());
  });

  it('depends on its seed', async () => {
    const { options, objective } = network();
    const losses = async (seed: number) =>
      train({ trainer: await Trainer.create({ ...options, seed }), objective, steps: 3 });
    expect(await losses(1)).toEqual(await losses(1));
    expect(await losses(1)).not.toEqual(await losses(2));
  });

  it('gives the same bits on every run with the same number of threads, and nearly the same with others', async () => {
    const [x, w] = [input('x', [96, 200]), input('w', [200, 300])];
    const v = input('v', [300, 100]);
    const distance = sub(matmul(dropout(relu(matmul(x, w)), 0.3, 'mask'), v), 1);
    const loss = mean(mul(distance, distance));
    const parameters = new Map([w, v].map((value) => [value, normals(value.shape, value.name ?? '')]));
    const run = async (threads: number) => {
      const trainer = await Trainer.create({ groups: [{ parameters }], seed: 1, runtime: { threads } });
      const steps = await trainer.compile({ loss });
      for (let i = 0; i < 3; i++) await steps.run({ x: normals(x.shape, i) }, { rate: 0.01 });
      return trainer.state();
    };
    const expected = await run(2);
    expect(expected.w.data).not.toEqual(parameters.get(w));
    expect(await run(2)).toEqual(expected);
    const { w: others } = await run(3);
    const apart = Array.from(others.data, (number, i) => Math.abs(number - expected.w.data[i]));
    expect(apart.reduce((a, b) => Math.max(a, b))).toBeLessThan(0.01);
  });

  it('trains the same parameters with batches of several sizes', async () => {
    const { options, build } = network();
    const trainer = await Trainer.create(options);
    const [large, small] = [
      await trainer.compile(build(4, true).objective),
      await trainer.compile(build(2, true).objective),
    ];
    const rows = { bank: Uint32Array.of(0, 1) };
    await large.run(feeds(0), { rate: 0.1, rows });
    const between = trainer.state();
    await small.run(feeds(0, 2), { rate: 0.1, rows });
    expect(trainer.step).toBe(2);
    expect(trainer.state()).not.toEqual(between);
  });

  it('runs programs with the parameters as they are, and saves them as a file that any runtime loads', async () => {
    const { options, objective, build } = network();
    const trainer = await Trainer.create(options);
    const { answer } = build(4, false);
    const program = await trainer.program({ answer });
    const { x } = feeds(0);
    const before = (await program.run({ x })).answer;
    await train({ trainer, objective, steps: 2 });
    const { answer: after } = await program.run({ x });
    expect(after).not.toEqual(before);
    const session = await Session.open(encodeModel({ answer }, trainer.weights()), { threads: 1 });
    expect(session.inputs).toEqual([{ name: 'x', shape: [4, 3], kind: 'float32' }]);
    expect((await session.run({ x })).answer).toEqual(after);
    await expect(session.run({ x: new Float32Array(3) })).rejects.toThrow(
      'x must be 12 numbers of float32, got "3 in a Float32Array"',
    );
  });

  it('saves programs that take any number of rows, and whose weights can be read back', async () => {
    const [x, w] = [input('x', [3, 2]), input('w', [2, 2])];
    const numbers = normals([2, 2], 'w');
    const model = encodeModel({ y: relu(matmul(x, w)) }, new Map([[w, numbers]]), 'rows');
    expect(readWeights(model)).toEqual({ w: { shape: [2, 2], data: numbers } });
    const session = await Session.open(model, { threads: 1 });
    const given = normals([5, 2], 'x');
    const { y } = await session.run({ x: given });
    expect(y).toHaveLength(10);
    expect(await session.run({ x: given.subarray(2, 4) })).toEqual({ y: y.slice(2, 4) });
    await expect(session.run({ x: new Float32Array(3) })).rejects.toThrow(
      'x must be a multiple of 2 numbers of float32, got "3 in a Float32Array"',
    );
  });

  it('gives further values of a step, as they were before its update', async () => {
    const { options, build } = network();
    const { objective, answer } = build(4, false);
    const trainer = await Trainer.create(options);
    const { x } = feeds(0);
    const expected = (await (await trainer.program({ answer })).run({ x })).answer;
    const steps = await trainer.compile({ ...objective, outputs: { answer } });
    const into = { answer: new Float32Array(8) };
    await steps.run(feeds(0), { rate: 0.1, rows: { bank: Uint32Array.of(0, 1) }, into });
    expect(into.answer).toEqual(expected);
  });

  it('refuses a loss that is not finite, names the term and the step, and leaves the parameters alone', async () => {
    const w = input('w', [1]);
    const terms = { fit: sum(mul(w, w)), entropy: neg(log(sub(sum(w), 1))) };
    const trainer = await Trainer.create({
      groups: [{ parameters: new Map([[w, Float32Array.of(1.5)]]) }],
      seed: 1,
    });
    const steps = await trainer.compile({ loss: add(terms.fit, terms.entropy), terms });
    await steps.run({}, { rate: 0 });
    trainer.weights().get(w)?.set([0.5]);
    await expect(steps.run({}, { rate: 0.2 })).rejects.toThrow(
      'the loss term entropy must be finite at step 2, got NaN (lower the learning rate, now 0.2, or the longest gradient allowed)',
    );
    expect(trainer.weights().get(w)?.[0]).toBe(0.5);
  });

  it('refuses parameters that the loss does not depend on, and rows of the wrong width', async () => {
    const { options, objective } = network();
    const trainer = await Trainer.create(options);
    const idle = input('idle', [1]);
    await expect(trainer.compile({ loss: sum(idle) })).rejects.toThrow(
      'every parameter must have a part in the loss, got "w"',
    );
    await expect(trainer.compile({ ...objective, rows: { bank: input('rows', [2, 3]) } })).rejects.toThrow(
      'rows of bank must be fed as [count, 2], got "[2, 3]"',
    );
  });

  it('trains on a thread of its own', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'umbel-nn-'));
    const module = join(folder, 'task.mjs');
    const dist = new URL('../../dist/nn/', import.meta.url).href;
    await writeFile(
      module,
      `import { input } from '${dist}graph.js';
       import { mul, sum } from '${dist}ops.js';
       import { Trainer } from '${dist}train.js';
       export const train = ({ start, steps }) => async (_, report) => {
         const w = input('w', [start.length]);
         const trainer = await Trainer.create({ groups: [{ parameters: new Map([[w, start]]) }], seed: 1 });
         const run = await trainer.compile({ loss: sum(mul(w, w)) });
         for (let i = 0; i < steps; i++) report({ loss: (await run.run({}, { rate: 0.1 })).loss });
         return trainer.state();
       };`,
    );
    const task = { module: pathToFileURL(module).href, name: 'train' };
    const setup = { start: Float32Array.of(1, 2), steps: 3 };
    const losses: number[] = [];
    const onReport = ({ loss }: { loss: number }) => losses.push(loss);
    const state = await runThread(task, setup, { onReport });
    expect(losses[0]).toBe(5);
    expect(losses[2]).toBeLessThan(losses[1]);
    expect(state).toMatchObject({ step: { data: Uint32Array.of(3) }, w: { shape: [2] } });
    const stop = new AbortController();
    const endless = runThread(
      task,
      { ...setup, steps: 1e9 },
      { signal: stop.signal, onReport: () => stop.abort() },
    );
    await expect(endless).rejects.toMatchObject({ code: 'cancelled' });
    await rm(folder, { recursive: true });
  });
});

describe.runIf(runtime)('a session', () => {
  it('says what the runtime could not open', async () => {
    const broken = Session.open(Uint8Array.of(1, 2, 3));
    await expect(broken).rejects.toMatchObject({ code: 'model' });
    const elsewhere = Session.open(encodeModel({ y: neg(input('x', [1])) }), { providers: ['abacus'] });
    await expect(elsewhere).rejects.toThrow('the runtime must be able to open the program on abacus');
  });

  it('refuses two inputs of one name', () => {
    expect(() => encodeModel({ y: add(input('x', [1]), input('x', [1])) })).toThrow(
      'names of inputs and outputs must differ, got "x"',
    );
  });
});

describe('without onnxruntime-node', () => {
  afterEach(() => {
    vi.doUnmock('onnxruntime-node');
    vi.resetModules();
  });

  it('sessions say which package to install', async () => {
    vi.resetModules();
    vi.doMock('onnxruntime-node', () => {
      throw new Error('not found');
    });
    const { Session: fresh } = await import('./session.ts');
    await expect(fresh.open(new Uint8Array())).rejects.toMatchObject({
      code: 'missing-package',
      message: expect.stringContaining('npm install onnxruntime-node@1.30.0'),
    });
  });
});
