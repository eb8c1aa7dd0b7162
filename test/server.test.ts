// The server as clients meet it: real models, real sockets, the typed client, and everything that can go wrong.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Client, ServerError } from '../src/client.ts';
import { datasetOf } from '../src/data/plain-samples.ts';
import { Classifier } from '../src/learn/classifier.ts';
import { parseOptions } from '../src/options.ts';
import { type ServeOptions, type Server, startServer } from '../src/server/app.ts';
import { newToken, parseTokens } from '../src/server/auth.ts';
import { LabelIndex } from '../src/server/labels.ts';
import { limitOptions } from '../src/server/limits.ts';
import * as schemas from '../src/server/schemas.ts';
import { loadModel, saveModel } from '../src/store/folder.ts';

const samples = Array.from({ length: 60 }, (_, i) =>
  i % 2
    ? { text: `red apple number ${i}`, labels: ['fruit', 'http://example.org/red'] }
    : { text: `blue sky number ${i}`, labels: ['sky', 'blue'] },
);
const testLines = samples.map((sample) => JSON.stringify(sample)).join('\n');

let folder: string;
let model: string;
const started: Server[] = [];
const logged: string[] = [];

async function train(target: string, seed = 1): Promise<void> {
  const dataset = datasetOf(samples);
  dataset.vocabulary.describe([
    { id: 'fruit', name: 'Fruits and berries', altNames: ['pome'] },
    { id: 'sky', name: 'The sky', parents: ['blue'] },
  ]);
  await saveModel(await Classifier.train(dataset, { learner: 'one-vs-rest', seed }), target);
}

async function start(limits: Record<string, number> = {}, options: Partial<ServeOptions> = {}) {
  const server = await startServer({
    models: [{ name: 'm', folder: model }],
    host: '127.0.0.1',
    port: 0,
    threads: 2,
    limits: parseOptions(limitOptions, { rate: 0, ...limits }),
    cors: [],
    trustProxy: false,
    log: { level: 'info', write: (line) => logged.push(line) },
    ...options,
  });
  started.push(server);
  return { server, url: server.url, client: new Client(server.url) };
}

const json = { 'content-type': 'application/json' };
const post = (url: string, body: string, headers: Record<string, string> = json) =>
  fetch(url, { method: 'POST', body, headers });
const failure = (promise: Promise<unknown>): Promise<ServerError> =>
  promise.then(
    () => {
      throw new Error('must fail');
    },
    (error) => error,
  );

let shared: Awaited<ReturnType<typeof start>>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-server-'));
  model = join(folder, 'model');
  await train(model);
  shared = await start();
});
afterAll(async () => {
  await Promise.all(started.map((server) => server.close()));
  await rm(folder, { recursive: true, force: true });
});

describe('the typed client against the server', () => {
  it('suggests what the library suggests, one by one, in batches and in streams', async () => {
    const texts = ['a red apple', 'the blue sky', 'nothing known'];
    const expected = await (await loadModel(model)).suggest(texts, { top: 2 });
    const { client } = shared;
    for (const [i, text] of texts.entries())
      expect(await client.suggest('m', text, { top: 2 })).toEqual(expected[i]);
    const batch = await client.suggestBatch(
      'm',
      texts.map((text, i) => ({ id: `t${i}`, text })),
      { top: 2 },
    );
    expect(batch).toEqual(expected.map((labels, i) => ({ id: `t${i}`, labels })));
    const streamed = [];
    for await (const line of client.suggestStream('m', Array(2500).fill(texts[0]), { top: 2 }))
      streamed.push(line);
    expect(streamed).toEqual(Array(2500).fill({ labels: expected[0] }));
  });

  it('leaves out labels below the threshold', async () => {
    const all = await shared.client.suggest('m', 'a red apple', { top: 4 });
    const threshold = all[1].score;
    const kept = await shared.client.suggest('m', 'a red apple', { top: 4, threshold });
    expect(kept).toEqual(all.filter(({ score }) => score >= threshold));
  });

  it('lists the models and tells one of them in full', async () => {
    const [summary] = await shared.client.models();
    expect(summary).toMatchObject({
      name: 'm',
      learner: 'one-vs-rest',
      labels: 4,
      samples: 60,
      takesText: true,
    });
    const detail = await shared.client.model('m');
    expect(detail).toMatchObject({ ...summary, seed: 1, threads: 2 });
    expect(detail.settings).toEqual((await loadModel(model)).options);
  });

  it('explains the label asked for, and else the best one', async () => {
    const best = await shared.client.explain('m', 'a red apple');
    const [suggested] = await shared.client.suggest('m', 'a red apple', { top: 1 });
    expect(best.label).toBe(suggested.label);
    expect(best.score).toBeCloseTo(suggested.score);
    const sky = await shared.client.explain('m', 'a red apple', { label: 'sky', words: 1 });
    expect(sky).toMatchObject({ label: 'sky', name: 'The sky' });
    expect(sky.steps[0].contributions).toHaveLength(1);
    expect(sky.spans.map(({ start, end }) => 'a red apple'.slice(start, end))).toEqual(['red', 'apple']);
  });

  it('finds labels by id, words and other names, and gives one with its relatives', async () => {
    const ids = async (search: string) =>
      (await shared.client.labels('m', { search })).labels.map(({ id }) => id);
    expect(await ids('berr fru')).toEqual(['fruit']);
    expect(await ids('POME')).toEqual(['fruit']);
    expect(await ids('http://ex')).toEqual(['http://example.org/red']);
    expect(await ids('erries')).toEqual([]);
    const page = await shared.client.labels('m', { offset: 1, limit: 2 });
    expect(page).toMatchObject({ found: 4, offset: 1 });
    expect(page.labels).toHaveLength(2);
    expect(await shared.client.label('m', 'http://example.org/red')).toMatchObject({ samples: 30 });
    expect((await shared.client.label('m', 'sky')).broader).toMatchObject([{ id: 'blue' }]);
    expect((await shared.client.label('m', 'blue')).narrower).toMatchObject([{ id: 'sky' }]);
  });

  it('tells the meanings of labels where the model has them', async () => {
    const own = join(folder, 'overlapping');
    const rows = Array.from({ length: 120 }, (_, i) => ({
      text: `word${i % 24} word${(i * 7) % 24} word${(i * 5) % 24}`,
      labels: [`l${i % 24}`, `l${(i * 7) % 24}`],
    }));
    const options = { overlap: true, flatSize: 1, leafSize: 4 };
    const classifier = await Classifier.train(datasetOf(rows), { learner: 'tree', options });
    await saveModel(classifier, own);
    const { client } = await start({}, { models: [{ name: 'm', folder: own }] });
    const top = await client.sensesTop('m', 3);
    expect(top).toEqual(classifier.sensesTop(3));
    const senses = await client.senses('m', 'l7');
    expect(senses).toEqual(classifier.senses('l7'));
    expect(Value.Check(schemas.Senses, { senses })).toBe(true);
    expect(await failure(client.senses('m', 'none'))).toMatchObject({ status: 404 });
    expect(await failure(shared.client.senses('m', 'sky'))).toMatchObject({ status: 400, code: 'usage' });
  });

  it('evaluates an uploaded file in every format it takes', async () => {
    const report = await shared.client.evaluate('m', testLines, { format: 'jsonl', resamples: 20 });
    expect(report).toMatchObject({ n: 60, labels: 4, 'P@1': 1, 'R@10': 1, unknownLabels: 0 });
    expect(report.intervals?.['P@1']).toBeDefined();
    expect((await shared.client.model('m')).evaluation).toEqual(report);
    const csv = 'title;tags\nred apple;fruit|red\nblue sky;sky|new\n';
    const table = await shared.client.evaluate('m', csv, {
      format: 'csv',
      columns: 'text=title,labels=tags',
      labelDelimiter: '|',
    });
    expect(table).toMatchObject({ n: 2, unknownLabels: 0.5 });
  });

  it('hands on the words of the server', async () => {
    const error = await failure(shared.client.suggest('other', 'x'));
    expect(error).toBeInstanceOf(ServerError);
    expect(error).toMatchObject({ status: 404, code: 'not-found', hint: 'known: m' });
  });
});

describe('answers', () => {
  it('have the shapes that the OpenAPI document promises', async () => {
    const { url, client } = shared;
    const document = (await (await fetch(`${url}/openapi.json`)).json()) as {
      openapi: string;
      paths: object;
    };
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining(['/v1/models/{model}/suggest', '/v1/projects/{project_id}/suggest', '/metrics']),
    );
    const pairs: [TSchema, unknown][] = [
      [schemas.ModelList, { models: await client.models() }],
      [schemas.ModelDetail, await client.model('m')],
      [schemas.LabelPage, await client.labels('m')],
      [schemas.LabelDetail, await client.label('m', 'sky')],
      [schemas.Explained, await client.explain('m', 'a red apple')],
      [schemas.Explained, await client.explain('m', 'zzz')],
      [schemas.EvaluationReport, await client.evaluate('m', testLines, { format: 'jsonl' })],
      [schemas.ErrorBody, await (await fetch(`${url}/v1/nothing`)).json()],
    ];
    for (const [schema, answer] of pairs)
      expect(Value.Check(schema, answer), JSON.stringify(answer)).toBe(true);
  });

  it('carry security headers, and the page of the routes no script', async () => {
    const response = await fetch(`${shared.url}/docs`);
    expect(response.headers.get('content-security-policy')).toContain("default-src 'self'");
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    const page = await response.text();
    expect(page).toContain('/v1/models/{model}/suggest');
    expect(page).not.toMatch(/<script|src=|@import|href="http/);
  });

  it('tell health, readiness and figures for Prometheus', async () => {
    expect(await (await fetch(`${shared.url}/health`)).json()).toEqual({ status: 'ok' });
    expect(await (await fetch(`${shared.url}/ready`)).json()).toEqual({ status: 'ready' });
    await shared.client.suggest('m', 'x');
    const text = await (await fetch(`${shared.url}/metrics`)).text();
    expect(text).toMatch(/umbel_request_seconds_count\{.*suggest.*status="200"\} \d+/);
    expect(text).toContain('umbel_waiting_inputs{model="m"} 0');
  });

  it('to bad lines of a stream are errors in their places', async () => {
    const lines = ['{"text":"red apple","id":"1"}', '{bad', '', '{"tex":"x"}', '{}', '{"text":"sky"}'].join(
      '\n',
    );
    const url = `${shared.url}/v1/models/m/suggest-batch?top=1`;
    const response = await post(url, lines, { 'content-type': 'application/x-ndjson' });
    const answers = (await response.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(answers.map(({ id, line, error }) => [id, line, error?.code])).toEqual([
      ['1', undefined, undefined],
      [undefined, 2, 'input'],
      [undefined, 4, 'usage'],
      [undefined, 5, 'input'],
      [undefined, undefined, undefined],
    ]);
  });
});

describe('Annif clients', () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' };

  it('find projects and suggestions where Annif has them', async () => {
    const { projects } = await (await fetch(`${shared.url}/v1/projects`)).json();
    expect(projects).toMatchObject([
      { project_id: 'm', name: 'm', backend: { backend_id: 'one-vs-rest' }, is_trained: true },
    ]);
    const project = `${shared.url}/v1/projects/m`;
    expect(await (await fetch(project)).json()).toEqual(projects[0]);
    const body = new URLSearchParams({ text: 'a red apple', limit: '1', threshold: '0.1' }).toString();
    const { results } = await (await post(`${project}/suggest`, body, form)).json();
    const [{ label, name, score }] = await shared.client.suggest('m', 'a red apple', { top: 1 });
    expect(results).toEqual([{ uri: label, label: name, notation: null, score }]);
    const documents = [{ text: 'a red apple', document_id: 'd' }, { text: 'zzz' }];
    const batch = await (
      await post(`${project}/suggest-batch?limit=1`, JSON.stringify({ documents }))
    ).json();
    expect(batch).toEqual([
      { document_id: 'd', results },
      { document_id: null, results: expect.any(Array) },
    ]);
  });

  it('get problems as Annif gives them', async () => {
    const missing = await fetch(`${shared.url}/v1/projects/none`);
    expect(missing.headers.get('content-type')).toContain('application/problem+json');
    expect(await missing.json()).toMatchObject({ status: 404, title: 'not-found' });
    expect((await post(`${shared.url}/v1/projects/m/suggest`, 'limit=1', form)).status).toBe(400);
  });
});

describe('bad requests', () => {
  it.each([
    ['{"text":5}', 400, 'text must be string, got 5'],
    ['{"text":"a","top":0}', 400, 'top must be >= 1, got 0'],
    ['{"text":"a","top":100000}', 400, 'top must be <= 1000, got 100000'],
    ['{"text":"a","tpo":1}', 400, 'unknown field, got "tpo" (did you mean top?)'],
    ['{}', 400, 'an input must have a text or features'],
    ['{"features":{"1":1}}', 400, 'inputs must have text'],
    ['{bad', 400, 'body must be valid JSON'],
    ['', 400, 'body must not be empty'],
    ['null', 400, 'body must be object'],
  ])('%s is refused with a sentence', async (body, status, message) => {
    const response = await post(`${shared.url}/v1/models/m/suggest`, body);
    expect(response.status).toBe(status);
    expect((await response.json()).error.message).toContain(message);
  });

  it('larger than a limit are refused, and the next one is answered', async () => {
    const { url, client } = await start({ bodyBytes: 2000, batch: 3, uploadBytes: 1000 });
    expect(await failure(client.suggest('m', 'x'.repeat(3000)))).toMatchObject({
      status: 413,
      code: 'too-large',
    });
    expect(await failure(client.suggestBatch('m', ['a', 'b', 'c', 'd']))).toMatchObject({ status: 400 });
    const upload = client.evaluate('m', testLines, { format: 'jsonl' });
    expect(await failure(upload)).toMatchObject({ status: 413, code: 'too-large' });
    const long = `{"text":"${'x'.repeat(3000)}"}\n{"text":"red"}\n`;
    const lines = await post(`${url}/v1/models/m/suggest-batch`, long, {
      'content-type': 'application/x-ndjson',
    });
    expect((await lines.text()).split('\n')[0]).toContain('a line must have at most 2000 bytes');
    expect(await client.suggest('m', 'a red apple')).not.toEqual([]);
  });

  it('of other types or with gzip inside are refused', async () => {
    const { url } = shared;
    expect(
      (await post(`${url}/v1/models/m/suggest`, 'text=x', { 'content-type': 'text/plain' })).status,
    ).toBe(415);
    const gzip = new Blob([Uint8Array.of(0x1f, 0x8b, 8, 0)]);
    const error = await failure(shared.client.evaluate('m', gzip, { format: 'jsonl' }));
    expect(error).toMatchObject({ status: 400, message: 'upload must be plain text, not gzip' });
  });

  it('name the line of an uploaded file, and never a place of ours', async () => {
    const error = await failure(shared.client.evaluate('m', `${testLines}\n{bad`, { format: 'jsonl' }));
    expect(error.message).toMatch(/^upload:61: line must be valid JSON/);
  });

  it('that try to leave their room reach nothing', async () => {
    const { url } = shared;
    const paths = [
      '/v1/models/..%2F..%2Fetc',
      '/v1/models/%2Fetc%2Fpasswd',
      '/docs/../../package.json',
      '/v1/../../x',
    ];
    for (const path of paths) {
      const answer = await rawGet(url, path);
      expect(answer).toMatch(/^HTTP\/1.1 404/);
      expect(answer).toContain('"error"');
    }
    for (const query of [
      'format=..%2F..%2Fetc%2Fpasswd',
      'format=csv&columns=%2Fetc%2Fpasswd',
      'format=parquet',
    ]) {
      const response = await post(`${url}/v1/models/m/evaluate?${query}`, 'a,b\n1,2\n', {
        'content-type': 'text/plain',
      });
      expect(response.status).toBe(400);
    }
    expect((await readdir(tmpdir())).filter((name) => name.startsWith('umbel-upload-'))).toEqual([]);
  });

  it('of any content get JSON, and never a 500', async () => {
    const routes = [
      'suggest',
      'suggest-batch',
      'explain',
      'evaluate?format=jsonl',
      'evaluate?format=svmlight',
      'reloaded',
    ];
    const types = [
      'application/json',
      'application/x-ndjson',
      'application/x-www-form-urlencoded',
      'text/csv',
    ];
    const field = fc.constantFrom(
      'text',
      'top',
      'threshold',
      'features',
      'label',
      'words',
      'id',
      '__proto__',
    );
    const nearly = fc.dictionary(field, fc.oneof(fc.string(), fc.integer(), fc.jsonValue()));
    const body = fc.oneof(
      fc.string(),
      fc.json(),
      nearly.map((value) => JSON.stringify(value)),
      nearly.map((value) => JSON.stringify([value])),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...routes),
        fc.constantFrom(...types),
        body,
        async (route, type, content) => {
          const response = await post(`${shared.url}/v1/models/m/${route}`, content, {
            'content-type': type,
          });
          expect(response.status).toBeLessThan(500);
          for (const line of (await response.text()).trim().split('\n').filter(Boolean)) {
            const answer = JSON.parse(line);
            if (!response.ok) expect(Value.Check(schemas.ErrorBody, answer)).toBe(true);
          }
        },
      ),
      { numRuns: 150 },
    );
  }, 60_000);

  it('of any content leave Annif clients with a problem', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), fc.constantFrom('suggest', 'suggest-batch'), async (content, route) => {
        const type = { 'content-type': 'application/x-www-form-urlencoded' };
        const response = await post(
          `${shared.url}/v1/projects/m/${route}?limit=${encodeURIComponent(content)}`,
          content,
          type,
        );
        expect(response.status).toBeLessThan(500);
        if (!response.ok) expect(await response.json()).toMatchObject({ status: response.status });
      }),
      { numRuns: 50 },
    );
  });
});

describe('who may come in', () => {
  it('is who has a token, where there are tokens', async () => {
    const { token, hash } = newToken();
    const hashes = { text: `# ours\n${hash}  catalogue\n` };
    const { server, url } = await start({}, { readTokens: async () => parseTokens(hashes.text, 'tokens') });
    const authorised = new Client(url, { token });
    expect(await failure(new Client(url).models())).toMatchObject({ status: 401, code: 'unauthorised' });
    expect(await failure(new Client(url, { token: `${token}x` }).reload('m'))).toMatchObject({ status: 401 });
    expect(await failure(new Client(url, { token: hash }).models())).toMatchObject({ status: 401 });
    expect((await fetch(`${url}/metrics`)).status).toBe(401);
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect(await authorised.models()).toHaveLength(1);
    await authorised.reload('m');
    hashes.text = newToken().hash;
    await server.reload();
    expect(await failure(authorised.models())).toMatchObject({ status: 401 });
  });

  it('is told by a file of hashes in which nothing else may be', () => {
    expect(() => parseTokens('umbel_secret\n', 'tokens')).toThrow(
      /tokens:1: line must begin with the SHA-256 hash/,
    );
    expect(() => parseTokens('umbel_secret\n', 'tokens')).not.toThrow(/umbel_secret/);
    expect(() => parseTokens('# none\n', 'tokens')).toThrow('at least one hash');
  });

  it('are pages of origins that were named, and no others', async () => {
    const ask = async (url: string, origin: string) => {
      const response = await fetch(`${url}/v1/models`, { headers: { origin } });
      return response.headers.get('access-control-allow-origin');
    };
    expect(await ask(shared.url, 'https://a.example')).toBeNull();
    const { url } = await start({}, { cors: ['https://a.example'] });
    expect(await ask(url, 'https://a.example')).toBe('https://a.example');
    expect(await ask(url, 'https://b.example')).toBeNull();
  });

  it('may not come more often than the rate', async () => {
    const { client } = await start({ rate: 3 });
    for (let i = 0; i < 3; i++) await client.models();
    const error = await failure(client.models());
    expect(error).toMatchObject({ status: 429, code: 'rate-limit' });
    expect(error.retryAfter).toBeGreaterThan(0);
  });
});

describe('under load', () => {
  it('refuses what does not fit into the queue, and recovers', async () => {
    const { client } = await start({ queue: 500 }, { threads: 1 });
    const inputs = Array(900).fill('a red apple and the blue sky');
    const results = await Promise.allSettled(
      Array.from({ length: 40 }, () => client.suggestBatch('m', inputs)),
    );
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(40);
    for (const error of refused)
      expect(error).toMatchObject({ status: 503, code: 'overloaded', retryAfter: 1 });
    expect((await client.model('m')).waiting).toBe(0);
    expect(await client.suggest('m', 'a red apple')).not.toEqual([]);
  });

  it('a stream waits for room in the queue', async () => {
    const { client } = await start({ queue: 100 }, { threads: 1 });
    const streams = Array.from({ length: 5 }, async () => {
      let answered = 0;
      for await (const line of client.suggestStream('m', Array(1000).fill('a red apple')))
        answered += 'labels' in line ? 1 : 0;
      return answered;
    });
    expect(await Promise.all(streams)).toEqual(Array(5).fill(1000));
  });

  it('too many requests at once are refused', async () => {
    const { client } = await start({ requests: 1 });
    const asked = Array.from({ length: 50 }, () => client.suggest('m', 'a red apple'));
    const results = await Promise.allSettled(asked);
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    expect(refused.length).toBeLessThan(50);
    for (const error of refused) expect(error).toMatchObject({ status: 503, code: 'overloaded' });
    expect(await client.models()).toHaveLength(1);
  });

  it('replaces a thread that dies, and one that gives no answer in time', async () => {
    const { client } = await start({ seconds: 1 }, { threads: 1 });
    const give = vi.spyOn(Worker.prototype, 'postMessage');
    give.mockImplementationOnce(function (this: Worker) {
      this.terminate();
    });
    const died = await failure(client.suggest('m', 'a red apple'));
    expect(died).toMatchObject({ status: 503, code: 'unavailable', retryAfter: 1 });
    expect(await client.suggest('m', 'a red apple')).not.toEqual([]);
    give.mockImplementationOnce(() => {});
    expect(await failure(client.suggest('m', 'a red apple'))).toMatchObject({ status: 503, code: 'timeout' });
    expect(await client.suggest('m', 'a red apple')).not.toEqual([]);
    give.mockRestore();
    expect(logged.join('')).toContain('a thread had to be replaced');
  });

  it('reloads without dropping a request, and keeps the model where the new one is damaged', async () => {
    const own = join(folder, 'reloaded');
    await train(own);
    const { client } = await start({}, { models: [{ name: 'm', folder: own }] });
    const [{ version }] = await client.models();
    await train(own, 2);
    let reloading = true;
    let answered = 0;
    const load = async () => {
      while (reloading) {
        expect(await client.suggest('m', 'a red apple', { top: 2 })).toHaveLength(2);
        answered++;
      }
    };
    const clients = Array.from({ length: 8 }, load);
    const reloaded = await client.reload('m').finally(() => {
      reloading = false;
    });
    await Promise.all(clients);
    expect(answered).toBeGreaterThan(0);
    expect(reloaded.version).not.toBe(version);
    expect(reloaded.seed).toBe(2);

    await writeFile(
      join(own, 'model.json'),
      (await readFile(join(own, 'model.json'), 'utf8')).replace('60', '61'),
    );
    const error = await failure(client.reload('m'));
    expect(error).toMatchObject({ status: 500, code: 'model' });
    expect(error.message).not.toContain(folder);
    expect((await client.model('m')).version).toBe(reloaded.version);
    expect(await client.suggest('m', 'a red apple')).not.toEqual([]);
  });

  it('goes on when clients go away in the middle', async () => {
    const { url, client } = await start();
    logged.length = 0;
    const line = `${JSON.stringify({ text: 'a red apple', labels: ['sky'] })}\n`;
    for (const path of ['suggest-batch', 'evaluate', 'suggest']) {
      const headers = { 'content-type': path === 'suggest' ? 'application/json' : 'application/x-ndjson' };
      const leaving = request(`${url}/v1/models/m/${path}`, { method: 'POST', headers });
      leaving.on('error', () => {});
      leaving.write(line.repeat(1000));
      await new Promise((resolve) => setTimeout(resolve, 100));
      leaving.destroy();
    }
    expect(await client.evaluate('m', testLines, { format: 'jsonl' }).catch((error) => error)).toMatchObject({
      n: 60,
    });
    expect(await client.suggest('m', 'a red apple')).not.toEqual([]);
    expect(logged.map((entry) => JSON.parse(entry)).filter(({ level }) => level >= 50)).toEqual([]);
  });

  it('finishes what runs when it stops, and takes nothing new', async () => {
    const { server, url, client } = await start();
    const headers = { 'content-type': 'application/x-ndjson' };
    const running = request(`${url}/v1/models/m/suggest-batch?top=1`, { method: 'POST', headers });
    const line = `${JSON.stringify({ text: 'a red apple' })}\n`;
    running.write(line.repeat(1000));
    const [response] = await once(running, 'response');
    const closing = server.close();
    await expect.poll(() => client.models().catch(() => 'refused')).toBe('refused');
    running.end(line.repeat(1000));
    expect((await text(response)).trim().split('\n')).toHaveLength(2000);
    await closing;
  });
});

describe('the log', () => {
  it('tells every request, and nothing of what people wrote', async () => {
    const secret = 'quetzalcoatl';
    logged.length = 0;
    await shared.client.suggest('m', secret);
    await shared.client.labels('m', { search: secret });
    await failure(shared.client.suggest('m', secret, { top: 0 }));
    await failure(shared.client.label('m', secret));
    await post(`${shared.url}/v1/models/m/suggest`, `{"text":"${secret}`);
    const lines = logged.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'answered');
    expect(lines).toHaveLength(5);
    expect(lines[0]).toMatchObject({
      method: 'POST',
      route: '/v1/models/:model/suggest',
      model: 'm',
      status: 200,
    });
    expect(logged.join('')).not.toContain(secret);
  });
});

describe('label search', () => {
  it('finds exactly the labels whose names have a word for every beginning', async () => {
    const word = fc.constantFrom('bird', 'birds', 'red', 'blue', 'bluebird', 'sky');
    const name = fc.array(word, { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(name, { minLength: 1, maxLength: 8 }),
        fc.array(word, { minLength: 1, maxLength: 2 }),
        async (names, wanted) => {
          const dataset = datasetOf([{ text: 'some text', labels: names.map((_, i) => `#${i}`) }]);
          dataset.vocabulary.describe(names.map((words, i) => ({ id: `#${i}`, name: words.join(' ') })));
          const index = new LabelIndex(await Classifier.train(dataset, { learner: 'popular' }));
          const beginnings = wanted.map((full) => full.slice(0, 3));
          const expected = names.flatMap((words, i) =>
            beginnings.every((beginning) => words.some((own) => own.startsWith(beginning))) ? [`#${i}`] : [],
          );
          const { labels, found } = index.search({ search: beginnings.join(' ') });
          expect(labels.map(({ id }) => id).sort()).toEqual(expected.sort());
          expect(found).toBe(expected.length);
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe('umbel serve', () => {
  const main = join(import.meta.dirname, '..', 'dist', 'cli', 'main.js');
  const run = (...args: string[]) => {
    const child = spawn(process.execPath, [main, 'serve', ...args]);
    const output = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text) => {
      output.stderr += text;
    });
    return { child, output };
  };

  it('serves until it is told to stop, and loads again on SIGHUP', async () => {
    const { child, output } = run('--model', `titles=${model}`, '--port', '0', '--threads', '1');
    const exited = once(child, 'exit');
    await once(child.stdout, 'data');
    const client = new Client(/http:\S+\d/.exec(output.stdout)?.[0] ?? '');
    const [before] = await client.models();
    child.kill('SIGHUP');
    const isNew = async () => (await client.model('titles')).loadedAt !== before.loadedAt;
    await expect.poll(isNew, { timeout: 10_000 }).toBe(true);
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    expect(output.stderr.split('\n')[0]).toContain('"msg":');
  });

  it.each([
    [[], '--model must be given'],
    [['--model', 'nowhere'], 'no model in nowhere'],
    [['--model', 'a=x', '--model', 'a=y'], 'models must have different names, got "a"'],
    [['--model', 'x', '--port', '99999'], '--port must be an integer from 0 to 65535'],
    [['--model', 'x', '--tokens', 'nowhere'], 'tokens file must exist'],
  ])('%j is refused with a sentence', async (args, message) => {
    const { child, output } = run(...args);
    const [code] = await once(child, 'close');
    expect(code).not.toBe(0);
    expect(output.stderr).toContain(message);
    expect(output.stderr).not.toContain('    at ');
  });

  it('says so when another program listens at the port', async () => {
    const { child, output } = run('--model', model, '--port', new URL(shared.url).port);
    const [code] = await once(child, 'close');
    expect(code).toBe(2);
    expect(output.stderr).toContain('another program listens there');
  });

  it('makes tokens whose hash the file takes', async () => {
    const { child, output } = run('--new-token', '--json');
    await once(child, 'close');
    const { token, hash } = JSON.parse(output.stdout);
    expect(token).toMatch(/^umbel_/);
    expect(parseTokens(hash, 'tokens')).toHaveLength(1);
  });
});

/** What fetch would tidy up is sent as it is. */
async function rawGet(url: string, path: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  return answer;
}
