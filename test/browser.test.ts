// Saved models in a page: headless Chromium loads them over HTTP from the built files, and must say what Node says.
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type * as Umbel from '../src/browser.ts';
import type { Dataset } from '../src/data/dataset.ts';
import { Vocabulary } from '../src/data/vocabulary.ts';
import { Classifier } from '../src/learn/classifier.ts';
import { CsrBuilder } from '../src/math/csr.ts';
import { Random } from '../src/math/random.ts';
import { loadModel, saveModel } from '../src/store/folder.ts';
import { launchChromium, skipReason } from './chromium.ts';

/** In pages: what `open` loads there. */
declare const umbel: typeof Umbel;

const root = join(import.meta.dirname, '..');
const labelCount = 120;

/** Texts drawn from words of their labels; words of more than one script, and word forms for the stemmer. */
function planted(rows: number): Dataset & { texts: string[] } {
  const random = new Random(3, 'browser');
  const labels = new CsrBuilder('binary');
  const texts = Array.from({ length: rows }, () => {
    const own = [...new Set([random.integer(labelCount), random.integer(labelCount)])].sort((a, b) => a - b);
    labels.add(own);
    const words = own.flatMap((label) => [`Größe${label}`, `word${label}ing`, `речь${label % 7}`, '日本語']);
    return `${words.join(' ')} common${random.integer(3)}`;
  });
  return { rows, texts, labels: labels.pattern(labelCount), vocabulary: Vocabulary.numbered(labelCount) };
}

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);

const deep = { flatSize: 2, leafSize: 6, branching: 3 };
const models = {
  tree: { learner: 'tree', options: deep },
  'several-trees': { learner: 'tree', options: { ...deep, preset: 'parabel', 'text.charMax': 4 } },
  'one-vs-rest': { learner: 'one-vs-rest', options: { 'text.ngrams': 2 } },
  popular: { learner: 'popular' },
  ...(runtime && {
    gmvae: { learner: 'gmvae', options: { embedding: 32, latent: 8, epochs: 3, dropout: 0.1 } },
  }),
  stemmed: { learner: 'one-vs-rest', options: { 'text.stem': 'english' } },
};
const inEveryPage = Object.keys(models).filter((name) => name !== 'stemmed' && name !== 'gmvae');

const dataset = planted(240);
const texts = [...dataset.texts.slice(0, 47), '', 'nothing known', 'ΣΊΣΥΦΟΣ word3ing \u{1f33c}'];

const html = (head: string) => `<!doctype html><title>test</title>${head}`;
const imports = {
  'snowball-stemmers': '/stemmers.js',
  'onnxruntime-web': '/node_modules/onnxruntime-web/dist/ort.wasm.min.mjs',
};
const importMap = `<script type="importmap">${JSON.stringify({ imports })}</script>`;
const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};
const types: Record<string, string> = {
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.html': 'text/html; charset=utf-8',
};

let folder: string;
let server: Server;
let origin: string;
let browser: Browser;
/** A page as any server gives it: no import map, not isolated. */
let plain: Page;

/** As plain as servers come: it knows no type for .wasm and sends no headers of its own, except where isolated. */
async function answer(path: string): Promise<{ body: string | Uint8Array; type: string; headers?: object }> {
  const type = types[extname(path)] ?? 'application/octet-stream';
  if (path === '/plain') return { body: html(''), type: types['.html'] };
  if (path === '/isolated') return { body: html(''), type: types['.html'], headers: isolation };
  if (path === '/mapped') return { body: html(importMap), type: types['.html'] };
  if (path === '/stemmers.js') {
    const script = join(root, 'node_modules', 'snowball-stemmers', 'snowball-stemmers.js');
    const body = `const exports = {};\n${await readFile(script, 'utf8')}\nexport const { newStemmer } = exports;`;
    return { body, type };
  }
  const file = path.startsWith('/models/') ? join(folder, path.slice('/models/'.length)) : join(root, path);
  return { body: await readFile(file), type };
}

beforeAll(async () => {
  // The summary of a run counts skipped tests and does not say why.
  if (skipReason) return console.warn(`skipped: ${skipReason}`);
  folder = await mkdtemp(join(tmpdir(), 'umbel-browser-'));
  for (const [name, how] of Object.entries(models))
    await saveModel(await Classifier.train(dataset, how), join(folder, name));
  server = createServer((request, response) => {
    answer(new URL(request.url ?? '/', 'http://test').pathname).then(
      ({ body, type, headers }) => response.writeHead(200, { 'Content-Type': type, ...headers }).end(body),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  browser = await launchChromium();
  plain = await open('/plain');
}, 60_000);
afterAll(async () => {
  if (skipReason) return;
  await browser?.close();
  await new Promise((resolve) => server?.close(resolve));
  await rm(folder, { recursive: true, force: true });
});
beforeEach((context) => {
  if (skipReason) context.skip(skipReason);
});

async function open(path: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(origin + path);
  // A string, or the test runner would make the import its own.
  await page.evaluate(`import('/dist/browser.js').then((module) => { window.umbel = module; })`);
  return page;
}

const suggestInPage = (page: Page, name: string) =>
  page.evaluate(
    async ([address, inputs]) => {
      const model = await umbel.openModel(umbel.webSource(address));
      return model.suggest(inputs, { top: 5, threads: 4 });
    },
    [`/models/${name}`, texts] as const,
  );

/** The error that opening a model ends with. */
const failureInPage = (page: Page, address: string) =>
  page.evaluate(async (given) => {
    const error = await umbel.openModel(umbel.webSource(given)).catch((reason: unknown) => reason);
    if (!(error instanceof umbel.UmbelError)) throw error;
    return { code: error.code, rule: error.rule, message: error.message };
  }, address);

async function expectSameAsNode(page: Page, name: string): Promise<void> {
  const [here, there] = [
    await (await loadModel(join(folder, name))).suggest(texts, { top: 5 }),
    await suggestInPage(page, name),
  ];
  const labels = (answers: Umbel.Suggestion[][]) => answers.map((row) => row.map(({ label }) => label));
  expect(labels(there)).toEqual(labels(here));
  expect(labels(here).flat().length).toBeGreaterThan(100);
  const scores = here.flat().map(({ score }) => score);
  there.flat().forEach(({ score }, i) => {
    expect(Math.abs(score - scores[i])).toBeLessThan(1e-6);
  });
}

/** Engines may differ in the last digit of an exponential. */
const rounded = (value: object): object =>
  JSON.parse(
    JSON.stringify(value, (_, part) => (typeof part === 'number' ? Number(part.toPrecision(12)) : part)),
  );

describe('a page', () => {
  it('suggests the same labels with the same scores as Node', async () => {
    expect(await plain.evaluate(() => crossOriginIsolated)).toBe(false);
    expect(existsSync(join(folder, 'tree', 'model-tree-1-level-5.safetensors'))).toBe(true);
    for (const name of inEveryPage) await expectSameAsNode(plain, name);
  });

  it('does so too where it is cross-origin isolated', async () => {
    const page = await open('/isolated');
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
    for (const name of inEveryPage) await expectSameAsNode(page, name);
  });

  it.each(['tree', 'one-vs-rest'])('explains a label of %s as Node does', async (name) => {
    const here = await loadModel(join(folder, name));
    const [[{ label }]] = await here.suggest([texts[0]]);
    const there = await plain.evaluate(
      async ([address, text, id]) => {
        const model = await umbel.openModel(umbel.webSource(address));
        return { explanation: await model.explain([text], id), spans: model.spans(text) };
      },
      [`/models/${name}`, texts[0], label] as const,
    );
    const explanation = await here.explain([texts[0]], label);
    expect(explanation?.steps.length).toBe(name === 'tree' ? 5 : 1);
    expect(rounded(there)).toEqual(rounded({ explanation, spans: here.spans(texts[0]) }));
  });

  it('refuses a damaged model as Node does', async () => {
    const damaged = join(folder, 'damaged');
    await cp(join(folder, 'tree'), damaged, { recursive: true });
    const expectSameFailure = async (rule: RegExp) => {
      const error = await loadModel(damaged).catch((reason: Umbel.UmbelError) => reason);
      expect(error).toMatchObject({ code: 'model', rule: expect.stringMatching(rule) });
      const { code, rule: said } = error as Umbel.UmbelError;
      expect(await failureInPage(plain, '/models/damaged')).toMatchObject({ code, rule: said });
    };
    const file = join(damaged, 'model-tree-1-level-2.safetensors');
    const whole = await readFile(file);
    await writeFile(file, whole.with(whole.length - 1, whole[whole.length - 1] ^ 1));
    await expectSameFailure(/^part must match its checksum/);
    await truncate(file, whole.length - 1);
    await expectSameFailure(/^part must have \d+ bytes/);
    await truncate(join(damaged, 'model.json'), 100);
    await expectSameFailure(/^model.json must be valid JSON/);
  });

  it('says which file is not served, or that no server answers', async () => {
    const { message } = await failureInPage(plain, '/models/missing');
    expect(message).toBe('/models/missing/model.json: file must be served, got 404');
    const { message: unreachable } = await failureInPage(plain, 'http://127.0.0.1:1/model');
    expect(unreachable).toMatch(/^http:\/\/127\.0\.0\.1:1\/model\/model\.json: file must be served, got "/);
  });

  it('stems where an import map names the stemmers, and otherwise says that it is needed', async () => {
    await expectSameAsNode(await open('/mapped'), 'stemmed');
    const failure = await failureInPage(plain, '/models/stemmed');
    expect(failure).toMatchObject({
      code: 'missing-package',
      message: expect.stringMatching(/snowball-stemmers.*import map/),
    });
  });

  it.runIf(runtime)(
    'computes networks where an import map names the runtime, and otherwise says that it is needed',
    async () => {
      await expectSameAsNode(await open('/mapped'), 'gmvae');
      const failure = await plain.evaluate(async () => {
        const model = await umbel.openModel(umbel.webSource('/models/gmvae'));
        const error = await model.suggest(['text']).catch((reason: unknown) => reason);
        return error instanceof umbel.UmbelError
          ? { code: error.code, message: error.message }
          : String(error);
      });
      expect(failure).toMatchObject({
        code: 'missing-package',
        message: expect.stringMatching(/onnxruntime-web.*import map/),
      });
    },
  );

  it('of the examples suggests labels while one types', async () => {
    const page = await browser.newPage();
    await page.goto(`${origin}/examples/browser.html?model=/models/tree`);
    const [[first]] = await (await loadModel(join(folder, 'tree'))).suggest([texts[0]]);
    await page.getByLabel('Text').fill(texts[0]);
    const best = page.getByRole('listitem').first();
    await best.waitFor();
    expect(await best.textContent()).toBe(`${first.name}${first.score.toFixed(2)}`);
    await page.goto(`${origin}/examples/browser.html?model=/models/missing`);
    await page.getByText('file must be served, got 404').waitFor();
  });
});
