// The studio as people use it: Chromium walks through every screen on small WordNet models; axe looks at each of them.
// With UMBEL_SCREENSHOTS=docs it also takes the pictures of the README.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page, Request } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Client } from '../src/client.ts';
import { type Dataset, selectSamples, stream } from '../src/data/dataset.ts';
import { writeEvidence } from '../src/data/evidence-file.ts';
import { writeSamples } from '../src/data/formats.ts';
import { readWordNet } from '../src/data/wordnet.ts';
import { Classifier } from '../src/learn/classifier.ts';
import { rowIndices } from '../src/math/csr.ts';
import { Random } from '../src/math/random.ts';
import { parseOptions } from '../src/options.ts';
import { type Server, startServer } from '../src/server/app.ts';
import { newToken, parseTokens } from '../src/server/auth.ts';
import { limitOptions } from '../src/server/limits.ts';
import { saveModel } from '../src/store/folder.ts';
import { launchChromium, skipReason } from './chromium.ts';
import { hasNetworks, trainNamed } from './server/harness.ts';

const shots = process.env.UMBEL_SCREENSHOTS;
/** Pictures show more than tests need. */
const rows = shots ? 9000 : 2500;
const text = 'a small yellow bird of the finch family that sings in a cage';

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const problems: string[] = [];

let folder: string;
let server: Server;
let client: Client;
let browser: Browser;
let context: BrowserContext;
let page: Page;

const at = (name: string) => join(folder, name);

async function prepare(): Promise<void> {
  const wordnet = await readWordNet();
  const order = new Random(1, 'studio').permutation(wordnet.rows);
  const glosses = selectSamples(wordnet, order.slice(0, rows).sort());
  await writeSamples(stream(glosses), at('glosses.jsonl'));
  await writeSamples(stream(selectSamples(wordnet, order.slice(rows, 1.1 * rows).sort())), at('test.jsonl'));
  const models = { wordnet: { overlap: true, flatSize: 200 }, bigrams: { 'text.ngrams': 2 } };
  for (const [name, options] of Object.entries(models))
    await saveModel(await Classifier.train(glosses, { learner: 'tree', options }), at(name));
  if (hasNetworks) await trainNamed(at('places'));
  await group(
    selectSamples(
      glosses,
      Array.from({ length: 48 }, (_, i) => i * 40),
    ),
  );
}

/** Four samples to a group; every label went to who has it, more or less clearly. */
async function group(glosses: Dataset): Promise<void> {
  const ids = (glosses.ids ?? []).map((id) => id);
  const labelsOf = (row: number) =>
    Array.from(rowIndices(glosses.labels, row), (column) => glosses.vocabulary.label(column).id);
  const groups = Array.from({ length: 12 }, (_, g) => {
    const members = [0, 1, 2, 3].map((i) => 4 * g + i);
    return { group: `page ${g + 1}`, members, labels: [...new Set(members.flatMap(labelsOf))] };
  });
  const lines = (records: object[]) => records.map((record) => JSON.stringify(record)).join('\n');
  await writeFile(at('instances.jsonl'), lines(ids.map((id, row) => ({ id, text: glosses.texts?.[row] }))));
  await writeFile(
    at('groups.jsonl'),
    lines(
      groups.map(({ group, members, labels }) => ({
        group,
        labels,
        instances: members.map((row) => ids[row]),
      })),
    ),
  );
  const evidence = groups.flatMap(({ group, members, labels }, g) =>
    labels.map((label, i) => {
      const holders = members.filter((row) => labelsOf(row).includes(label));
      const margin = ((7 * i + 3 * g) % 12) / 20;
      return {
        group,
        label,
        instances: holders.map((row) => ids[row]),
        similarities: holders.map(() => 0.6),
        margin,
      };
    }),
  );
  await writeEvidence(at('evidence.jsonl'), evidence);
}

beforeAll(async () => {
  if (skipReason) return console.warn(`skipped: ${skipReason}`);
  folder = await mkdtemp(join(tmpdir(), 'umbel-studio-'));
  await prepare();
  server = await startServer({
    models: ['wordnet', 'bigrams', ...(hasNetworks ? ['places'] : [])].map((name) => ({
      name,
      folder: at(name),
    })),
    state: at('state'),
    data: [{ name: 'glosses', file: at('glosses.jsonl') }],
    groups: [
      {
        name: 'pages',
        instances: at('instances.jsonl'),
        groups: at('groups.jsonl'),
        evidence: at('evidence.jsonl'),
      },
    ],
    host: '127.0.0.1',
    port: 0,
    threads: 1,
    limits: parseOptions(limitOptions, { rate: 0, seconds: 60 }),
    cors: [],
    trustProxy: false,
    log: { level: 'silent', write: () => {} },
  });
  client = new Client(server.url);
  browser = await launchChromium();
  context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  page = await open(context);
}, 600_000);
afterAll(async () => {
  await browser?.close();
  await server?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
}, 60_000);
beforeEach((test) => {
  if (skipReason) test.skip(skipReason);
});
afterEach(() => {
  expect(problems.splice(0)).toEqual([]);
});

/** A page that tells what went wrong in it. */
async function open(where: BrowserContext): Promise<Page> {
  const opened = await where.newPage();
  opened.setDefaultTimeout(60_000);
  opened.on('pageerror', (error) => problems.push(error.message));
  opened.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes('status of 4')) problems.push(message.text());
  });
  await opened.goto(server.url);
  return opened;
}

/** A screen of the first model, whatever a test before this one has left. */
async function visit(screen: string): Promise<void> {
  await page.evaluate(`location.hash = '#/${screen}'`);
  await page.getByLabel('Model', { exact: true }).selectOption('wordnet');
}

/** What axe finds serious, as sentences. */
async function findBarriers(where: Page): Promise<string[]> {
  await where.evaluate(await readFile(axe, 'utf8'));
  const found = await where.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run();
    return violations;
  });
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help} (${nodes[0].html.slice(0, 200)})`);
}
interface AxeResults {
  violations: { id: string; help: string; impact: string; nodes: { html: string }[] }[];
}

/** Nothing serious in light and in dark, nothing wider than a phone; pictures of all three where they are wanted. */
async function inspect(name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    expect(await findBarriers(page), `${name}, ${colorScheme}`).toEqual([]);
    if (shots) await page.screenshot({ path: join(shots, `${name}-${colorScheme}.png`) });
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 390, height: 800 });
  const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  expect(await page.evaluate(overflow), `${name} on a phone`).toBeLessThanOrEqual(0);
  expect(await findBarriers(page), `${name} on a phone`).toEqual([]);
  if (shots) await page.screenshot({ path: join(shots, `${name}-phone.png`) });
  await page.setViewportSize({ width: 1280, height: 860 });
}

describe('the studio', () => {
  it('suggests labels as one types, says why, and compares two models', async () => {
    await page.getByLabel('Text', { exact: true }).fill(text);
    const answers = page.getByRole('region', { name: 'Labels by wordnet' });
    const [best, second] = await client.suggest('wordnet', text, { top: 2 });
    await answers.getByRole('button').first().waitFor();
    expect(await answers.getByRole('button').first().textContent()).toContain(best.name);
    const why = page.getByRole('region', { name: 'Why' });
    await why.getByText(best.name).waitFor();
    expect(await page.locator('.behind mark').count()).toBeGreaterThan(0);
    await page.getByLabel('Show from').fill('0');
    await answers.getByRole('button').nth(1).click();
    await why.getByText(second.name, { exact: true }).waitFor();
    await why.getByText('The way through the tree').click();
    await page.getByLabel('Compare with').selectOption('bigrams');
    await page.getByRole('region', { name: 'Labels by bigrams' }).getByRole('button').first().waitFor();
    await page.getByLabel('Show from').fill('0.95');
    await answers.getByText('below the threshold').waitFor();
    await page.getByLabel('Show from').fill('0.05');
    await answers.getByText('Calibrate the bars').click();
    await answers.getByLabel('Test file').setInputFiles(at('test.jsonl'));
    await answers.getByText(`such scores were right in ${rows / 10} test texts`).waitFor();
    await inspect('suggest');
  }, 240_000);

  it('finds labels, tells all about one, and excludes it', async () => {
    await visit('labels');
    await page.getByLabel('Search').fill('bird');
    const { labels, found } = await client.labels('wordnet', { search: 'bird' });
    await page.getByText(`${found} label`).waitFor();
    await page.getByRole('button', { name: labels[0].name }).first().click();
    await page.getByRole('region', { name: 'Neighbours' }).getByRole('button').first().waitFor();
    await page.getByRole('region', { name: 'Senses' }).locator('mark').first().waitFor();
    await page.getByText('in the test').waitFor();
    await page.getByRole('button', { name: 'Never suggest it' }).click();
    await page.getByRole('button', { name: 'Suggest it again' }).waitFor();
    expect((await client.label('wordnet', labels[0].id)).excluded).toBe(true);
    await page.getByRole('button', { name: 'Suggest it again' }).click();
    await page.getByRole('button', { name: 'Never suggest it' }).waitFor();
    await inspect('labels');
  }, 240_000);

  it.runIf(hasNetworks)(
    'adds a label to a model that knows labels by name',
    async () => {
      await visit('labels');
      await page.getByText('New labels need training here').waitFor();
      const models = page.getByLabel('Model', { exact: true });
      await models.selectOption('places');
      await page.getByText('Add a label').click();
      await page.getByLabel('Name of the label').fill('violin');
      await page.getByLabel('Examples').fill('a violin\n\nthe violin of 3');
      expect(await findBarriers(page)).toEqual([]);
      await page.getByRole('button', { name: 'Add', exact: true }).click();
      await page.getByRole('heading', { name: 'violin' }).waitFor();
      expect(await client.label('places', 'violin')).toMatchObject({ samples: 2 });
      expect((await client.suggest('places', 'some violin', { top: 1 }))[0].label).toBe('violin');
      await page.getByLabel('Name of the label').fill('violin');
      await page.getByRole('button', { name: 'Add', exact: true }).click();
      await page.getByText('a new label must have an id of its own').waitFor();
      await models.selectOption('wordnet');
    },
    240_000,
  );

  it('draws a map that is searched, zoomed and compared', async () => {
    await visit('map');
    const canvas = page.locator('canvas');
    await canvas.waitFor({ timeout: 150_000 });
    await page.getByRole('searchbox').fill('bird');
    await page.locator('.chip').first().click();
    await page.locator('.chip').nth(1).click();
    await page.getByRole('region', { name: 'Similarities' }).locator('td').first().waitFor();
    await page.getByRole('searchbox').fill('');
    await page.getByRole('button', { name: 'Show the whole map' }).click();
    await page.getByRole('button', { name: 'Zoom in' }).click();
    await canvas.press('-');
    await page.getByRole('button', { name: 'Compare what is to be seen' }).click();
    await page.locator('.heat tbody tr').nth(11).waitFor();
    const box = await canvas.boundingBox();
    const tip = page.locator('.tip');
    for (let i = 1; i < 200 && (await tip.count()) === 0; i++)
      await page.mouse.move((box?.x ?? 0) + 60 + 4 * i, (box?.y ?? 0) + 100 + 2 * i);
    expect(await tip.textContent()).toMatch(/sample/);
    await inspect('map');
  }, 240_000);

  it('goes through groups by keys alone', async () => {
    await visit('groups');
    await page.getByRole('region', { name: 'Labels of the group' }).waitFor();
    const [{ group }] = (await client.groups('pages')).groups;
    const before = await client.group('pages', group);
    await page.keyboard.press('a');
    await page.getByText('accepted').first().waitFor();
    await page.keyboard.press('1');
    await page.getByText('· corrected').or(page.getByText('· accepted').nth(1)).first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('x');
    await page.getByText('nobody').first().waitFor();
    const { labels } = await client.group('pages', group);
    expect(labels[0].correction?.instances).toEqual(before.labels[0].instances);
    expect(labels[2].correction?.instances).toEqual([]);
    await inspect('groups');
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: /^Export/ }).click();
    const saved = await readFile(await (await download).path(), 'utf8');
    expect(saved).toBe(await client.corrections('pages'));
    await page.keyboard.press('n');
    await page.getByRole('heading', { name: group, exact: true }).waitFor({ state: 'detached' });
  }, 240_000);

  it('starts a run from a form, follows it, and serves its model', async () => {
    await visit('runs');
    await page.getByText('No run yet').waitFor();
    for (const learner of ['tree', 'popular']) {
      await page.getByRole('button', { name: 'New run' }).first().click();
      await page.getByLabel('Name', { exact: true }).fill(`${learner} glosses`);
      await page.getByRole('combobox', { name: /^Learner/ }).selectOption(learner);
      if (learner === 'tree') {
        await page.getByText('Options of the input').click();
        await page.getByLabel('text.ngrams').fill('2');
      }
      await page.getByRole('button', { name: 'Start', exact: true }).click();
      const card = page.getByRole('region', { name: `Run ${learner === 'tree' ? 1 : 2}` });
      await card.getByText('done', { exact: true }).waitFor({ timeout: 200_000 });
    }
    const [popular, tree] = await client.runs();
    expect(tree.spec.options).toEqual({ 'text.ngrams': 2 });
    await page.getByRole('region', { name: 'Run 1' }).getByLabel('Compare').check();
    await page.getByRole('region', { name: 'Run 2' }).getByLabel('Compare').check();
    const cell = `${(100 * (tree.result?.report['P@1'] ?? 0)).toFixed(1)}`;
    await page.getByRole('region', { name: 'Metrics of runs' }).getByText(cell).first().waitFor();
    expect(popular.curve).toHaveLength(4);
    await page.getByRole('img', { name: /P@1 over training samples/ }).waitFor();
    await page.getByRole('region', { name: 'Run 1' }).getByRole('button', { name: 'Serve' }).click();
    await page.getByText('served as tree-glosses').waitFor();
    expect((await client.models()).map(({ name }) => name)).toContain('tree-glosses');
    await inspect('runs');
    // One that would take minutes.
    await client.startRun({ data: 'glosses', learner: 'one-vs-rest', options: { iterations: 100_000 } });
    await page.reload();
    const slow = page.getByRole('region', { name: 'Run 3' });
    await slow.getByRole('button', { name: 'Cancel' }).click();
    await slow.getByText('cancelled', { exact: true }).waitFor();
  }, 480_000);

  it('reviews what the model is unsure of, and keeps it', async () => {
    await visit('review');
    await page.getByText('Nothing to review yet').waitFor();
    await page.getByRole('button', { name: 'Find' }).click();
    const card = page.getByRole('region', { name: 'Prediction' });
    await card.waitFor();
    const [first, second] = (await client.review('wordnet')).items;
    await card.getByText(first.text).waitFor();
    await page.keyboard.press('a');
    await card.getByText(`Is this ${second.name}`).waitFor();
    await page.keyboard.press('r');
    await page.getByText('1 accepted, 1 rejected').waitFor();
    await page.keyboard.press('u');
    await page.getByText('1 accepted, 0 rejected').waitFor();
    const decided = async () => (await client.review('wordnet', { show: 'decided' })).items;
    await expect.poll(decided, { timeout: 10_000 }).toMatchObject([{ id: first.id, decision: 'accepted' }]);
    await inspect('review');
  }, 240_000);

  it('moves between screens by keys, and tells which keys there are', async () => {
    await page.locator('h1').click();
    await page.keyboard.press('2');
    await page.getByRole('heading', { name: 'Labels', level: 1 }).waitFor();
    await page.keyboard.press('/');
    expect(await page.evaluate('document.activeElement.type')).toBe('search');
    await page.keyboard.press('Tab');
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('accept (groups, review)').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }, 240_000);

  it('is small, and loads nothing from elsewhere', async () => {
    const own = await open(context);
    const requests: Request[] = [];
    own.on('request', (request) => requests.push(request));
    await own.reload();
    await own.getByLabel('Text', { exact: true }).waitFor();
    expect(requests.map((request) => request.url()).filter((url) => !url.startsWith(server.url))).toEqual([]);
    const assets = requests.filter((request) => request.url().includes('/assets/'));
    expect(assets.length).toBeGreaterThan(1);
    const sizes = await Promise.all(assets.map((request) => request.sizes()));
    expect(sizes.reduce((sum, { responseBodySize }) => sum + responseBodySize, 0)).toBeLessThan(250_000);
    await own.close();
  }, 240_000);

  it('asks for a token where one is needed, and says what to do where nothing is there', async () => {
    const { token, hash } = newToken();
    const guarded = await startServer({
      models: [],
      host: '127.0.0.1',
      port: 0,
      threads: 1,
      limits: parseOptions(limitOptions, { rate: 0 }),
      readTokens: async () => parseTokens(hash, 'tokens'),
      cors: [],
      trustProxy: false,
      log: { level: 'silent', write: () => {} },
    });
    const own = await (await browser.newContext()).newPage();
    await own.goto(guarded.url);
    await own.getByLabel('Token').fill('wrong');
    await own.getByRole('button', { name: 'Enter' }).click();
    await own.getByText('That token is not one of them').waitFor();
    await own.getByLabel('Token').fill(token);
    await own.getByRole('button', { name: 'Enter' }).click();
    const says = {
      suggest: 'No model is served yet',
      groups: 'No groups to look at',
      runs: 'Runs need a place to be kept',
    };
    for (const [screen, words] of Object.entries(says)) {
      await own.evaluate(`location.hash = '#/${screen}'`);
      await own.getByText(words).waitFor();
      expect(await findBarriers(own)).toEqual([]);
    }
    await own.close();
    await guarded.close();
  }, 240_000);
});
