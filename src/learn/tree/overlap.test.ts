import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CsrBuilder, type Pattern, rowIndices, transpose } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { matchedPositives, placeCopies } from './overlap.ts';

/** Random rows with labels, and the `beam` clusters that each of them reaches; the last label never occurs. */
function randomCase(rows: number, labels: number, clusters: number, beam: number, seed: number) {
  const random = new Random(seed);
  const [y, reached] = [new CsrBuilder('binary'), new CsrBuilder('binary')];
  for (let row = 0; row < rows; row++) {
    const own = new Set(Array.from({ length: 1 + random.integer(3) }, () => random.integer(labels - 1)));
    y.add([...own].sort((a, b) => a - b));
    reached.add(random.permutation(clusters).subarray(0, beam));
  }
  const truth = y.pattern(labels);
  const byLabel = transpose(truth);
  const used = Array.from({ length: labels }, (_, label) => label).filter(
    (label) => rowIndices(byLabel, label).length > 0,
  );
  const home = partition(
    used.map((label) => [label, random.integer(clusters)]),
    clusters,
    labels,
  );
  return { labels: truth, byLabel, used, reached: reached.pattern(clusters), home, random };
}

function partition(places: number[][], clusters: number, labels: number): Pattern {
  const built = new CsrBuilder('binary');
  for (let cluster = 0; cluster < clusters; cluster++) {
    built.add(places.filter(([, c]) => c === cluster).map(([label]) => label));
  }
  return built.pattern(labels);
}

/** Pairs of a row and one of its labels such that the beam reaches a copy: trace of Y^T binary(M C^T). */
function pairsReached({ labels, reached }: { labels: Pattern; reached: Pattern }, leaves: Pattern): number {
  return countPairs(labels, reached, leaves, (copies) => Math.min(1, copies));
}

/** The same with every copy reached counted: what the placement maximises. */
function copiesReached({ labels, reached }: { labels: Pattern; reached: Pattern }, leaves: Pattern): number {
  return countPairs(labels, reached, leaves, (copies) => copies);
}

function countPairs(labels: Pattern, reached: Pattern, leaves: Pattern, worth: (copies: number) => number) {
  const clustersOf = transpose(leaves);
  let sum = 0;
  for (let row = 0; row < labels.rows; row++) {
    for (const label of rowIndices(labels, row)) {
      sum += worth(rowIndices(clustersOf, label).filter((c) => rowIndices(reached, row).includes(c)).length);
    }
  }
  return sum;
}

const free = { balance: 'none', placement: 'matched' } as const;
const capped = { balance: 'capped', placement: 'matched' } as const;
const copiesOf = (leaves: Pattern, label: number) => rowIndices(transpose(leaves), label);

const cases = fc.record({
  rows: fc.integer({ min: 1, max: 60 }),
  labels: fc.integer({ min: 2, max: 20 }),
  clusters: fc.integer({ min: 1, max: 7 }),
  beam: fc.integer({ min: 1, max: 7 }),
  lambda: fc.integer({ min: 1, max: 7 }),
  seed: fc.nat(),
});
type Case = ReturnType<typeof randomCase>;
const check = (claim: (given: Case, lambda: number, beam: number) => void, numRuns = 100) =>
  fc.assert(
    fc.property(cases, ({ rows, labels, clusters, beam, lambda, seed }) => {
      claim(
        randomCase(rows, labels, clusters, Math.min(beam, clusters), seed),
        lambda,
        Math.min(beam, clusters),
      );
    }),
    { seed: 1, numRuns },
  );

it('asking for more copies than there are clusters asks for all', () => {
  const { byLabel, reached, home } = randomCase(40, 12, 5, 3, 7);
  for (const balance of ['none', 'capped'] as const) {
    const how = { balance, placement: 'matched' } as const;
    const all = placeCopies(byLabel, reached, home, { ...how, lambda: 5 }, 'seed');
    expect(placeCopies(byLabel, reached, home, { ...how, lambda: 1e9 }, 'seed')).toEqual(all);
  }
});

describe('placing labels in several clusters', () => {
  it('puts every label that occurs in one to lambda clusters, and no other, with ascending labels', () => {
    check(({ byLabel, used, reached, home, labels }, lambda) => {
      for (const how of [free, capped, { ...free, placement: 'random' } as const]) {
        const leaves = placeCopies(byLabel, reached, home, { ...how, lambda }, 'seed');
        for (let label = 0; label < labels.cols; label++) {
          const copies = copiesOf(leaves, label);
          expect(copies.length).toBeLessThanOrEqual(Math.min(lambda, reached.cols));
          expect(copies.length > 0).toBe(used.includes(label));
          expect(new Set(copies).size).toBe(copies.length);
        }
        for (let cluster = 0; cluster < leaves.rows; cluster++) {
          const list = rowIndices(leaves, cluster);
          expect([...list]).toEqual([...list].sort((a, b) => a - b));
        }
      }
    });
  });

  it('takes the clusters of the largest counts: ties at home first, then the lowest', () => {
    check(({ byLabel, used, reached, home }, lambda) => {
      const leaves = placeCopies(byLabel, reached, home, { ...free, lambda }, 'seed');
      for (const label of used) {
        const at = copiesOf(home, label)[0];
        const counts = Array.from(
          { length: reached.cols },
          (_, c) => rowIndices(byLabel, label).filter((row) => rowIndices(reached, row).includes(c)).length,
        );
        const best = [...counts.keys()]
          .filter((c) => counts[c] > 0)
          .sort((a, b) => counts[b] - counts[a] || Number(b === at) - Number(a === at) || a - b);
        expect([...copiesOf(leaves, label)]).toEqual(best.slice(0, lambda).sort((a, b) => a - b));
      }
    });
  });

  it('leaves a label home whose rows reach nothing', () => {
    const { byLabel, used, home } = randomCase(20, 9, 4, 1, 3);
    const nothing = new CsrBuilder('binary');
    for (let row = 0; row < 20; row++) nothing.add([]);
    for (const how of [free, capped]) {
      const leaves = placeCopies(byLabel, nothing.pattern(4), home, { ...how, lambda: 3 }, 'seed');
      for (const label of used) expect(copiesOf(leaves, label)).toHaveLength(1);
      if (how === free) expect(leaves).toEqual(home);
    }
  });

  it('reaches more with more copies, and with one at least what any partition reaches', () => {
    check((given, lambda) => {
      const { byLabel, reached, home, used, random, labels } = given;
      const place = (copies: number) =>
        placeCopies(byLabel, reached, home, { ...free, lambda: copies }, 'seed');
      const one = pairsReached(given, place(1));
      expect(one).toBe(copiesReached(given, place(1)));
      expect(one).toBeGreaterThanOrEqual(pairsReached(given, home));
      const other = partition(
        used.map((label) => [label, random.integer(reached.cols)]),
        reached.cols,
        labels.cols,
      );
      expect(one).toBeGreaterThanOrEqual(pairsReached(given, other));
      expect(pairsReached(given, place(lambda + 1))).toBeGreaterThanOrEqual(
        pairsReached(given, place(lambda)),
      );
    });
  });

  it('with a beam of one every copy reached is the only one', () => {
    check((given, lambda) => {
      const { byLabel, reached, home } = given;
      if (rowIndices(reached, 0).length > 1) return;
      const leaves = placeCopies(byLabel, reached, home, { ...free, lambda }, 'seed');
      expect(pairsReached(given, leaves)).toBe(copiesReached(given, leaves));
    });
  });

  it('with as many copies as clusters and a beam as wide puts every label everywhere', () => {
    check(({ reached: { cols }, ...rest }) => {
      const everywhere = new CsrBuilder('binary');
      for (let row = 0; row < rest.labels.rows; row++) everywhere.add([...Array(cols).keys()]);
      const reached = everywhere.pattern(cols);
      const leaves = placeCopies(rest.byLabel, reached, rest.home, { ...free, lambda: cols }, 'seed');
      for (const label of rest.used) expect(copiesOf(leaves, label)).toHaveLength(cols);
      expect(pairsReached({ labels: rest.labels, reached }, leaves)).toBe(rest.labels.indices.length);
    });
  });

  it('random copies are as many as matched ones, one of them at home, and the same for the same seed', () => {
    check(({ byLabel, used, reached, home }, lambda) => {
      const place = (placement: 'matched' | 'random') =>
        placeCopies(byLabel, reached, home, { lambda, balance: 'none', placement }, 'seed');
      const random = place('random');
      expect(random).toEqual(place('random'));
      for (const label of used) {
        expect(copiesOf(random, label).length).toBe(copiesOf(place('matched'), label).length);
        expect(copiesOf(random, label)).toContain(copiesOf(home, label)[0]);
      }
    });
  });
});

describe('clusters with a cap', () => {
  const capOf = (used: number, clusters: number, lambda: number) =>
    Math.ceil((1.2 * lambda * used) / clusters);

  it('are never above it, and the same as without where it does not bind', () => {
    check((given, lambda) => {
      const { byLabel, used, reached, home } = given;
      const leaves = placeCopies(byLabel, reached, home, { ...capped, lambda }, 'seed');
      const cap = capOf(used.length, reached.cols, lambda);
      const without = placeCopies(byLabel, reached, home, { ...free, lambda }, 'seed');
      const sizes = (shape: Pattern) =>
        Array.from({ length: shape.rows }, (_, c) => rowIndices(shape, c).length);
      expect(Math.max(...sizes(leaves))).toBeLessThanOrEqual(cap);
      if (Math.max(...sizes(without)) <= cap) expect(leaves).toEqual(without);
      expect(copiesReached(given, leaves)).toBeLessThanOrEqual(copiesReached(given, without));
    });
  });

  it('reach at least half of what the best placement under the cap reaches', () => {
    const tiny = fc.record({
      seed: fc.nat(),
      lambda: fc.integer({ min: 1, max: 2 }),
      beam: fc.integer({ min: 1, max: 3 }),
    });
    fc.assert(
      fc.property(tiny, ({ seed, lambda, beam }) => {
        const given = randomCase(12, 6, 3, beam, seed);
        const { byLabel, used, reached, home } = given;
        const leaves = placeCopies(byLabel, reached, home, { ...capped, lambda }, 'seed');
        const counts = used.map((label) =>
          [0, 1, 2].map((c) => copiesReached(given, partition([[label, c]], 3, 6))),
        );
        const best = bestUnderCap(counts, lambda, capOf(used.length, 3, lambda));
        expect(2 * copiesReached(given, leaves)).toBeGreaterThanOrEqual(best);
      }),
      { seed: 1, numRuns: 60 },
    );
  });
});

/** By trying everything. */
function bestUnderCap(counts: number[][], lambda: number, cap: number, load = [0, 0, 0]): number {
  const [first, ...rest] = counts;
  if (!first) return 0;
  let best = Number.NEGATIVE_INFINITY;
  for (let set = 1; set < 8; set++) {
    const chosen = [0, 1, 2].filter((c) => set & (1 << c));
    if (chosen.length > lambda || chosen.some((c) => load[c] === cap)) continue;
    const after = load.map((size, c) => size + (chosen.includes(c) ? 1 : 0));
    const worth = chosen.reduce((sum, c) => sum + first[c], 0);
    best = Math.max(best, worth + bestUnderCap(rest, lambda, cap, after));
  }
  return best;
}

describe('the rows a copy learns from', () => {
  it("are its label's that reach its cluster, or all of them where none does", () => {
    check(({ byLabel, reached, home }, lambda) => {
      const leaves = placeCopies(byLabel, reached, home, { ...free, placement: 'random', lambda }, 'seed');
      const positives = matchedPositives(leaves, byLabel, reached);
      expect(positives.rows).toBe(leaves.indices.length);
      for (let cluster = 0; cluster < leaves.rows; cluster++) {
        for (let copy = leaves.indptr[cluster]; copy < leaves.indptr[cluster + 1]; copy++) {
          const all = rowIndices(byLabel, leaves.indices[copy]);
          const near = all.filter((row) => rowIndices(reached, row).includes(cluster));
          expect(rowIndices(positives, copy)).toEqual(near.length > 0 ? near : all);
        }
      }
    });
  });
});
