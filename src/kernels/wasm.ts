// The compiled kernels. They take addresses and integers: typed arrays over the memory of memory.ts are how the rest of the
// house reads and writes what they see. Runs in Node and in browsers.
import { UmbelError } from '../errors.ts';
import { isShared } from './memory.ts';

/** How the kernels of adam.ts take one step. */
export type AdamUpdate = [
  scale: number,
  l2: number,
  keep: number,
  beta1: number,
  beta2: number,
  rate: number,
  spread: number,
  epsilon: number,
];

/** Signatures of assembly/index.ts; every argument is an address or a number. */
export interface Kernels {
  sumOfSquares(numbers: number, count: number): number;
  stepAdam(
    parameters: number,
    gradients: number,
    first: number,
    second: number,
    count: number,
    ...update: AdamUpdate
  ): void;
  stepAdamRows(
    table: number,
    gradients: number,
    first: number,
    second: number,
    rows: number,
    count: number,
    width: number,
    ...update: AdamUpdate
  ): void;
  gatherRows(table: number, rows: number, count: number, width: number, out: number): void;
  drawMask(
    mask: number,
    count: number,
    threshold: number,
    kept: number,
    ...seeds: [a: number, b: number, c: number]
  ): void;
  encodeVectors(vectors: number, count: number, width: number, codes: number, facts: number): void;
  encodeQueries(queries: number, count: number, width: number, codes: number, facts: number): void;
  findNearest(
    vectors: number,
    codes: number,
    facts: number,
    count: number,
    width: number,
    excluded: number,
    queries: number,
    queryCodes: number,
    queryFacts: number,
    queryCount: number,
    top: number,
    heaps: number,
    sizes: number,
  ): void;
  countFeatures(
    rows: number,
    count: number,
    indptr: number,
    indices: number,
    slots: number,
    touched: number,
  ): number;
  sumRows(
    rows: number,
    count: number,
    rowWeights: number,
    indptr: number,
    indices: number,
    values: number,
    slots: number,
    outIndices: number,
    outValues: number,
  ): void;
  splitInTwo(
    items: number,
    q: number,
    first: number,
    second: number,
    indptr: number,
    indices: number,
    values: number,
    sums: number,
    work: number,
  ): void;
  listPlaces(
    groups: number,
    count: number,
    bounds: number,
    indptr: number,
    cells: number,
    meanDots: number,
    firsts: number,
    spans: number,
    means: number,
  ): void;
  gatherPlaces(
    groups: number,
    count: number,
    bounds: number,
    indptr: number,
    cells: number,
    hidden: number,
    slots: number,
    ids: number,
    firsts: number,
    ends: number,
    entries: number,
  ): number;
  shareWeights(count: number, firsts: number, weights: number, shares: number): void;
  startDirection(
    places: number,
    spans: number,
    means: number,
    meanSquare: number,
    sums: number,
    shares: number,
    dots: number,
  ): number;
  turnDirection(
    places: number,
    spans: number,
    means: number,
    meanSquare: number,
    sums: number,
    shares: number,
    dots: number,
    pulls: number,
    count: number,
    firsts: number,
    weights: number,
    nearest: number,
    iterations: number,
    step: number,
  ): void;
  clearSums(places: number, spans: number, width: number, sums: number, others: number): void;
  keepScores(
    count: number,
    firsts: number,
    dots: number,
    pairs: number,
    offsets: number,
    scores: number,
  ): void;
  markBest(
    count: number,
    firsts: number,
    dots: number,
    pairs: number,
    offsets: number,
    counts: number,
    marks: number,
  ): void;
  takeMarks(
    count: number,
    firsts: number,
    pairs: number,
    offsets: number,
    chosen: number,
    marks: number,
  ): void;
  takeSides(count: number, groups: number, firsts: number, folds: number, marks: number, sides: number): void;
  solveFolds(
    groups: number,
    firsts: number,
    ends: number,
    entries: number,
    features: number,
    sums: number,
    folds: number,
    sides: number,
    alphas: number,
    shuffled: number,
    order: number,
    steps: number,
    cost: number,
    bias: number,
    epsilon: number,
    passes: number,
    seed: number,
  ): void;
  scoreFolds(
    count: number,
    firsts: number,
    folds: number,
    ends: number,
    entries: number,
    features: number,
    sums: number,
    bias: number,
    dots: number,
  ): void;
  compact(
    rows: number,
    count: number,
    indptr: number,
    indices: number,
    values: number,
    localRow: number,
    localFeature: number,
    ids: number,
    spare: number,
    headers: number,
    entries: number,
  ): number;
  markPositives(
    rows: number,
    count: number,
    signs: number,
    localRow: number,
    labels: number,
    lanes: number,
    indptr: number,
    labelRows: number,
  ): void;
  stepSizes(count: number, headers: number, bias: number, positive: number, negative: number): void;
  startSquaredHinge(
    count: number,
    alphas: number,
    order: number,
    weights: number,
    features: number,
    lanes: number,
    seed: number,
    state: number,
  ): void;
  /** Returns 1 when all lanes have converged. */
  passSquaredHinge(
    count: number,
    headers: number,
    signs: number,
    alphas: number,
    order: number,
    weights: number,
    features: number,
    bias: number,
    positive: number,
    negative: number,
    epsilon: number,
    shrink: number,
    state: number,
  ): number;
  /** Eight labels of a cluster at once; returns the number of passes. */
  solveLogistic(
    count: number,
    headers: number,
    signs: number,
    alphas: number,
    order: number,
    weights: number,
    features: number,
    lanes: number,
    bias: number,
    positive: number,
    negative: number,
    epsilon: number,
    iterations: number,
    seed: number,
  ): number;
  keepWeights(
    ids: number,
    locals: number,
    from: number,
    to: number,
    weights: number,
    groups: number,
    groupBytes: number,
    firstChild: number,
    threshold: number,
    features: number,
    counts: number,
    children: number,
    values: number,
  ): number;
  addGroup(
    rows: number,
    count: number,
    indptr: number,
    indices: number,
    values: number,
    sums: number,
    stride: number,
    seen: number,
    number: number,
    found: number,
    size: number,
  ): number;
  findWords(
    found: number,
    size: number,
    sums: number,
    telling: number,
    stride: number,
    group: number,
    groups: number,
    shares: number,
    most: number,
    items: number,
    scores: number,
  ): number;
  groupProduct(found: number, size: number, a: number, b: number, stride: number): number;
  clearGroups(found: number, size: number, sums: number, stride: number): void;
  findTypical(
    rows: number,
    count: number,
    indptr: number,
    indices: number,
    values: number,
    telling: number,
    stride: number,
    most: number,
    items: number,
    scores: number,
  ): number;
  searchTree(
    header: number,
    levels: number,
    features: number,
    values: number,
    count: number,
    beam: number,
    top: number,
    power: number,
    excluded: number,
    margins: number,
    hits: number,
    best: number,
    spare: number,
    sums: number,
    reached: number,
    reachedCount: number,
    merge: number,
    scores: number,
    ranks: number,
  ): number;
  rankGathered(
    sums: number,
    reached: number,
    count: number,
    divisor: number,
    top: number,
    best: number,
  ): number;
}

const modules = new Map<string, Promise<WebAssembly.Module>>();

/** The kernels over this memory. Compiled once per thread; engines share the machine code between threads. */
export async function loadKernels(memory: WebAssembly.Memory): Promise<Kernels> {
  const name = isShared(memory) ? 'shared' : 'single';
  const module = modules.get(name) ?? readBinary(`${name}.wasm`).then((bytes) => WebAssembly.compile(bytes));
  modules.set(name, module);
  // What could not be fetched now may be there at the next try.
  module.catch(() => modules.delete(name));
  const instance = await WebAssembly.instantiate(await module, { env: { memory } });
  return instance.exports as unknown as Kernels;
}

/** Pages have one thread and need no shared memory, which few servers allow them. */
export const inNode = typeof process !== 'undefined' && process.versions?.node !== undefined;

/**
 * Browsers fetch the file beside this one; Node reads it, from dist where this is run from the sources. Compiled from
 * bytes, not while it arrives: that would need a server that knows the type of .wasm files.
 */
async function readBinary(file: string): Promise<BufferSource> {
  const source = import.meta.url.endsWith('.ts');
  const url = new URL(source ? `../../dist/kernels/${file}` : file, import.meta.url);
  if (url.protocol === 'file:') return process.getBuiltinModule('node:fs').readFileSync(url);
  const response = await fetch(url);
  if (response.ok) return response.arrayBuffer();
  throw new UmbelError('missing-package', 'kernels must be served beside the scripts', {
    file: url.href,
    value: response.status,
  });
}
