// How training grows with the number of labels: synthetic sets with L = 10^3 ... 10^6 labels and as many rows. Run from
// the project's folder after `npm run build`; writes bench/results/growth.json and a plot of it.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Figures, machine, measure, rounded, runScript } from './figures.ts';

const { values: flags } = parseArgs({
  options: {
    sizes: { type: 'string', default: '1000,10000,100000,1000000' },
    learner: { type: 'string', default: 'tree' },
    threads: { type: 'string', default: '2' },
    nonzeros: { type: 'string', default: '40' },
    out: { type: 'string', default: join('bench', 'results') },
  },
});

interface Point {
  labels: number;
  rows: number;
  trainSeconds: number;
  /** Of all threads together; what else the machine does hardly changes it. */
  cpuSeconds: number;
  /** CPU seconds divided by n log2 L: flat where training grows as it should. */
  nanosecondsPerRowAndLevel: number;
  trainPeakMB: number;
  modelMB: number;
  batchMicroseconds: number;
  'P@1': number;
}

async function trainAt(labels: number): Promise<Point> {
  const scratch = await mkdtemp(join(tmpdir(), 'umbel-bench-'));
  try {
    const size = ['--rows', '--labels'].flatMap((name) => [name, String(labels)]);
    await runScript('synthetic', scratch, ...size, '--test', '2000', '--nonzeros', flags.nonzeros);
    const figures = await measure({
      data: scratch,
      model: join(scratch, 'model'),
      learner: flags.learner,
      options: {},
      threads: Number(flags.threads),
      seed: 1,
      top: 5,
      batches: 1,
      singles: 100,
    });
    return point(labels, figures);
  } finally {
    await rm(scratch, { recursive: true });
  }
}

function point(
  labels: number,
  { train, trainPeakMB, modelMB, batchMicroseconds, precision }: Figures,
): Point {
  return {
    labels,
    rows: labels,
    trainSeconds: rounded(train.total),
    cpuSeconds: rounded(train.cpu),
    nanosecondsPerRowAndLevel: rounded((train.cpu * 1e9) / (labels * Math.log2(labels))),
    trainPeakMB: rounded(trainPeakMB),
    modelMB: rounded(modelMB),
    batchMicroseconds: rounded(batchMicroseconds),
    'P@1': rounded(100 * precision[1]),
  };
}

/** Two log-log curves in one picture: seconds, and megabytes at the peak. */
function plot(points: Point[]): string {
  const curves = [
    { name: 'CPU seconds', colour: '#1b6ca8', of: ({ cpuSeconds }: Point) => cpuSeconds },
    { name: 'MB at the peak', colour: '#b3541e', of: ({ trainPeakMB }: Point) => trainPeakMB },
  ];
  const heights = curves.flatMap(({ of }) => points.map((p) => Math.log10(of(p))));
  const [low, high] = [Math.floor(Math.min(...heights)), Math.ceil(Math.max(...heights))];
  const [left, right] = [Math.log10(points[0].labels), Math.log10(points[points.length - 1].labels)];
  const x = (labels: number) => rounded(60 + (500 * (Math.log10(labels) - left)) / (right - left || 1));
  const y = (value: number) => rounded(300 - (260 * (Math.log10(value) - low)) / (high - low));
  const label = (at: [number, number], text: string, fill = '#444') =>
    `<text x="${at[0]}" y="${at[1]}" fill="${fill}">${text}</text>`;
  const powers = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  return [
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 330" font-family="sans-serif" font-size="12">',
    '<title>Training time and memory by number of labels</title>',
    '<rect width="640" height="330" fill="white"/>',
    ...powers.map(
      (power) => `<path d="M60 ${y(power)}H560" stroke="#ddd"/>${label([8, y(power)], `${power}`)}`,
    ),
    ...points.map(({ labels }) => label([x(labels) - 20, 320], labels.toLocaleString('en'))),
    ...curves.map(({ name, colour, of }, i) => {
      const path = points.map((p) => `${x(p.labels)},${y(of(p))}`).join(' ');
      const line = `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`;
      return line + label([70, 20 + 16 * i], `${name}, by number of labels`, colour);
    }),
    '</svg>\n',
  ].join('\n');
}

const points: Point[] = [];
for (const size of flags.sizes.split(',')) {
  points.push(await trainAt(Number(size)));
  console.log(points[points.length - 1]);
}
const { learner, threads, nonzeros } = flags;
const report = { machine: machine(), learner, threads, nonzeros, points };
await mkdir(flags.out, { recursive: true });
await writeFile(join(flags.out, 'growth.json'), `${JSON.stringify(report, null, 2)}\n`);
await writeFile(join(flags.out, 'growth.svg'), plot(points));
