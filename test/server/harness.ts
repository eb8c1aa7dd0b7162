// What the tests of the server share: a small model, servers that are closed again, and how to talk to them.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { Client, type ServerError } from '../../src/client.ts';
import { datasetOf } from '../../src/data/plain-samples.ts';
import { Classifier } from '../../src/learn/classifier.ts';
import { parseOptions } from '../../src/options.ts';
import { type ServeOptions, type Server, startServer } from '../../src/server/app.ts';
import { limitOptions } from '../../src/server/limits.ts';
import { saveModel } from '../../src/store/folder.ts';

export const samples = Array.from({ length: 60 }, (_, i) =>
  i % 2
    ? { text: `red apple number ${i}`, labels: ['fruit', 'http://example.org/red'] }
    : { text: `blue sky number ${i}`, labels: ['sky', 'blue'] },
);
export const testLines = samples.map((sample) => JSON.stringify(sample)).join('\n');

export async function train(target: string, seed = 1): Promise<void> {
  const dataset = datasetOf(samples);
  dataset.vocabulary.describe([
    { id: 'fruit', name: 'Fruits and berries', altNames: ['pome'] },
    { id: 'sky', name: 'The sky', parents: ['blue'] },
  ]);
  await saveModel(await Classifier.train(dataset, { learner: 'one-vs-rest', seed }), target);
}

/** Whether the optional package that networks need is there. */
export const hasNetworks = await import('onnxruntime-node').then(
  () => true,
  () => false,
);

/** A model that knows labels by their names: six words. */
export async function trainNamed(target: string): Promise<void> {
  const words = ['harbour', 'glacier', 'market', 'pepper', 'castle', 'planet'];
  const rows = Array.from({ length: 90 }, (_, i) => ({
    text: `the ${words[i % 6]} of ${i % 4}`,
    labels: [`l${i % 6}`],
  }));
  const dataset = datasetOf(rows);
  dataset.vocabulary.describe(words.map((name, i) => ({ id: `l${i}`, name })));
  const options = { epochs: 8, batch: 16, width: 16, vocabulary: 200, learningRate: 0.01 };
  await saveModel(await Classifier.train(dataset, { learner: 'prime', options }), target);
}

export class House {
  /** Removed at the end. */
  folder = '';
  readonly logged: string[] = [];
  readonly #started: Server[] = [];
  #shared: Awaited<ReturnType<House['start']>> | undefined;

  get model(): string {
    return join(this.folder, 'model');
  }

  /** A server for all tests of a file that leave no trace. */
  get shared() {
    if (!this.#shared) throw new Error('not started');
    return this.#shared;
  }

  async open(): Promise<void> {
    this.folder = await mkdtemp(join(tmpdir(), 'umbel-server-'));
    await train(this.model);
    this.#shared = await this.start();
  }

  async start(limits: Record<string, number> = {}, options: Partial<ServeOptions> = {}) {
    const server = await startServer({
      models: [{ name: 'm', folder: this.model }],
      host: '127.0.0.1',
      port: 0,
      threads: 2,
      limits: parseOptions(limitOptions, { rate: 0, ...limits }),
      cors: [],
      trustProxy: false,
      log: { level: 'info', write: (line) => this.logged.push(line) },
      ...options,
    });
    this.#started.push(server);
    return { server, url: server.url, client: new Client(server.url) };
  }

  async close(): Promise<void> {
    await Promise.all(this.#started.map((server) => server.close()));
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A model and a server of it, while the tests of the file run. */
export function openHouse(): House {
  const house = new House();
  beforeAll(() => house.open());
  afterAll(() => house.close());
  return house;
}

export const json = { 'content-type': 'application/json' };
export const post = (url: string, body: string, headers: Record<string, string> = json) =>
  fetch(url, { method: 'POST', body, headers });
export const failure = (promise: Promise<unknown>): Promise<ServerError> =>
  promise.then(
    () => {
      throw new Error('must fail');
    },
    (error) => error,
  );
