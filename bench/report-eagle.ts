// The tables of `bench/eagle.ts`: training from group labels.
import type { EagleRow } from './eagle.ts';

export const eagleTables: { name: string; title: string; groups: string }[] = [
  {
    name: 'random',
    title: '**Training from group labels**: groups of random samples',
    groups: 'size',
  },
  {
    name: 'clustered',
    title: '**Training from group labels**: groups of like samples (balanced 2-means)',
    groups: 'size about',
  },
  {
    name: 'noise',
    title: '**Training from group labels**: like samples, about 16 to a group, clustered after noise',
    groups: 'noise',
  },
];

/** One line for each method: what eagle-plus is without each of its parts. */
export function partsSection(rows: EagleRow[]): string {
  const lines = rows.map(({ set, groups, method, seeds, figures }) => {
    const [right, ...precisions] = ['right', 'P@1', 'P@3', 'P@5'].map((k) => figures[k]);
    const shown = precisions.map(({ mean, deviation }) => `${mean.toFixed(1)} ± ${deviation.toFixed(1)}`);
    const share = right ? (100 * right.mean).toFixed(1) : '';
    return [set, groups, seeds.length, method.replace(':', ', '), share, ...shown].join(' | ');
  });
  return [
    '**What the parts of eagle-plus bring**: random groups, with the tree; the share of labels that went to the right ' +
      'members, and the accuracy of what was learned from them. `rounds=0` has no classifiers.',
    '',
    '| data | size | seeds | method | labels right % | P@1 | P@3 | P@5 |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...lines.map((line) => `| ${line} |`),
  ].join('\n');
}

/** One line for each kind of groups, one column for each method. */
export function eagleSection(rows: EagleRow[], { title, groups }: { title: string; groups: string }): string {
  const measured = rows.filter((row) => row.groups !== 'none');
  const methods = [...new Set(measured.map((row) => row.method))];
  const kinds = [...new Set(measured.map((row) => JSON.stringify([row.set, row.merge, row.groups])))];
  const lines = kinds.map((kind) => {
    const [set, merge, size] = JSON.parse(kind);
    const of = (method: string) =>
      measured.find(
        (row) => row.set === set && row.merge === merge && row.groups === size && row.method === method,
      );
    const oracle = rows.find((row) => row.set === set && row.method === 'oracle');
    const seeds = Math.max(...methods.map((method) => of(method)?.seeds.length ?? 0));
    const cells = [oracle, ...methods.map(of)].map(precisionCell);
    const closed = ['P@1', 'P@5'].map((k) => closedShare(k, of('eagle'), of('eagle-plus')));
    return [set, merge, size, seeds, ...cells, closed.join(' / ')].join(' | ');
  });
  return [
    `${title}; P@1 / P@3 / P@5, the first with its standard deviation over seeds, with the tree. The last column is how much ` +
      "of the way from `eagle` to knowing every sample's labels (`oracle`) `eagle-plus` goes, % at P@1 / P@5.",
    '',
    `| data | merge | ${groups} | seeds | oracle | ${methods.join(' | ')} | gap closed |`,
    `| --- | --- | --- | --- | --- |${' --- |'.repeat(methods.length)} --- |`,
    ...lines.map((line) => `| ${line} |`),
  ].join('\n');
}

function precisionCell(row: EagleRow | undefined): string {
  if (!row) return '';
  const [first, third, fifth] = ['P@1', 'P@3', 'P@5'].map((k) => row.figures[k]);
  const spread = row.seeds.length > 1 ? ` ± ${first.deviation.toFixed(1)}` : '';
  return `${first.mean.toFixed(1)}${spread} / ${third.mean.toFixed(1)} / ${fifth.mean.toFixed(1)}`;
}

/** By what is lost against the oracle of the same seeds, since the oracle's row may have others. */
function closedShare(k: string, from?: EagleRow, to?: EagleRow): string {
  if (!from || !to) return '';
  const [before, after] = [from, to].map((row) => row.figures[`lost ${k} %`].mean);
  return before < 1 ? '-' : (100 * (1 - after / before)).toFixed(0);
}
