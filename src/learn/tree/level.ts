// The weights of one level, cut into chunks: one per parent, holding the weights of its children by feature.
import type { Pattern } from '../../math/csr.ts';
import { type TensorData, type Tensors, vector } from '../../parts.ts';

/** Rows ascend by feature; `counts` says how many entries each has; entries ascend by child within the chunk. */
export interface Chunk {
  features: Uint32Array;
  counts: Uint32Array;
  children: Uint16Array;
  values: Float32Array;
}

export interface Level {
  /** parents x children. */
  shape: Pattern;
  /** parents + 1 offsets into `features`. */
  chunkStart: Uint32Array;
  /** One feature per row; the bias is the feature after the last. */
  features: Uint32Array;
  /** rows + 1 offsets into `children` and `values`. */
  rowStart: Uint32Array;
  children: Uint16Array;
  values: Float32Array;
}

export function joinChunks(shape: Pattern, chunks: Chunk[]): Level {
  const total = (size: (chunk: Chunk) => number) => chunks.reduce((sum, chunk) => sum + size(chunk), 0);
  const rows = total(({ features }) => features.length);
  const entries = total(({ values }) => values.length);
  const level: Level = {
    shape,
    chunkStart: new Uint32Array(chunks.length + 1),
    features: new Uint32Array(rows),
    rowStart: new Uint32Array(rows + 1),
    children: new Uint16Array(entries),
    values: new Float32Array(entries),
  };
  let [row, entry] = [0, 0];
  chunks.forEach((chunk, c) => {
    level.features.set(chunk.features, row);
    level.children.set(chunk.children, entry);
    level.values.set(chunk.values, entry);
    entry += chunk.values.length;
    for (let i = 0; i < chunk.counts.length; i++, row++)
      level.rowStart[row + 1] = level.rowStart[row] + chunk.counts[i];
    level.chunkStart[c + 1] = row;
  });
  return level;
}

/** One chunk out of several that hold different children, in ascending order, of the same parent. */
export function mergeChunks(parts: Chunk[]): Chunk {
  if (parts.length === 1) return parts[0];
  const width = 1 + parts.reduce((most, { features }) => Math.max(most, features.at(-1) ?? 0), 0);
  // How many entries each feature has; then where its next one goes.
  const next = new Uint32Array(width + 1);
  for (const { features, counts } of parts) {
    for (let row = 0; row < features.length; row++) next[features[row]] += counts[row];
  }
  let [rows, total] = [0, 0];
  for (let feature = 0; feature < width; feature++) if (next[feature] > 0) rows++;
  const features = new Uint32Array(rows);
  const counts = new Uint32Array(rows);
  for (let feature = 0, row = 0; feature < width; feature++) {
    const count = next[feature];
    if (count === 0) continue;
    features[row] = feature;
    counts[row++] = count;
    next[feature] = total;
    total += count;
  }
  const children = new Uint16Array(total);
  const values = new Float32Array(total);
  for (const part of parts) {
    let entry = 0;
    for (let row = 0; row < part.features.length; row++) {
      let target = next[part.features[row]];
      for (const end = entry + part.counts[row]; entry < end; entry++, target++) {
        children[target] = part.children[entry];
        values[target] = part.values[entry];
      }
      next[part.features[row]] = target;
    }
  }
  return { features, counts, children, values };
}

/** A level as it is saved: whole numbers as narrow as they can be. */
export function levelTensors({ shape, chunkStart, features, rowStart, children, values }: Level): Tensors {
  return {
    'node-start': vector(shape.indptr.slice()),
    nodes: vector(shape.indices.slice()),
    'chunk-start': vector(chunkStart.slice()),
    features: vector(narrow(features)),
    counts: vector(narrow(differences(rowStart))),
    children: vector(narrow(children)),
    values: vector(values.slice()),
  };
}

export function levelFrom(tensors: Tensors): Level {
  const u32 = (name: string) => new Uint32Array(tensors[name].data);
  const [indptr, indices, counts] = [u32('node-start'), u32('nodes'), u32('counts')];
  const rowStart = new Uint32Array(counts.length + 1);
  for (let row = 0; row < counts.length; row++) rowStart[row + 1] = rowStart[row] + counts[row];
  const cols = indices.reduce((most, node) => Math.max(most, node + 1), 0);
  return {
    shape: { rows: indptr.length - 1, cols, indptr, indices },
    chunkStart: u32('chunk-start'),
    features: u32('features'),
    rowStart,
    children: new Uint16Array(tensors.children.data),
    values: tensors.values.data as Float32Array,
  };
}

function narrow(list: Uint32Array | Uint16Array): TensorData {
  let largest = 0;
  for (let i = 0; i < list.length; i++) if (list[i] > largest) largest = list[i];
  if (largest < 256) return new Uint8Array(list);
  return largest < 65536 ? new Uint16Array(list) : new Uint32Array(list);
}

function differences(starts: Uint32Array): Uint32Array {
  const sizes = new Uint32Array(starts.length - 1);
  for (let i = 0; i < sizes.length; i++) sizes[i] = starts[i + 1] - starts[i];
  return sizes;
}
