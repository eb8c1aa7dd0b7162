// Answers of the server: their shapes, headers, health, and errors within streams.
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { describe, expect, it } from 'vitest';
import * as schemas from '../../src/server/schemas.ts';
import { openHouse, post, testLines } from './harness.ts';

const house = openHouse();

describe('answers', () => {
  it('have the shapes that the OpenAPI document promises', async () => {
    const { url, client } = house.shared;
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
    const response = await fetch(`${house.shared.url}/docs`);
    expect(response.headers.get('content-security-policy')).toContain("default-src 'self'");
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    const page = await response.text();
    expect(page).toContain('/v1/models/{model}/suggest');
    expect(page).not.toMatch(/<script|src=|@import|href="http/);
  });

  it('tell health, readiness and figures for Prometheus', async () => {
    expect(await (await fetch(`${house.shared.url}/health`)).json()).toEqual({ status: 'ok' });
    expect(await (await fetch(`${house.shared.url}/ready`)).json()).toEqual({ status: 'ready' });
    await house.shared.client.suggest('m', 'x');
    const text = await (await fetch(`${house.shared.url}/metrics`)).text();
    expect(text).toMatch(/umbel_request_seconds_count\{.*suggest.*status="200"\} \d+/);
    expect(text).toContain('umbel_waiting_inputs{model="m"} 0');
  });

  it('to bad lines of a stream are errors in their places', async () => {
    const lines = ['{"text":"red apple","id":"1"}', '{bad', '', '{"tex":"x"}', '{}', '{"text":"sky"}'].join(
      '\n',
    );
    const url = `${house.shared.url}/v1/models/m/suggest-batch?top=1`;
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
