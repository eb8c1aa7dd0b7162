// Who may come in: tokens, origins, rates.

import { describe, expect, it } from 'vitest';
import { Client } from '../../src/client.ts';
import { newToken, parseTokens } from '../../src/server/auth.ts';
import { failure, openHouse } from './harness.ts';

const house = openHouse();

describe('who may come in', () => {
  it('is who has a token, where there are tokens', async () => {
    const { token, hash } = newToken();
    const hashes = { text: `# ours\n${hash}  catalogue\n` };
    const { server, url } = await house.start(
      {},
      { readTokens: async () => parseTokens(hashes.text, 'tokens') },
    );
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
    expect(await ask(house.shared.url, 'https://a.example')).toBeNull();
    const { url } = await house.start({}, { cors: ['https://a.example'] });
    expect(await ask(url, 'https://a.example')).toBe('https://a.example');
    expect(await ask(url, 'https://b.example')).toBeNull();
  });

  it('may not come more often than the rate', async () => {
    const { client } = await house.start({ rate: 3 });
    for (let i = 0; i < 3; i++) await client.models();
    const error = await failure(client.models());
    expect(error).toMatchObject({ status: 429, code: 'rate-limit' });
    expect(error.retryAfter).toBeGreaterThan(0);
  });
});
