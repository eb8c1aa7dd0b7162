// Label disentanglement: which clusters each label goes to when it may go to several, decided by where the beam takes
// the rows that carry it (Liu et al., NeurIPS 2021). Only decides; grow.ts trains.
import { CsrBuilder, type Pattern, rowIndices, transpose } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import type { Passes } from './solve.ts';

export interface Overlap {
  /** Clusters per label at most. */
  lambda: number;
  rounds: number;
  /** Over the rows, at most, when levels above the labels are trained, and when labels are. */
  passes: { above: number; labels: Passes };
  /** What the first levels learn from, which show where labels belong, and how many clusters they find for a row. */
  draft: { step: number; passes: number; beam: number };
  /** Whether a copy learns from all rows of its label or from those that the beam takes to its cluster. */
  positives: 'all' | 'matched';
  balance: 'none' | 'capped';
  update: 'matcher+ranker' | 'ranker-only';
  merge: 'mean' | 'max';
  /** `random` is the baseline of experiments: as many copies, but anywhere. */
  placement: 'matched' | 'random';
  /** Training texts kept for each copy. */
  examples: number;
}

/** With a cap on clusters, so many candidates per copy are weighed for each label. */
const candidatesPerCopy = 4;
/** A capped cluster holds this many times its even share at most. */
const capSlack = 1.2;

/**
 * The new leaves, clusters x labels. `byLabel` is labels x rows, `reached` rows x clusters (in any order within a
 * row), `home` the partition to start from: where a label stays if nothing is known of it.
 */
export function placeCopies(
  byLabel: Pattern,
  reached: Pattern,
  home: Pattern,
  { lambda: wished, balance, placement }: Pick<Overlap, 'lambda' | 'balance' | 'placement'>,
  seed: string,
): Pattern {
  const lambda = Math.min(wished, home.rows);
  const homes = homesOf(home);
  const capped = balance === 'capped';
  const wanted = countMatches(byLabel, reached, homes, capped ? candidatesPerCopy * lambda : lambda);
  const placed = capped ? placeCapped(wanted, homes, home.rows, lambda) : placeBest(wanted, homes);
  const byCluster = placement === 'random' ? scatter(placed, homes, seed) : placed;
  return transpose(byCluster);
}

/** The cluster of each label, -1 where it has none: such a label never occurs. */
function homesOf(home: Pattern): Int32Array {
  const homes = new Int32Array(home.cols).fill(-1);
  for (let cluster = 0; cluster < home.rows; cluster++) {
    for (const label of rowIndices(home, cluster)) homes[label] = cluster;
  }
  return homes;
}

/** labels x clusters with how many rows of the label the beam takes there: most first, only those above zero. */
interface Matches extends Pattern {
  counts: Float32Array;
}

function countMatches(byLabel: Pattern, reached: Pattern, homes: Int32Array, most: number): Matches {
  const counts = new Uint32Array(reached.cols);
  const touched = new Uint32Array(reached.cols);
  const best = new Uint32Array(most);
  const matches = new CsrBuilder('values');
  for (let label = 0; label < byLabel.rows; label++) {
    let size = 0;
    for (let p = byLabel.indptr[label]; p < byLabel.indptr[label + 1]; p++) {
      const row = byLabel.indices[p];
      for (let q = reached.indptr[row]; q < reached.indptr[row + 1]; q++) {
        const cluster = reached.indices[q];
        if (counts[cluster]++ === 0) touched[size++] = cluster;
      }
    }
    const home = homes[label];
    const ahead = (a: number, b: number) =>
      counts[a] === counts[b] ? a === home || (b !== home && a < b) : counts[a] > counts[b];
    const kept = firstFew(touched.subarray(0, size), best, ahead);
    matches.add(
      kept,
      kept.map((cluster) => counts[cluster]),
    );
    for (let i = 0; i < size; i++) counts[touched[i]] = 0;
  }
  const { values, ...pattern } = matches.csr(reached.cols);
  return { ...pattern, counts: values };
}

/** Those that come first, in order, as many as `best` has room for; kept by insertion because few of many enter. */
function firstFew(
  items: Uint32Array,
  best: Uint32Array,
  ahead: (a: number, b: number) => boolean,
): Uint32Array {
  let size = 0;
  for (const item of items) {
    if (size === best.length && !ahead(item, best[size - 1])) continue;
    let at = Math.min(size, best.length - 1);
    size = Math.min(size + 1, best.length);
    for (; at > 0 && ahead(item, best[at - 1]); at--) best[at] = best[at - 1];
    best[at] = item;
  }
  return best.subarray(0, size);
}

/** labels x clusters: all that is wanted, and home where nothing is. */
function placeBest(wanted: Matches, homes: Int32Array): Pattern {
  const placed = new CsrBuilder('binary');
  for (let label = 0; label < wanted.rows; label++) {
    const clusters = rowIndices(wanted, label);
    if (clusters.length > 0 || homes[label] < 0) placed.add(clusters.slice().sort());
    else placed.add([homes[label]]);
  }
  return placed.pattern(wanted.cols);
}

/**
 * The same with no cluster above its cap: the most frequent pairs of label and cluster first, as long as there is
 * room for both; then labels left over go home, or where there is most room.
 */
function placeCapped(wanted: Matches, homes: Int32Array, clusters: number, lambda: number): Pattern {
  const used = homes.reduce((sum, home) => sum + (home >= 0 ? 1 : 0), 0);
  const cap = Math.ceil((capSlack * lambda * used) / clusters);
  const load = new Uint32Array(clusters);
  const copies = new Uint32Array(lambda * homes.length);
  const sizes = new Uint32Array(homes.length);
  const put = (label: number, cluster: number) => {
    copies[lambda * label + sizes[label]++] = cluster;
    load[cluster]++;
  };
  const { indptr, indices } = wanted;
  const labelOf = new Uint32Array(indices.length);
  for (let label = 0; label < wanted.rows; label++) labelOf.fill(label, indptr[label], indptr[label + 1]);
  for (const i of mostFirst(wanted.counts)) {
    if (load[indices[i]] < cap && sizes[labelOf[i]] < lambda) put(labelOf[i], indices[i]);
  }
  homes.forEach((home, label) => {
    if (home < 0 || sizes[label] > 0) return;
    put(label, load[home] < cap ? home : load.indexOf(load.reduce((least, size) => Math.min(least, size))));
  });
  const placed = new CsrBuilder('binary');
  sizes.forEach((size, label) => {
    placed.add(copies.subarray(lambda * label, lambda * label + size).sort());
  });
  return placed.pattern(clusters);
}

/** Positions by descending count, then by position. Counts are whole numbers up to that of the rows. */
function mostFirst(counts: Float32Array): Uint32Array {
  const most = counts.reduce((largest, count) => Math.max(largest, count), 0);
  const next = new Uint32Array(most + 2);
  for (let i = 0; i < counts.length; i++) next[most - counts[i] + 1]++;
  for (let less = 0; less < most; less++) next[less + 1] += next[less];
  const order = new Uint32Array(counts.length);
  for (let i = 0; i < counts.length; i++) order[next[most - counts[i]]++] = i;
  return order;
}

/** As many copies of each label as `placed` has: the first at home, the others anywhere else. */
function scatter(placed: Pattern, homes: Int32Array, seed: string): Pattern {
  const scattered = new CsrBuilder('binary');
  for (let label = 0; label < placed.rows; label++) {
    const random = new Random(seed, 'copies', label);
    const clusters = new Set(homes[label] < 0 ? [] : [homes[label]]);
    while (clusters.size < placed.indptr[label + 1] - placed.indptr[label]) {
      clusters.add(random.integer(placed.cols));
    }
    scattered.add([...clusters].sort((a, b) => a - b));
  }
  return scattered.pattern(placed.cols);
}

/**
 * copies x rows, in the order of `leaves.indices`: the rows of each copy's label that the beam takes to its cluster,
 * or all its rows where it takes none there. `reached` is rows x clusters.
 */
export function matchedPositives(leaves: Pattern, byLabel: Pattern, reached: Pattern): Pattern {
  const byCluster = transpose(reached);
  const lastCluster = new Int32Array(byLabel.cols).fill(-1);
  const positives = new CsrBuilder('binary');
  for (let cluster = 0; cluster < leaves.rows; cluster++) {
    for (const row of rowIndices(byCluster, cluster)) lastCluster[row] = cluster;
    for (const label of rowIndices(leaves, cluster)) {
      const all = rowIndices(byLabel, label);
      const matched = all.filter((row) => lastCluster[row] === cluster);
      positives.add(matched.length > 0 ? matched : all);
    }
  }
  return positives.pattern(byLabel.cols);
}
