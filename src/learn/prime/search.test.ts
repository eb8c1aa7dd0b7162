import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { planted, quickPrime } from '../../../test/planted-texts.ts';
import type { Dense } from '../../math/dense.ts';
import { canApproximate } from '../../search/approximate.ts';
import { slowSearch } from '../../search/reference.ts';
import { loadModel, saveModel } from '../../store/folder.ts';
import { Classifier } from '../classifier.ts';

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);
const data = planted(120);
let folder: string;
let plain: Classifier;

const train = (settings: Record<string, unknown> = {}) =>
  Classifier.train(data, {
    learner: 'prime',
    options: { ...quickPrime, epochs: 1, ...settings },
  });
const ranked = (model: Classifier) => model.rank(data, { top: 4 });

describe.runIf(runtime)('the search for labels', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'umbel-prime-search-'));
    plain = await train();
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it.runIf(canApproximate())(
    'is a graph above a size, which is saved with the model and grows with its labels',
    async () => {
      const model = await train({ exactLabels: 9, recall: 0.9 });
      expect(model.searchRecall).toBeGreaterThanOrEqual(0.9);
      expect(plain.searchRecall).toBeUndefined();
      // Ten labels are so few that a graph finds them all.
      expect((await ranked(model)).indices).toEqual((await ranked(plain)).indices);
      await saveModel(model, join(folder, 'graph'));
      expect(await readdir(join(folder, 'graph'))).toContain('model-graph.safetensors');
      const loaded = await loadModel(join(folder, 'graph'));
      expect(loaded.searchRecall).toBe(model.searchRecall);
      expect(await ranked(loaded)).toEqual(await ranked(model));
      const more = await loaded.withLabels([
        { id: 'x', name: 'violin of old', examples: data.texts.slice(0, 2) },
      ]);
      expect((await more.suggest(['violin of old'], { top: 11 }))[0].map(({ label }) => label)).toContain(
        'x',
      );
      const fewer = await more.withoutLabels(['x']);
      expect((await ranked(fewer)).indices).toEqual((await ranked(plain)).indices);
    },
  );

  it('may be that of an outside engine, which is given the vectors and asked in their place', async () => {
    const given: Dense[] = [];
    const outside = await plain.withSearch(async (vectors) => {
      given.push(vectors);
      return slowSearch(vectors);
    });
    expect((await ranked(outside)).indices).toEqual((await ranked(plain)).indices);
    expect(given).toHaveLength(1);
    expect([given[0].rows, given[0].cols]).toEqual([10, 16]);
    // Excluded labels stay out, and new ones reach the engine.
    outside.vocabulary.exclude(['violin']);
    const [labels] = await outside.suggest(['the violin'], { top: 10 });
    expect(labels.map(({ label }) => label)).not.toContain('violin');
    await ranked(await outside.withLabels([{ id: 'x', name: 'violin of old' }]));
    expect(given[1].rows).toBe(11);
  });

  it('cannot be replaced where there is none', async () => {
    const tree = await Classifier.train(data);
    await expect(tree.withSearch(async (vectors) => slowSearch(vectors))).rejects.toThrow(
      'model must search among vectors of labels, like prime, got "tree"',
    );
  });
});
