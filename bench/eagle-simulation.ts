// What assigning labels inside groups gains and costs where everything is known (Theorem 1 of the EAGLE paper): linear
// regression with targets shuffled inside groups, and classification from label counts of groups. Pure numbers.
import { Random } from '../src/math/random.ts';

type Matrix = number[][];

export interface Setting {
  groups: number;
  groupSize: number;
  features: number;
  labels: number;
}

export const usual: Setting = { groups: 100, groupSize: 10, features: 10, labels: 5 };

/** Errors relative to knowing who is who: of regressing sums on sums, and after assigning by that. */
export interface RegressionErrors {
  noAssignment: number;
  assignment: number;
}

/** `spread` is how far the members of a group are from its centre; the centres are about 1 from zero. */
export function simulateRegression(spread: number, seed: number, setting = usual): RegressionErrors {
  const { groups, groupSize, features, labels } = setting;
  const random = new Random(seed, 'regression', spread);
  const truth = unitSpectralNorm(gaussian(features, labels, random));
  const [x, z]: [Matrix, Matrix] = [[], []];
  for (let group = 0; group < groups; group++) {
    const centre = normals(features, random);
    for (let i = 0; i < groupSize; i++) {
      const row = normals(features, random).map((value, c) => centre[c] + spread * value);
      x.push(row);
      z.push(add(multiplyRow(row, truth), normals(labels, random)));
    }
  }
  const bags = Array.from({ length: groups }, (_, group) =>
    Array.from({ length: groupSize }, (_, i) => group * groupSize + i),
  );
  const sums = (rows: Matrix) => bags.map((bag) => bag.map((i) => rows[i]).reduce(add));
  const fromSums = leastSquares(sums(x), sums(z));
  // Each target takes the member whose prediction is nearest; two may take the same.
  const predicted = x.map((row) => multiplyRow(row, fromSums));
  const nearest = bags.flatMap((bag) =>
    bag.map((i) =>
      bag.reduce((best, m) => (distance(z[i], predicted[m]) < distance(z[i], predicted[best]) ? m : best)),
    ),
  );
  const assigned = leastSquares(
    nearest.map((i) => x[i]),
    z,
  );
  const known = rootMeanSquare(leastSquares(x, z), truth);
  return {
    noAssignment: rootMeanSquare(fromSums, truth) / known,
    assignment: rootMeanSquare(assigned, truth) / known,
  };
}

/** What theory says of regressing sums on sums. */
export function predictedPenalty(
  spread: number,
  { groups, groupSize: g, features }: Setting = usual,
): number {
  const variance = spread * spread;
  return Math.sqrt((g * (1 + variance)) / (g + variance)) * Math.sqrt(groups / (groups - features - 1));
}

/** Shares of wrong labels on fresh samples. */
export interface ClassificationErrors {
  noAssignment: number;
  assignment: number;
  known: number;
}

/** `favour`: each group prefers one label by the factor exp(favour); 0 mixes the labels most. */
export function simulateClassification(
  favour: number,
  seed: number,
  { noise = 0.3, tests = 10_000, setting = usual } = {},
): ClassificationErrors {
  const { groups, groupSize, features, labels } = setting;
  const random = new Random(seed, 'classification', favour);
  const vectors = gaussian(labels, features, random).map(unit);
  const sample = (drawn: number) => {
    const x = normals(features, random).map((value, c) => vectors[drawn][c] + noise * value);
    return { x: [...x, 1], label: argmax(vectors.map((vector) => dot(vector, x))) };
  };
  const bags = Array.from({ length: groups }, () => {
    const preferred = random.integer(labels);
    const weights = Array.from({ length: labels }, (_, k) => (k === preferred ? Math.exp(favour) : 1));
    return Array.from({ length: groupSize }, () => sample(draw(weights, random)));
  });
  const samples = bags.flat();
  const x = samples.map((one) => one.x);
  const oneHot = (label: number): number[] => Array.from({ length: labels }, (_, k) => (k === label ? 1 : 0));
  const counts = bags.map((bag) => bag.map(({ label }) => oneHot(label)).reduce(add));
  const solve = (targets: Matrix) => leastSquares(x, targets, 1e-3);
  const fromCounts = solve(bags.flatMap((bag, j) => bag.map(() => counts[j])));
  const targets = bags.flatMap((bag, j) =>
    assignCounts(
      bag.map((one) => multiplyRow(one.x, fromCounts)),
      counts[j],
    ),
  );
  const fresh = Array.from({ length: tests }, () => sample(random.integer(labels)));
  const wrong = (weights: Matrix) =>
    fresh.filter((one) => argmax(multiplyRow(one.x, weights)) !== one.label).length / tests;
  return {
    noAssignment: wrong(fromCounts),
    assignment: wrong(solve(targets)),
    known: wrong(solve(samples.map(({ label }) => oneHot(label)))),
  };
}

/** The `counts[k]` members with the largest score for label k get it. */
function assignCounts(scores: Matrix, counts: number[]): Matrix {
  const targets = scores.map((row) => row.map(() => 0));
  counts.forEach((count, k) => {
    const order = [...scores.keys()].sort((a, b) => scores[b][k] - scores[a][k] || a - b);
    for (const member of order.slice(0, count)) targets[member][k] = 1;
  });
  return targets;
}

const normals = (size: number, random: Random) => Array.from({ length: size }, () => random.normal());
const gaussian = (rows: number, cols: number, random: Random): Matrix =>
  Array.from({ length: rows }, () => normals(cols, random));
const dot = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + value * b[i], 0);
const add = (a: number[], b: number[]) => a.map((value, i) => value + b[i]);
const unit = (v: number[]) => v.map((value) => value / Math.sqrt(dot(v, v)));
const distance = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + (value - b[i]) ** 2, 0);
const argmax = (values: number[]) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
const multiplyRow = (row: number[], m: Matrix) =>
  m[0].map((_, c) => row.reduce((sum, value, r) => sum + value * m[r][c], 0));

function draw(weights: number[], random: Random): number {
  let left = random.uniform() * weights.reduce((sum, weight) => sum + weight);
  for (let k = 0; k < weights.length - 1; k++) {
    left -= weights[k];
    if (left < 0) return k;
  }
  return weights.length - 1;
}

function rootMeanSquare(a: Matrix, b: Matrix): number {
  const squares = a.flatMap((row, r) => row.map((value, c) => (value - b[r][c]) ** 2));
  return Math.sqrt(squares.reduce((sum, value) => sum + value) / squares.length);
}

/** Divided by its largest singular value, found by power iteration. */
function unitSpectralNorm(m: Matrix): Matrix {
  let v = unit(m[0].map((_, c) => c + 1));
  let length = 0;
  for (let i = 0; i < 500; i++) {
    const image = m.map((row) => dot(row, v));
    length = Math.sqrt(dot(image, image));
    v = unit(multiplyRow(image, m));
  }
  return m.map((row) => row.map((value) => value / length));
}

/** (X'X + ridge) W = X'Z, by Gaussian elimination: there are few columns. */
function leastSquares(x: Matrix, z: Matrix, ridge = 0): Matrix {
  const size = x[0].length;
  const system = Array.from({ length: size }, (_, r) => [
    ...Array.from({ length: size }, (_, c) => (r === c ? ridge : 0)),
    ...new Array<number>(z[0].length).fill(0),
  ]);
  x.forEach((row, i) => {
    for (let r = 0; r < size; r++) {
      for (let c = 0; c < size; c++) system[r][c] += row[r] * row[c];
      z[i].forEach((value, c) => {
        system[r][size + c] += row[r] * value;
      });
    }
  });
  for (let r = 0; r < size; r++) {
    const pivot = system.slice(r).reduce((best, row) => (Math.abs(row[r]) > Math.abs(best[r]) ? row : best));
    const at = system.indexOf(pivot);
    [system[r], system[at]] = [system[at], system[r]];
    system[r] = system[r].map((value) => value / pivot[r]);
    system.forEach((row, other) => {
      if (other === r) return;
      const factor = row[r];
      row.forEach((value, c) => {
        row[c] = value - factor * system[r][c];
      });
    });
  }
  return system.map((row) => row.slice(size));
}
