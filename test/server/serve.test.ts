// `umbel serve` as people start it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Client } from '../../src/client.ts';
import { parseTokens } from '../../src/server/auth.ts';
import { openHouse } from './harness.ts';

const house = openHouse();

describe('umbel serve', () => {
  const main = join(import.meta.dirname, '..', '..', 'dist', 'cli', 'main.js');
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
    const { child, output } = run('--model', `titles=${house.model}`, '--port', '0', '--threads', '1');
    const closed = once(child, 'close');
    await expect.poll(() => output.stdout, { timeout: 20_000 }).toContain('Ctrl-C');
    const client = new Client(/http:\S+\d/.exec(output.stdout)?.[0] ?? '');
    const [before] = await client.models();
    child.kill('SIGHUP');
    const isNew = async () => (await client.model('titles')).loadedAt !== before.loadedAt;
    await expect.poll(isNew, { timeout: 10_000 }).toBe(true);
    child.kill('SIGTERM');
    expect(await closed).toEqual([0, null]);
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
    expect(code).toBe(2);
    expect(output.stderr).toContain(message);
    expect(output.stderr).not.toContain('    at ');
  });

  it('says so when another program listens at the port', async () => {
    const { child, output } = run('--model', house.model, '--port', new URL(house.shared.url).port);
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
