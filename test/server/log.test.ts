// What is logged, and what never is.
import { describe, expect, it } from 'vitest';
import { failure, openHouse, post } from './harness.ts';

const house = openHouse();

describe('the log', () => {
  it('tells every request, and nothing of what people wrote', async () => {
    const secret = 'quetzalcoatl';
    house.logged.length = 0;
    await house.shared.client.suggest('m', secret);
    await house.shared.client.labels('m', { search: secret });
    await failure(house.shared.client.suggest('m', secret, { top: 0 }));
    await failure(house.shared.client.label('m', secret));
    await post(`${house.shared.url}/v1/models/m/suggest`, `{"text":"${secret}`);
    const lines = house.logged.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'answered');
    expect(lines).toHaveLength(5);
    expect(lines[0]).toMatchObject({
      method: 'POST',
      route: '/v1/models/:model/suggest',
      model: 'm',
      status: 200,
    });
    expect(house.logged.join('')).not.toContain(secret);
  });
});
