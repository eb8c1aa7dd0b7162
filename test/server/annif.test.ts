// Programs that speak Annif's REST API find what they know.
import { describe, expect, it } from 'vitest';
import { openHouse, post } from './harness.ts';

const house = openHouse();

describe('Annif clients', () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' };

  it('find projects and suggestions where Annif has them', async () => {
    const { projects } = await (await fetch(`${house.shared.url}/v1/projects`)).json();
    expect(projects).toMatchObject([
      { project_id: 'm', name: 'm', backend: { backend_id: 'one-vs-rest' }, is_trained: true },
    ]);
    const project = `${house.shared.url}/v1/projects/m`;
    expect(await (await fetch(project)).json()).toEqual(projects[0]);
    const body = new URLSearchParams({ text: 'a red apple', limit: '1', threshold: '0.1' }).toString();
    const { results } = await (await post(`${project}/suggest`, body, form)).json();
    const [{ label, name, score }] = await house.shared.client.suggest('m', 'a red apple', { top: 1 });
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
    const missing = await fetch(`${house.shared.url}/v1/projects/none`);
    expect(missing.headers.get('content-type')).toContain('application/problem+json');
    expect(await missing.json()).toMatchObject({ status: 404, title: 'not-found' });
    expect((await post(`${house.shared.url}/v1/projects/m/suggest`, 'limit=1', form)).status).toBe(400);
  });
});
