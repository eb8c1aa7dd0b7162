// The studio's files, read into memory when the server starts: a request chooses among them by exact name, so that no
// path of a request reaches the disk.
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { builtFile } from '../kernels/pool.ts';
import type { App } from './routes.ts';

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Stricter than that of other answers: no inline styles. */
const contentPolicy = [
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'",
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
].join('; ');

export async function registerStudio(app: App, config: object): Promise<void> {
  const folder = fileURLToPath(new URL('../studio/', builtFile(import.meta.url)));
  const files = await readdir(folder, { recursive: true }).catch((): string[] => []);
  for (const file of files.filter((name) => extname(name) in types)) {
    const body = await readFile(join(folder, file));
    const zipped = gzipSync(body);
    const name = file.replaceAll('\\', '/');
    // Names of assets change with their content.
    const cache = name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache';
    const headers = {
      'content-type': types[extname(file)],
      'content-security-policy': contentPolicy,
      'cache-control': cache,
      vary: 'accept-encoding',
    };
    const address = name === 'index.html' ? '/' : `/${name}`;
    app.get(address, { config, schema: { hide: true } }, async (request, reply) => {
      const takesGzip = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
      reply.headers(headers);
      if (takesGzip) reply.header('content-encoding', 'gzip');
      return reply.send(takesGzip ? zipped : body);
    });
  }
}
