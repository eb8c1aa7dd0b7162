// A trained Deep-MIML: an ONNX program that scores instances, and what makes inputs into instances and instances' scores
// into those of their bags.
import { type Features, selectFeatures } from '../../data/dataset.ts';
import { CsrBuilder, rowIndices } from '../../math/csr.ts';
import { selectDenseRows } from '../../math/dense.ts';
import { topK } from '../../math/topk.ts';
import { readWeights } from '../../nn/onnx.ts';
import { Session } from '../../nn/session.ts';
import { type Json, type PartReader, vector } from '../../parts.ts';
import { breathe, checkCancelled } from '../../progress.ts';
import { inputRows } from '../features.ts';
import type { Model, Width } from '../learner.ts';
import { type Scaling, standardise } from '../scaling.ts';
import { bagScore, chances } from './bags.ts';
import { type Projection, Projector } from './instances.ts';
import { embeddingsName, type Head, scoreInstances } from './network.ts';

/** The JSON side of a saved model. */
export interface MimlConfig extends Width {
  projection: Projection;
  head: Head;
  tau: number;
  threads: number;
  /** How training went. */
  training: Json;
}

/** What a model is made of beside its configuration. */
export interface MimlParts {
  onnx: Uint8Array;
  scaling: Scaling;
  /** One byte per label: whether training bags carried it. */
  trained: Uint8Array;
}

/** Inputs that are computed at once. */
const batchRows = 64;

export function mimlModel(config: MimlConfig, { onnx, scaling, trained }: MimlParts): Model {
  const { sparse, dense, projection, head, tau, threads } = config;
  const projector = new Projector(sparse, projection);
  // Opened when first needed: labels can be looked at where there is no runtime.
  let session: Promise<Session> | undefined;
  const scored = async (inputs: Features) => {
    session ??= Session.open(onnx, { threads });
    return scoreInstances(await session, standardise(projector.apply(inputs), scaling), trained.length);
  };
  return {
    width: { sparse, dense },
    async predict(inputs, { top, excluded, signal, progress }) {
      const rows = inputRows(inputs);
      const ranking = new CsrBuilder('values');
      for (let start = 0; start < rows; start += batchRows) {
        checkCancelled(signal);
        const count = Math.min(batchRows, rows - start);
        const some = selectFeatures(
          inputs,
          Array.from({ length: count }, (_, i) => start + i),
        );
        const found = await scored(some);
        for (let row = 0; row < count; row++) {
          const own = tellingInstances(some, row);
          const scores = chances(head, bagScore(found, own, trained.length, tau), trained);
          if (excluded)
            for (let label = 0; label < scores.length; label++) if (excluded[label]) scores[label] = 0;
          const best = own.length === 0 ? [] : [...topK(scores, top)].filter((label) => scores[label] > 0);
          ranking.add(
            best,
            best.map((label) => scores[label]),
          );
        }
        progress?.({ phase: 'predict', done: start + count, total: rows, unit: 'rows' });
        await breathe();
      }
      return ranking.csr(trained.length);
    },
    labelVectors() {
      const { shape, data } = readWeights(onnx)[embeddingsName];
      const labels = Uint32Array.from(trained.keys()).filter((label) => trained[label] === 1);
      const all = { rows: shape[0], cols: shape[1], values: data as Float32Array };
      return { labels, vectors: selectDenseRows(all, labels) };
    },
    async save(parts) {
      const { mean, scale } = scaling;
      await parts.writeProgram('network', onnx);
      await parts.write('bags', { trained: vector(trained), mean: vector(mean), scale: vector(scale) });
      return config as unknown as Json;
    },
  };
}

/** The instances of an input that have any feature. */
function tellingInstances({ sparse, dense, bags }: Features, row: number): Uint32Array {
  const own = bags ? rowIndices(bags, row) : Uint32Array.of(row);
  return dense || !sparse ? own : own.filter((instance) => rowIndices(sparse, instance).length > 0);
}

export async function loadMiml(config: Json, parts: PartReader): Promise<Model> {
  const [onnx, { trained, mean, scale }] = await Promise.all([
    parts.readProgram('network'),
    parts.read('bags'),
  ]);
  const scaling = { mean: mean.data as Float32Array, scale: scale.data as Float32Array };
  return mimlModel(config as unknown as MimlConfig, { onnx, scaling, trained: trained.data as Uint8Array });
}
