import { describe, expect, it } from 'vitest';
import { input } from '../nn/graph.ts';
import { mean, mul, sub } from '../nn/ops.ts';
import { Trainer } from '../nn/train.ts';
import type { Tensors } from '../parts.ts';
import { type EpochPlan, type EpochReport, runEpochs } from './epochs.ts';

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);

/** Two numbers go towards 1, four steps an epoch; the score of each epoch is given. */
async function plan(scores: number[] | undefined, o: Partial<EpochPlan> = {}): Promise<EpochPlan> {
  const w = input('w', [2]);
  const parameters = new Map([[w, Float32Array.of(0, 3)]]);
  const trainer = await Trainer.create({ groups: [{ parameters }], seed: 1, runtime: { threads: 1 } });
  const steps = await trainer.compile({ loss: mean(mul(sub(w, 1), sub(w, 1))) });
  let epoch = 0;
  return {
    trainer,
    epochs: 6,
    steps: 4,
    patience: 0,
    select: ['accuracy'],
    async run(at, told) {
      epoch = at;
      for (let i = 0; i < 4; i++) told(await steps.run({}, { rate: 0.1 }));
    },
    validate: scores && (async () => ({ accuracy: scores[epoch] })),
    ...o,
  };
}

const quiet = () => {};

describe.runIf(runtime)('epochs', () => {
  it('end with the weights of the best one, the first of equals', async () => {
    const weightsAfter = async (epochs: number) =>
      (await runEpochs(await plan(undefined, { epochs }), quiet)).weights;
    const course = await runEpochs(await plan([1, 3, 2, 3, 0, 1]), quiet);
    expect(course).toMatchObject({ epochs: 6, chosen: 2, scores: { accuracy: 3 } });
    expect(course.weights).toEqual(await weightsAfter(2));
    expect(course.weights).not.toEqual(await weightsAfter(6));
  });

  it('stop when the score has not risen for long enough', async () => {
    const course = await runEpochs(await plan([1, 3, 2, 3, 0, 9], { patience: 3 }), quiet);
    expect(course).toMatchObject({ epochs: 5, chosen: 2 });
  });

  it('go on as long as any score rises', async () => {
    const [slow, fast] = [
      [0, 0, 0, 0, 0, 5],
      [1, 2, 3, 4, 4, 4],
    ];
    let epoch = 0;
    const both = await plan(slow, { patience: 2 });
    const validate = async () => ({ accuracy: slow[epoch], likelihood: fast[epoch++] });
    expect(await runEpochs({ ...both, validate }, quiet)).toMatchObject({
      epochs: 6,
      chosen: 6,
      improved: 6,
    });
    expect(await runEpochs(await plan(slow, { patience: 2 }), quiet)).toMatchObject({ epochs: 3, chosen: 1 });
  });

  it('go on after a cut as if there had been none, and tell of every step', async () => {
    const scores = [1, 3, 2, 3, 4, 1];
    const told: EpochReport[] = [];
    const unbroken = await runEpochs(await plan(scores), (report) => told.push(report));
    expect(told.map(({ done }) => done)).toEqual(
      [...Array(30).keys()].map((i) => 4 * Math.floor(i / 5) + Math.min((i % 5) + 1, 4)),
    );
    expect(told.every(({ total }) => total === 24)).toBe(true);
    const states = told.flatMap(({ state }): Tensors[] => (state ? [state] : []));
    expect(states).toHaveLength(6);
    for (const kept of states) expect(await runEpochs(await plan(scores, { kept }), quiet)).toEqual(unbroken);
  });
});
