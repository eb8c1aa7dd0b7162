// Beam search of one input through the levels of a tree. The plain reference is learn/tree/explain.ts.
import { multiplyChunk, ownMargin, scoreChildren } from './chunk';
import { offer, offerOnce, sortBest, swap, worse } from './heap';

/** Fields of one level's header, in bytes; chunk.ts reads the others. */
const childStartAt = 20;
const childIdsAt = 24;
const copyStartAt = 36;
const copyPlacesAt = 40;
const copiesAt = 44;
const strideAt = 48;
const headerBytes: u32 = 52;

const smallest: f32 = 1e-37;
/** Of logarithms and exponentials. */
const rounding: f32 = 1e-3;

/** How the scores of a label's copies become one. */
const largest: i32 = 1;

/**
 * Searches from the root and leaves the best `top` as 8-byte (log score, label) pairs at `best`, best first; returns
 * how many. With `sums` given, all labels reached are added to their (sum, count) pair there instead, those
 * reached for the first time are appended to `reached`, and the new length of `reached` is returned.
 */
export function searchTree(
  header: usize,
  levels: u32,
  features: usize,
  values: usize,
  count: u32,
  beam: u32,
  top: u32,
  power: i32,
  excluded: usize,
  margins: usize,
  hits: usize,
  best: usize,
  spare: usize,
  sums: usize,
  reached: usize,
  reachedCount: u32,
  merge: i32,
  scores: usize,
  ranks: usize,
): u32 {
  let from = levels & 1 ? spare : best;
  let to = levels & 1 ? best : spare;
  let kept: u32 = 1;
  let gathered = reachedCount;
  store<f32>(from, 0);
  store<u32>(from, 0, 4);
  for (let level: u32 = 1; level <= levels; level++) {
    const last = level === levels;
    const limit = last ? top : beam;
    const childStart: usize = load<u32>(header, childStartAt);
    const childIds: usize = load<u32>(header, childIdsAt);
    // Only leaves have copies.
    if (load<u32>(header, copiesAt) > 1) {
      return searchCopies(
        header,
        from,
        kept,
        features,
        values,
        count,
        top,
        power,
        excluded,
        hits,
        to,
        sums,
        reached,
        gathered,
        merge,
        scores,
        ranks,
      );
    }
    let size: u32 = 0;
    for (let k: u32 = 0; k < kept; k++) {
      const score = load<f32>(from + (k << 3));
      const chunk = load<u32>(from + (k << 3), 4);
      // Parents come best first and no child scores above its parent: the rest cannot enter.
      if (power >= 0 && !(last && sums !== 0) && size === limit && score < load<f32>(to)) break;
      const firstChild = load<u32>(childStart + (chunk << 2));
      const children = load<u32>(childStart + (chunk << 2), 4) - firstChild;
      multiplyChunk(header, chunk, children, features, values, count, margins, hits);
      scoreChildren(margins, children, score, power);
      if (last && sums !== 0) {
        const ids = childIds + (firstChild << 2);
        gathered = gather(margins, ids, children, power, excluded, sums, reached, gathered);
        continue;
      }
      for (let c: u32 = 0; c < children; c++) {
        // Most children are too unlikely, four at a time.
        if ((c & 3) === 0 && size === limit && !anyOfFour(margins + (c << 2), load<f32>(to))) {
          c += 3;
          continue;
        }
        const id = load<u32>(childIds + ((firstChild + c) << 2));
        if (last && excluded !== 0 && load<u8>(excluded + id) !== 0) continue;
        size = offer(to, size, limit, load<f32>(margins + (c << 2)), id);
      }
    }
    if (last && sums !== 0) return gathered;
    sortBest(to, size);
    kept = size;
    const swapped = from;
    from = to;
    to = swapped;
    header += headerBytes;
  }
  for (let k: u32 = 0; k < kept; k++) {
    let pair = from + (k << 3);
    store<f32>(pair, finalScore(load<f32>(pair), power));
    // Different logs can become one score: such ties go by id again.
    for (; pair > from && worse(pair - 8, pair); pair -= 8) swap(pair - 8, pair);
  }
  return kept;
}

/**
 * The last level where labels have copies in several clusters: the copies that lie in the `kept` clusters at `from`
 * become one score, their mean or the largest, and only then are the best taken. `scores` has room for the children of
 * all kept clusters, `ranks` for 4 zeros per cluster. Answers as `searchTree` does.
 */
function searchCopies(
  header: usize,
  from: usize,
  kept: u32,
  features: usize,
  values: usize,
  count: u32,
  top: u32,
  power: i32,
  excluded: usize,
  hits: usize,
  best: usize,
  sums: usize,
  reached: usize,
  reachedCount: u32,
  merge: i32,
  scores: usize,
  ranks: usize,
): u32 {
  const childStart: usize = load<u32>(header, childStartAt);
  const childIds: usize = load<u32>(header, childIdsAt);
  const stride = load<u32>(header, strideAt);
  const copies = load<u32>(header, copiesAt);
  // Few labels are kept once each; of many, so many copies that they belong to `top` labels or more.
  const few = top <= 64;
  const limit = few ? top : copies * top;
  let size: u32 = 0;
  let bound: f32 = -Infinity;
  let done: u32 = 0;
  for (; done < kept; done++) {
    const pair = from + (done << 3);
    // As in the plain search: no child scores above its parent.
    if (power >= 0 && load<f32>(pair) < bound) break;
    const at = scores + done * stride;
    scoreCluster(header, pair, features, values, count, power, hits, at);
    if (sums !== 0) continue;
    const firstChild = load<u32>(childStart + (load<u32>(pair, 4) << 2));
    const children = load<u32>(childStart + (load<u32>(pair, 4) << 2), 4) - firstChild;
    for (let c: u32 = 0; c < children; c++) {
      if ((c & 3) === 0 && size === limit && !anyOfFour(at + (c << 2), load<f32>(best))) {
        c += 3;
        continue;
      }
      const id = load<u32>(childIds + ((firstChild + c) << 2));
      if (excluded !== 0 && load<u8>(excluded + id) !== 0) continue;
      const own = load<f32>(at + (c << 2));
      size = few ? offerOnce(best, size, limit, own, id) : offer(best, size, limit, own, id);
    }
    if (size === limit) bound = lowestUseful(load<f32>(best), copies, power, merge);
  }
  for (let k: u32 = 0; k < kept; k++) store<u32>(ranks + (load<u32>(from + (k << 3), 4) << 2), k + 1);
  const copyStart: usize = load<u32>(header, copyStartAt);
  const places: usize = load<u32>(header, copyPlacesAt);
  const looked = done;
  let gathered = reachedCount;
  size = 0;
  for (let k: u32 = 0; k < looked; k++) {
    const chunk = load<u32>(from + (k << 3), 4) << 2;
    const firstChild = load<u32>(childStart + chunk);
    const children = load<u32>(childStart + chunk, 4) - firstChild;
    const at = scores + k * stride;
    for (let c: u32 = 0; c < children; c++) {
      if ((c & 3) === 0 && !anyOfFour(at + (c << 2), bound)) {
        c += 3;
        continue;
      }
      const own = load<f32>(at + (c << 2));
      if (own < bound) continue;
      const id = load<u32>(childIds + ((firstChild + c) << 2));
      if (excluded !== 0 && load<u8>(excluded + id) !== 0) continue;
      let sum: f32 = 0;
      let times: u32 = 0;
      const end = places + (load<u32>(copyStart + (id << 2), 4) << 3);
      for (let place = places + (load<u32>(copyStart + (id << 2)) << 3); place < end; place += 8) {
        const rank = load<u32>(ranks + (load<u32>(place) << 2)) - 1;
        if (rank >= kept) continue;
        if (rank >= done) {
          // Below the bound: cannot be the largest, but counts for the mean.
          if (merge === largest) continue;
          for (; done <= rank; done++)
            scoreCluster(
              header,
              from + (done << 3),
              features,
              values,
              count,
              power,
              hits,
              scores + done * stride,
            );
        }
        const score = load<f32>(scores + rank * stride + (load<u32>(place, 4) << 2));
        // The largest copy speaks for the label, the first of equals.
        if (score > own || (score === own && rank < k)) {
          times = 0;
          break;
        }
        if (merge !== largest) sum += finalScore(score, power);
        times++;
      }
      if (times === 0) continue;
      const merged = merge === largest ? finalScore(own, power) : sum / <f32>times;
      if (sums !== 0) {
        gathered = add(merged, id, sums, reached, gathered);
        continue;
      }
      size = offer(best, size, top, merged, id);
      // No mean is above its largest part.
      const worst = load<f32>(best);
      if (size === top && power >= 0 && worst > smallest) bound = max(bound, Mathf.log(worst) - rounding);
    }
  }
  for (let k: u32 = 0; k < kept; k++) store<u32>(ranks + (load<u32>(from + (k << 3), 4) << 2), 0);
  if (sums !== 0) return gathered;
  sortBest(best, size);
  return size;
}

/** Log scores of the children of the cluster in this (log score, cluster) pair. */
function scoreCluster(
  header: usize,
  pair: usize,
  features: usize,
  values: usize,
  count: u32,
  power: i32,
  hits: usize,
  scores: usize,
): void {
  const chunk = load<u32>(pair, 4);
  const start = <usize>load<u32>(header, childStartAt) + (chunk << 2);
  const children = load<u32>(start, 4) - load<u32>(start);
  multiplyChunk(header, chunk, children, features, values, count, scores, hits);
  scoreChildren(scores, children, load<f32>(pair), power);
}

/** A label whose copies all lie below this cannot be among the best, where `worst` is the worst of enough copies. */
function lowestUseful(worst: f32, copies: u32, power: i32, merge: i32): f32 {
  if (merge === largest) return worst;
  // A mean is at most its largest part, and at least that part divided by the copies.
  const share = <f32>1 / <f32>copies;
  if (power !== ownMargin) return worst + Mathf.log(share) - rounding;
  const score = share / (<f32>1 + Mathf.exp(-worst));
  return Mathf.log(score / (<f32>1 - score)) - rounding;
}

function anyOfFour(scores: usize, bound: f32): bool {
  return v128.any_true(f32x4.ge(v128.load(scores), f32x4.splat(bound)));
}

/** The best of the labels gathered, by sum / divisor; clears what was gathered. */
export function rankGathered(
  sums: usize,
  reached: usize,
  count: u32,
  divisor: f32,
  top: u32,
  best: usize,
): u32 {
  let size: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    const id = load<u32>(reached + (i << 2));
    const pair = sums + (id << 3);
    size = offer(best, size, top, load<f32>(pair) / divisor, id);
    store<u64>(pair, 0);
  }
  sortBest(best, size);
  return size;
}

/** Adds the scores of a chunk's labels to their sums; returns how many labels have been reached in all. */
function gather(
  scores: usize,
  ids: usize,
  children: u32,
  power: i32,
  excluded: usize,
  sums: usize,
  reached: usize,
  reachedCount: u32,
): u32 {
  let gathered = reachedCount;
  for (let c: u32 = 0; c < children; c++) {
    const id = load<u32>(ids + (c << 2));
    if (excluded !== 0 && load<u8>(excluded + id) !== 0) continue;
    gathered = add(finalScore(load<f32>(scores + (c << 2)), power), id, sums, reached, gathered);
  }
  return gathered;
}

/** Adds one tree's score of a label to its sum; returns how many labels have been reached in all. */
function add(score: f32, id: u32, sums: usize, reached: usize, reachedCount: u32): u32 {
  const pair = sums + (id << 3);
  store<f32>(pair, load<f32>(pair) + score);
  if (load<u32>(pair, 4) !== 0) return reachedCount;
  store<u32>(pair, 1, 4);
  store<u32>(reached + (reachedCount << 2), id);
  return reachedCount + 1;
}

/** In (0, 1]: what is too unlikely for a number stays a label that was reached. */
function finalScore(log: f32, power: i32): f32 {
  const score: f32 = power === ownMargin ? <f32>1 / (<f32>1 + Mathf.exp(-log)) : Mathf.exp(log);
  return score > smallest ? score : smallest;
}
