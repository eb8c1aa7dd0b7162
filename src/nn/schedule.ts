// Learning rates over the steps (or epochs) of a run, counted from 0.

export type Schedule = (step: number) => number;

interface Course {
  /** The highest rate. */
  rate: number;
  /** Steps until the rate has come down to `end`, the warm-up among them. */
  steps: number;
  /** Steps in which the rate first rises from near 0. */
  warmup?: number;
  end?: number;
}

export const constantRate =
  (rate: number): Schedule =>
  () =>
    rate;

/** Up in a line, down in a line. */
export const linearRate = ({ rate, steps, warmup = 0, end = 0 }: Course): Schedule =>
  warmedUp(rate, warmup, (step) => rate + (end - rate) * Math.min(step / Math.max(steps - warmup, 1), 1));

/**
 * Up in a line, down along half a cosine. With `stretch` the rate starts anew after `steps`, and each time takes so
 * many times as long to come down.
 */
export function cosineRate({
  rate,
  steps,
  warmup = 0,
  end = 0,
  stretch,
}: Course & { stretch?: number }): Schedule {
  const down = (part: number) => end + ((rate - end) * (1 + Math.cos(Math.PI * part))) / 2;
  return warmedUp(rate, warmup, (step) => {
    let [start, length] = [0, Math.max(steps - warmup, 1)];
    if (stretch === undefined) return down(Math.min(step / length, 1));
    while (step >= start + length) {
      start += length;
      length *= stretch;
    }
    return down((step - start) / length);
  });
}

const warmedUp =
  (rate: number, warmup: number, after: Schedule): Schedule =>
  (step) =>
    step < warmup ? (rate * (step + 1)) / (warmup + 1) : after(step - warmup);
