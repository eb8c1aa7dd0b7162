// A trained C-GMVAE: an ONNX program from features to the probability of every label it knows. Runs in a browser too.

import type { Features } from '../../data/dataset.ts';
import { CsrBuilder } from '../../math/csr.ts';
import { topK } from '../../math/topk.ts';
import { readWeights } from '../../nn/onnx.ts';
import { Session } from '../../nn/session.ts';
import { type Json, type PartReader, vector } from '../../parts.ts';
import { breathe, checkCancelled } from '../../progress.ts';
import type { Scores } from '../epochs.ts';
import { inputRows, writeRows } from '../features.ts';
import type { Model, Width } from '../learner.ts';
import { labelsName } from './net.ts';

/** The JSON side of a saved model. */
export interface GmvaeConfig extends Width {
  /** In the vocabulary; the program knows those in `columns`. */
  labels: number;
  threads: number;
  /** How training went. */
  training: { epochs: number; chosen: number; scores?: Scores } | null;
}

/** Rows that are computed at once. */
const batchRows = 256;

export function gmvaeModel(onnx: Uint8Array, columns: Uint32Array, config: GmvaeConfig): Model {
  const { sparse, dense, labels, threads } = config;
  const width = sparse + dense;
  // Opened when first needed: labels can be looked at where there is no runtime.
  let session: Promise<Session> | undefined;
  const open = () => {
    session ??= Session.open(onnx, { threads });
    return session;
  };
  return {
    width: { sparse, dense },
    async predict(inputs, { top, excluded, signal, progress }) {
      const program = await open();
      const rows = inputRows(inputs);
      const eligible = Uint8Array.from(columns, (column) => (excluded?.[column] ? 0 : 1));
      const ranking = new CsrBuilder('values');
      for (let start = 0; start < rows; start += batchRows) {
        checkCancelled(signal);
        const numbers = Uint32Array.from({ length: Math.min(batchRows, rows - start) }, (_, i) => start + i);
        const x = new Float32Array(numbers.length * width);
        writeRows(inputs, numbers, x);
        const { probabilities } = await program.run({ x });
        numbers.forEach((row, i) => {
          const said = probabilities.subarray(i * columns.length, (i + 1) * columns.length);
          const scores = Float32Array.from(said as Float32Array, (score, label) => score * eligible[label]);
          const best = isEmpty(inputs, row) ? [] : Array.from(topK(scores, top)).filter((l) => scores[l] > 0);
          ranking.add(
            best.map((label) => columns[label]),
            best.map((label) => scores[label]),
          );
        });
        progress?.({ phase: 'predict', done: start + numbers.length, total: rows, unit: 'rows' });
        await breathe();
      }
      return ranking.csr(labels);
    },
    labelVectors() {
      const { shape, data } = readWeights(onnx)[labelsName];
      return { labels: columns, vectors: { rows: shape[0], cols: shape[1], values: data as Float32Array } };
    },
    async save(parts) {
      await parts.writeProgram('network', onnx);
      await parts.write('labels', { columns: vector(columns) });
      return config as unknown as Json;
    },
  };
}

/** A row without a single word says nothing about any label. */
const isEmpty = ({ sparse, dense }: Features, row: number): boolean =>
  !dense && sparse !== undefined && sparse.indptr[row] === sparse.indptr[row + 1];

export async function loadGmvae(config: Json, parts: PartReader): Promise<Model> {
  const [onnx, { columns }] = await Promise.all([parts.readProgram('network'), parts.read('labels')]);
  return gmvaeModel(onnx, columns.data as Uint32Array, config as unknown as GmvaeConfig);
}
