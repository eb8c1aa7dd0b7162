// The server under load, when threads die, when models are replaced, when it stops.

import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, vi } from 'vitest';
import { failure, openHouse, testLines, train } from './harness.ts';

const house = openHouse();

describe('under load', () => {
  it('refuses what does not fit into the queue, and recovers', async () => {
    const { client } = await house.start({ queue: 500 }, { threads: 1 });
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
    const { client } = await house.start({ queue: 100 }, { threads: 1 });
    const streams = Array.from({ length: 5 }, async () => {
      let answered = 0;
      for await (const line of client.suggestStream('m', Array(1000).fill('a red apple')))
        answered += 'labels' in line ? 1 : 0;
      return answered;
    });
    expect(await Promise.all(streams)).toEqual(Array(5).fill(1000));
  });

  it('too many requests at once are refused', async () => {
    const { client } = await house.start({ requests: 1 });
    const asked = Array.from({ length: 50 }, () => client.suggest('m', 'a red apple'));
    const results = await Promise.allSettled(asked);
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    expect(refused.length).toBeLessThan(50);
    for (const error of refused) expect(error).toMatchObject({ status: 503, code: 'overloaded' });
    expect(await client.models()).toHaveLength(1);
  });

  it('replaces a thread that dies, and one that gives no answer in time', async () => {
    const { client } = await house.start({ seconds: 3 }, { threads: 1 });
    const give = vi.spyOn(Worker.prototype, 'postMessage');
    give.mockImplementationOnce(function (this: Worker) {
      this.terminate();
    });
    const died = await failure(client.suggest('m', 'a red apple'));
    expect(died).toMatchObject({ status: 503, code: 'unavailable', retryAfter: 1 });
    // On a busy machine the new thread may take longer to load than a request waits.
    const answered = () => client.suggest('m', 'a red apple').catch(() => []);
    await expect.poll(answered, { timeout: 20_000 }).not.toEqual([]);
    give.mockImplementationOnce(() => {});
    expect(await failure(client.suggest('m', 'a red apple'))).toMatchObject({ status: 503, code: 'timeout' });
    await expect.poll(answered, { timeout: 20_000 }).not.toEqual([]);
    give.mockRestore();
    expect(house.logged.join('')).toContain('a thread had to be replaced');
  }, 60_000);

  it('reloads without dropping a request, and keeps the model where the new one is damaged', async () => {
    const own = join(house.folder, 'reloaded');
    await train(own);
    const { client } = await house.start({}, { models: [{ name: 'm', folder: own }] });
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
    expect(error.message).not.toContain(house.folder);
    expect((await client.model('m')).version).toBe(reloaded.version);
    expect(await client.suggest('m', 'a red apple')).not.toEqual([]);
  });

  it('goes on when clients go away in the middle', async () => {
    const { url, client } = await house.start();
    house.logged.length = 0;
    const line = `${JSON.stringify({ text: 'a red apple', labels: ['sky'] })}\n`;
    for (const path of ['suggest-batch', 'evaluate', 'suggest']) {
      const headers = { 'content-type': path === 'suggest' ? 'application/json' : 'application/x-ndjson' };
      const leaving = request(`${url}/v1/models/m/${path}`, { method: 'POST', headers });
      leaving.on('error', () => {});
      leaving.write(line.repeat(1000));
      await new Promise((resolve) => setTimeout(resolve, 100));
      leaving.destroy();
    }
    const evaluated = () =>
      client.evaluate('m', testLines, { format: 'jsonl' }).then(
        ({ n }) => n,
        () => 'busy',
      );
    await expect.poll(evaluated, { timeout: 20_000 }).toBe(60);
    expect(await client.suggest('m', 'a red apple')).not.toEqual([]);
    expect(house.logged.map((entry) => JSON.parse(entry)).filter(({ level }) => level >= 50)).toEqual([]);
  });

  it('finishes what runs when it stops, and takes nothing new', async () => {
    const { server, url, client } = await house.start();
    const headers = { 'content-type': 'application/x-ndjson' };
    const running = request(`${url}/v1/models/m/suggest-batch?top=1`, { method: 'POST', headers });
    const line = `${JSON.stringify({ text: 'a red apple' })}\n`;
    running.write(line.repeat(1000));
    const [response] = await once(running, 'response');
    const closing = server.close();
    const asked = () => client.models().catch(() => 'refused');
    await expect.poll(asked, { timeout: 10_000 }).toBe('refused');
    running.end(line.repeat(1000));
    expect((await text(response)).trim().split('\n')).toHaveLength(2000);
    await closing;
  });
});
