// How good predictions for validation rows are while a network trains: the best that one threshold for all labels
// reaches. What is said about a trained model is the judge's business.
import { type Pattern, rowIndices } from '../../math/csr.ts';

export const scoreNames = [
  'macroF1',
  'microF1',
  'exampleF1',
  'hammingAccuracy',
  'P@1',
  'logLikelihood',
] as const;
export type ValidationScores = Record<(typeof scoreNames)[number], number>;

const thresholds = Float32Array.from([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]);
const cuts = thresholds.length;

/** Probabilities are kept this far from 0 and 1, so that one surprise does not outweigh all else. */
const leastChance = 1e-6;

/** Of probabilities, rows x labels, beside the labels that are true. */
export function validationScores(probabilities: Float32Array, truth: Pattern): ValidationScores {
  const { rows, cols: labels } = truth;
  const byLabel = new Counts(labels);
  const byRow = new Counts(rows);
  const isTrue = new Uint8Array(labels);
  let [first, logs] = [0, 0];
  for (let row = 0; row < rows; row++) {
    isTrue.fill(0);
    for (const label of rowIndices(truth, row)) isTrue[label] = 1;
    const own = probabilities.subarray(row * labels, (row + 1) * labels);
    let best = 0;
    for (let label = 0; label < labels; label++) {
      if (own[label] > own[best]) best = label;
      const chance = isTrue[label] === 1 ? own[label] : 1 - own[label];
      logs += Math.log(Math.max(leastChance, chance));
      const reached = thresholdsReached(own[label]);
      byLabel.add(label, reached, isTrue[label]);
      byRow.add(row, reached, isTrue[label]);
    }
    first += isTrue[best];
  }
  const [macro, example] = [byLabel.f1(), byRow.f1()];
  const all = byLabel.sums();
  const wrong = (cut: number) => all.predicted[cut] + all.positives - 2 * all.hits[cut];
  return {
    macroF1: best((cut) => macro.total[cut] / labels),
    microF1: best((cut) => ratio(2 * all.hits[cut], all.predicted[cut] + all.positives)),
    exampleF1: best((cut) => ratio(example.total[cut], example.defined[cut])),
    hammingAccuracy: best((cut) => 1 - wrong(cut) / (rows * labels)),
    'P@1': first / rows,
    logLikelihood: logs / rows,
  };
}

const ratio = (above: number, below: number) => (below === 0 ? 0 : above / below);
const best = (value: (cut: number) => number) => Math.max(...Array.from(thresholds, (_, cut) => value(cut)));

function thresholdsReached(score: number): number {
  let reached = 0;
  while (reached < cuts && score >= thresholds[reached]) reached++;
  return reached;
}

/** For rows or labels, how many predictions reach each threshold, how many of them are right, and how many should. */
class Counts {
  readonly #predicted: Uint32Array;
  readonly #hits: Uint32Array;
  readonly #positives: Uint32Array;

  constructor(size: number) {
    this.#predicted = new Uint32Array(size * cuts);
    this.#hits = new Uint32Array(size * cuts);
    this.#positives = new Uint32Array(size);
  }

  add(item: number, reached: number, isTrue: number): void {
    this.#positives[item] += isTrue;
    for (let cut = 0; cut < reached; cut++) {
      this.#predicted[item * cuts + cut]++;
      this.#hits[item * cuts + cut] += isTrue;
    }
  }

  /** By threshold, the sum of F1 over all items and the number of those that have one. */
  f1(): { total: Float64Array; defined: Float64Array } {
    const [total, defined] = [new Float64Array(cuts), new Float64Array(cuts)];
    for (let at = 0; at < this.#predicted.length; at++) {
      const size = this.#predicted[at] + this.#positives[Math.floor(at / cuts)];
      total[at % cuts] += ratio(2 * this.#hits[at], size);
      if (size > 0) defined[at % cuts]++;
    }
    return { total, defined };
  }

  sums(): { predicted: Float64Array; hits: Float64Array; positives: number } {
    const [predicted, hits] = [new Float64Array(cuts), new Float64Array(cuts)];
    for (let at = 0; at < this.#predicted.length; at++) {
      predicted[at % cuts] += this.#predicted[at];
      hits[at % cuts] += this.#hits[at];
    }
    return { predicted, hits, positives: this.#positives.reduce((sum, count) => sum + count, 0) };
  }
}
