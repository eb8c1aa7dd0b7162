import { describe, expect, it } from 'vitest';
import { constantRate, cosineRate, linearRate } from './schedule.ts';

const rates = (schedule: (step: number) => number, steps: number[]) =>
  steps.map((step) => Number(schedule(step).toFixed(6)));

describe('learning rates', () => {
  it('stay where they are', () => {
    expect(rates(constantRate(0.3), [0, 100])).toEqual([0.3, 0.3]);
  });

  it('rise and fall in lines', () => {
    const schedule = linearRate({ rate: 1, warmup: 4, steps: 14, end: 0 });
    expect(rates(schedule, [0, 1, 3, 4, 9, 14, 20])).toEqual([0.2, 0.4, 0.8, 1, 0.5, 0, 0]);
  });

  it('fall along a cosine and stay down', () => {
    const schedule = cosineRate({ rate: 1, warmup: 2, steps: 10, end: 0.2 });
    expect(rates(schedule, [0, 2, 6, 10, 50])).toEqual([0.333333, 1, 0.6, 0.2, 0.2]);
  });

  it('start anew, each time for longer', () => {
    const schedule = cosineRate({ rate: 1, steps: 4, stretch: 2 });
    expect(rates(schedule, [0, 2, 4, 8, 12, 20])).toEqual([1, 0.5, 1, 0.5, 1, 0.5]);
  });
});
