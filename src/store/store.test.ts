import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Vocabulary } from '../data/vocabulary.ts';
import { Classifier } from '../learn/classifier.ts';
import { openCheckpoint } from './checkpoint.ts';
import { checkTarget, loadModel, saveModel } from './folder.ts';
import { renderManifest } from './manifest.ts';

describe('a model folder', () => {
  let parent: string;
  let folder: string;
  let classifier: Classifier;

  beforeAll(async () => {
    parent = await mkdtemp(join(tmpdir(), 'umbel-store-'));
    const labels = { rows: 2, cols: 2, indptr: Uint32Array.of(0, 1, 2), indices: Uint32Array.of(0, 1) };
    const vocabulary = new Vocabulary([{ id: 'a', name: 'A' }, { id: 'b' }]);
    const dataset = { rows: 2, texts: ['red apple', 'blue sky'], labels, vocabulary };
    classifier = await Classifier.train(dataset, { learner: 'one-vs-rest' });
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(parent, 'model-'));
    await saveModel(classifier, folder);
  });
  afterAll(() => rm(parent, { recursive: true, force: true }));

  const parts = async () => (await readdir(folder)).filter((file) => file !== 'model.json');

  it('loads what was saved, names and excluded labels included', async () => {
    classifier.vocabulary.exclude(['b']);
    await saveModel(classifier, folder);
    classifier.vocabulary.allow(['b']);
    const loaded = await loadModel(folder);
    expect([...loaded.vocabulary]).toEqual([...classifier.vocabulary]);
    expect(loaded.vocabulary.excludedIds).toEqual(['b']);
    const [labels] = await loaded.suggest(['red apple']);
    expect(labels).toEqual([expect.objectContaining({ label: 'a', name: 'A' })]);
  });

  it('refuses every part that was cut short', async () => {
    for (const file of await parts()) {
      const whole = await readFile(join(folder, file));
      await truncate(join(folder, file), whole.length - 1);
      await expect(loadModel(folder)).rejects.toThrow(/part must have \d+ bytes, got \d+/);
      await writeFile(join(folder, file), whole);
    }
  });

  it('refuses every part that was altered', async () => {
    for (const file of await parts()) {
      const whole = await readFile(join(folder, file));
      await writeFile(join(folder, file), whole.with(whole.length - 1, whole[whole.length - 1] ^ 1));
      await expect(loadModel(folder)).rejects.toThrow(/part must match its checksum/);
      await writeFile(join(folder, file), whole);
    }
  });

  it('refuses a missing part, naming it', async () => {
    const [file] = await parts();
    await rm(join(folder, file));
    await expect(loadModel(folder)).rejects.toThrow(new RegExp(`${file}: file must exist`));
  });

  it('refuses a model.json that was altered, cut short, from a newer version, or not there', async () => {
    const path = join(folder, 'model.json');
    const text = await readFile(path, 'utf8');
    await writeFile(path, text.replace('"seed": 1', '"seed": 2'));
    await expect(loadModel(folder)).rejects.toThrow(/must match its own checksum/);
    await writeFile(path, text.slice(0, -20));
    await expect(loadModel(folder)).rejects.toThrow(/must be valid JSON/);
    await writeFile(path, text.replace('"version": 1', '"version": 2'));
    await expect(loadModel(folder)).rejects.toThrow(/saved by a newer umbel/);
    await rm(path);
    await expect(loadModel(folder)).rejects.toThrow(/no model in /);
  });

  it('removes what a killed process left of the same model, and nothing of a running one', async () => {
    // Above the largest process number of any system.
    const beside = [99_999_999, process.ppid].map((pid) => join(parent, `.model.partial-${pid}`));
    for (const path of beside) await mkdir(path);
    await saveModel(classifier, join(parent, 'model'));
    expect(await readdir(parent)).not.toContain(basename(beside[0]));
    expect(await readdir(parent)).toContain(basename(beside[1]));
    await rm(beside[1], { recursive: true });
  });

  it('refuses content it does not understand, even with a right checksum', async () => {
    const { parts } = JSON.parse(await readFile(join(folder, 'model.json'), 'utf8'));
    const content = { learner: 'one-vs-rest', excluded: [] };
    const text = await renderManifest({ format: 'umbel-model', version: 1, content, parts });
    await writeFile(join(folder, 'model.json'), text);
    await expect(loadModel(folder)).rejects.toThrow(/content must be what this version of umbel saves/);
  });

  it('refuses part names that leave the folder, even with a right checksum', async () => {
    const parts = [{ file: '../secret.safetensors', bytes: 1, sha256: '' }];
    const text = await renderManifest({ format: 'umbel-model', version: 1, content: null, parts });
    await writeFile(join(folder, 'model.json'), text);
    await expect(loadModel(folder)).rejects.toThrow(/plain file names, got "..\/secret/);
  });

  it('is refused before training where nothing can be written', async () => {
    await expect(checkTarget(join(folder, 'model.json', 'inside'))).rejects.toThrow(
      /place that can be written/,
    );
  });

  it('is not written over anything that is not a model, and a failed save leaves the old model', async () => {
    const other = await mkdtemp(join(parent, 'other-'));
    await writeFile(join(other, 'thesis.txt'), 'years of work');
    await expect(checkTarget(other)).rejects.toThrow(/must be new, empty or an earlier model/);
    await expect(saveModel(classifier, other)).rejects.toThrow(/must be new/);
    const failing = Object.create(classifier, {
      save: { value: () => Promise.reject(new Error('disk full')) },
      vocabulary: { value: classifier.vocabulary },
    }) as Classifier;
    await expect(saveModel(failing, folder)).rejects.toThrow('disk full');
    await loadModel(folder);
    expect((await readdir(parent)).filter((name) => name.startsWith('.'))).toEqual([]);
  });
});

describe('a checkpoint', () => {
  let folder: string;
  beforeEach(async () => {
    folder = join(await mkdtemp(join(tmpdir(), 'umbel-checkpoint-')), 'model.checkpoint');
  });
  afterEach(() => rm(join(folder, '..'), { recursive: true }));

  const piece = { a: { shape: [2], data: Float32Array.of(1, 2) } };

  it('gives back what an earlier run saved, and nothing after starting anew', async () => {
    await (await openCheckpoint(folder, 'start anew')).save('level-1', piece);
    const resumed = await openCheckpoint(folder, 'go on');
    expect(resumed.found).toBe(1);
    expect(await resumed.load('level-1')).toEqual(piece);
    expect(await resumed.load('level-2')).toBeUndefined();
    expect(await (await openCheckpoint(folder, 'start anew')).load('level-1')).toBeUndefined();
  });

  it('does not give back a damaged piece', async () => {
    await (await openCheckpoint(folder, 'start anew')).save('level-1', piece);
    const [file] = await readdir(folder);
    const bytes = await readFile(join(folder, file));
    await writeFile(join(folder, file), bytes.with(bytes.length - 1, 1));
    expect(await (await openCheckpoint(folder, 'go on')).load('level-1')).toBeUndefined();
  });

  it('keeps the newest piece of a name alone', async () => {
    const first = await openCheckpoint(folder, 'start anew');
    const newer = (value: number) => ({ a: { shape: [1], data: Float32Array.of(value) } });
    for (const value of [1, 2]) await first.save('epoch', newer(value));
    expect(await readdir(folder)).toHaveLength(1);
    const second = await openCheckpoint(folder, 'go on');
    expect(await second.load('epoch')).toEqual(newer(2));
    await second.save('epoch', newer(3));
    expect(await readdir(folder)).toHaveLength(1);
  });

  it('leaves no folder where nothing was saved', async () => {
    const checkpoint = await openCheckpoint(folder, 'start anew');
    await checkpoint.remove();
    expect(await readdir(join(folder, '..'))).toEqual([]);
  });
});
