// The simulations around Theorem 1 of the EAGLE paper: when assigning inside groups helps, and when it harms. No data
// needed. Writes bench/results/eagle-theory.json and a plot of the regression.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { predictedPenalty, simulateClassification, simulateRegression } from './eagle-simulation.ts';
import { means, rounded } from './figures.ts';
import { linePlot } from './plot.ts';

const { values: flags } = parseArgs({
  options: {
    seeds: { type: 'string', default: '40' },
    spreads: { type: 'string', default: '0,0.1,1,5,10' },
    favours: { type: 'string', default: '0,1,5,10' },
    out: { type: 'string', default: join('bench', 'results') },
  },
});
const numbers = (list: string) => list.split(',').map(Number);
const seeds = Array.from({ length: Number(flags.seeds) }, (_, seed) => seed + 1);

const regression = numbers(flags.spreads).map((spread) => ({
  spread,
  ...means(seeds.map((seed) => simulateRegression(spread, seed))),
  predicted: rounded(predictedPenalty(spread)),
}));
const classification = numbers(flags.favours).map((favour) => ({
  favour,
  ...means(seeds.map((seed) => simulateClassification(favour, seed))),
}));
console.table(regression.map(({ spread, ...figures }) => ({ spread, ...flat(figures) })));
console.table(classification.map(({ favour, ...figures }) => ({ favour, ...flat(figures) })));

function flat(figures: object) {
  return Object.fromEntries(
    Object.entries(figures).map(([name, value]) => [
      name,
      typeof value === 'number' ? value : `${value.mean} ± ${value.deviation}`,
    ]),
  );
}

type Figure = { mean: number };
/** The spreads are far from even: they are drawn one beside the other. */
const curve = (name: string, of: (row: (typeof regression)[number]) => number) => ({
  name,
  points: regression.map((row, i): [number, number] => [i, of(row)]),
});
const plot = linePlot({
  title: `Error relative to knowing who is who, by spread inside groups (${flags.spreads})`,
  curves: [
    curve('sums only', (row) => (row as unknown as { noAssignment: Figure }).noAssignment.mean),
    curve('sums only, theory', ({ predicted }) => predicted),
    curve('assigned', (row) => (row as unknown as { assignment: Figure }).assignment.mean),
  ],
});
await mkdir(flags.out, { recursive: true });
const report = { seeds: seeds.length, regression, classification };
await writeFile(join(flags.out, 'eagle-theory.json'), `${JSON.stringify(report, null, 2)}\n`);
await writeFile(join(flags.out, 'eagle-theory.svg'), plot);
