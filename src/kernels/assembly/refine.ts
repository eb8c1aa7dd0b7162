// A linear classifier for one label among the members of its groups and of others: dual coordinate descent for the
// squared hinge, on rows as gatherPlaces of impute.ts lays them. `sums` are the weights, that of the bias last.

/** What a row is in a fold. */
const heldOut: i8 = 0;

/** Copies the marks of each pair's places, which lie from its offset on. */
export function takeMarks(
  count: u32,
  firsts: usize,
  pairs: usize,
  offsets: usize,
  chosen: usize,
  marks: usize,
): void {
  for (let j: u32 = 0; j < count; j++) {
    const first = load<u32>(firsts + (j << 2));
    const from = chosen + load<u32>(offsets + (load<u32>(pairs + (j << 2)) << 2));
    memory.copy(marks + first, from, load<u32>(firsts + (j << 2), 4) - first);
  }
}

/**
 * Of the places, those of groups outside the fold learn: marked ones as positives, all others as negatives. Groups from
 * `count` on are never marked.
 */
export function takeSides(
  count: u32,
  groups: u32,
  firsts: usize,
  folds: usize,
  fold: u32,
  marks: usize,
  signs: usize,
): void {
  for (let j: u32 = 0; j < groups; j++) {
    const out = load<u8>(folds + j) === fold;
    const last = load<u32>(firsts + (j << 2), 4);
    for (let i = load<u32>(firsts + (j << 2)); i < last; i++) {
      const positive = j < count && load<u8>(marks + i) !== 0;
      store<i8>(signs + i, out ? heldOut : positive ? 1 : -1);
    }
  }
}

/** Minimises 1/2 |w|^2 + cost sum max(0, 1 - sign w.x)^2; `alphas` has 8 bytes per place, `order` 4. */
export function solvePlaces(
  places: u32,
  ends: usize,
  entries: usize,
  features: u32,
  sums: usize,
  signs: usize,
  alphas: usize,
  order: usize,
  cost: f64,
  bias: f64,
  epsilon: f64,
  passes: u32,
  seed: u32,
): void {
  memory.fill(sums, 0, (features + 1) << 3);
  memory.fill(alphas, 0, places << 3);
  let active: u32 = 0;
  for (let i: u32 = 0; i < places; i++) {
    if (load<i8>(signs + i) !== heldOut) store<u32>(order + (active++ << 2), i);
  }
  const diagonal = 0.5 / cost;
  const constant = sums + (features << 3);
  let random = seed | 1;
  for (let pass: u32 = 0; pass < passes; pass++) {
    let largest = -Infinity;
    let smallest = Infinity;
    for (let s: u32 = 0; s < active; s++) {
      random ^= random << 13;
      random ^= random >> 17;
      random ^= random << 5;
      const drawn = s + <u32>((<u64>random * <u64>(active - s)) >> 32);
      const i = load<u32>(order + (drawn << 2));
      store<u32>(order + (drawn << 2), load<u32>(order + (s << 2)));
      store<u32>(order + (s << 2), i);
      const from = entries + (i === 0 ? 0 : load<u32>(ends + ((i - 1) << 2)));
      const end = entries + load<u32>(ends + (i << 2));
      let margin = load<f64>(constant) * bias;
      let square = bias * bias + diagonal;
      for (let p = from; p < end; p += 8) {
        const value: f64 = load<f32>(p, 4);
        margin += value * load<f64>(sums + load<u32>(p));
        square += value * value;
      }
      const sign: f64 = load<i8>(signs + i);
      const alpha = load<f64>(alphas + (i << 3));
      const gradient = sign * margin - 1 + alpha * diagonal;
      const projected = alpha === 0 ? Math.min(gradient, 0) : gradient;
      largest = Math.max(largest, projected);
      smallest = Math.min(smallest, projected);
      if (projected === 0) continue;
      const next = Math.max(alpha - gradient / square, 0);
      store<f64>(alphas + (i << 3), next);
      const step = (next - alpha) * sign;
      for (let p = from; p < end; p += 8) {
        const sum = sums + load<u32>(p);
        store<f64>(sum, load<f64>(sum) + step * <f64>load<f32>(p, 4));
      }
      store<f64>(constant, load<f64>(constant) + step * bias);
    }
    if (largest - smallest <= epsilon) break;
  }
}

/** The classifier's margins for the places of the fold it has not learnt from. */
export function scoreFold(
  count: u32,
  firsts: usize,
  folds: usize,
  fold: u32,
  ends: usize,
  entries: usize,
  features: u32,
  sums: usize,
  bias: f64,
  dots: usize,
): void {
  const constant = load<f64>(sums + (features << 3)) * bias;
  for (let j: u32 = 0; j < count; j++) {
    if (load<u8>(folds + j) !== fold) continue;
    const last = load<u32>(firsts + (j << 2), 4);
    for (let i = load<u32>(firsts + (j << 2)); i < last; i++) {
      const end = entries + load<u32>(ends + (i << 2));
      let margin = constant;
      for (let p = entries + (i === 0 ? 0 : load<u32>(ends + ((i - 1) << 2))); p < end; p += 8) {
        margin += <f64>load<f32>(p, 4) * load<f64>(sums + load<u32>(p));
      }
      store<f64>(dots + (i << 3), margin);
    }
  }
}
