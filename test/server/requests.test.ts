// Bad requests of every kind: refused with a sentence, never a crash, never a path.
import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import fc from 'fast-check';
import { Value } from 'typebox/value';
import { describe, expect, it, vi } from 'vitest';
import * as schemas from '../../src/server/schemas.ts';
import { failure, openHouse, post, testLines } from './harness.ts';

const house = openHouse();

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
    const response = await post(`${house.shared.url}/v1/models/m/suggest`, body);
    expect(response.status).toBe(status);
    expect((await response.json()).error.message).toContain(message);
  });

  it('larger than a limit are refused, and the next one is answered', async () => {
    const { url, client } = await house.start({ bodyBytes: 2000, batch: 3, uploadBytes: 1000 });
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
    const { url } = house.shared;
    expect(
      (await post(`${url}/v1/models/m/suggest`, 'text=x', { 'content-type': 'text/plain' })).status,
    ).toBe(415);
    const gzip = new Blob([Uint8Array.of(0x1f, 0x8b, 8, 0)]);
    const error = await failure(house.shared.client.evaluate('m', gzip, { format: 'jsonl' }));
    expect(error).toMatchObject({ status: 400, message: 'upload must be plain text, not gzip' });
  });

  it('name the line of an uploaded file, and never a place of ours', async () => {
    const error = await failure(house.shared.client.evaluate('m', `${testLines}\n{bad`, { format: 'jsonl' }));
    expect(error.message).toMatch(/^upload:61: line must be valid JSON/);
  });

  it('that try to leave their room reach nothing', async () => {
    vi.stubEnv('TMPDIR', house.folder);
    const { url } = house.shared;
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
    expect((await readdir(house.folder)).filter((name) => name.startsWith('umbel-upload-'))).toEqual([]);
    vi.unstubAllEnvs();
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
          const response = await post(`${house.shared.url}/v1/models/m/${route}`, content, {
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
          `${house.shared.url}/v1/projects/m/${route}?limit=${encodeURIComponent(content)}`,
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

/** What fetch would tidy up is sent as it is. */
async function rawGet(url: string, path: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  return answer;
}
