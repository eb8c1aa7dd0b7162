// The server put together: who is let in, how errors leave, what is logged and counted, how it starts and stops. The
// routes themselves are in routes.ts and annif.ts.
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import cors from '@fastify/cors';
import rateLimit from '@fastify/rate-limit';
import swagger from '@fastify/swagger';
import fastify, { type FastifyReply, LogController } from 'fastify';
import { badUsage } from '../errors.ts';
import { registerAnnif } from './annif.ts';
import { isAuthorised } from './auth.ts';
import { type Document, renderDocs } from './docs.ts';
import type { EvidenceFiles } from './groups/evidence.ts';
import { registerGroups } from './groups/routes.ts';
import { openHouse } from './house.ts';
import { registerLabels } from './label-routes.ts';
import type { Limits } from './limits.ts';
import { measured } from './metrics.ts';
import { Problem, renderError } from './problem.ts';
import { registerReview } from './review/routes.ts';
import { type App, registerRoutes } from './routes.ts';
import { registerRuns } from './runs/routes.ts';
import type { NamedFile } from './runs/sources.ts';
import { Health } from './schemas.ts';
import { registerStudio } from './studio.ts';
import { compileValidator, type TypeBoxProvider } from './validate.ts';

const { version } = createRequire(import.meta.url)('../../package.json') as { version: string };

export interface ServeOptions {
  models: { name: string; folder: string }[];
  /** Folder for what must last: runs, uploads, corrections, decisions, excluded labels. */
  state?: string;
  /** Files that runs may train on. */
  data?: NamedFile[];
  /** File with names for the labels of that data. */
  labels?: string;
  /** What EAGLE decided, for people to look at. */
  groups?: EvidenceFiles[];
  host: string;
  port: number;
  /** Per model, and of a run. */
  threads: number;
  limits: Limits;
  /** Hashes of the tokens that are let in, read again on reload; without it everybody is. */
  readTokens?: () => Promise<Buffer[]>;
  /** Origins whose pages may call. */
  cors: string[];
  /** Whether the client's address is the one a proxy tells. */
  trustProxy: boolean;
  log: { level: string; write: (line: string) => void };
}

export interface Server {
  url: string;
  /** Loads all models and the tokens again; throws where one fails, which then stays as it was. */
  reload(): Promise<void>;
  /** Finishes what runs, refuses what is new. */
  close(): Promise<void>;
}

export async function startServer(options: ServeOptions): Promise<Server> {
  const app = makeApp(options);
  const access = { tokens: await options.readTokens?.(), closing: false };
  const onTrouble = (error: unknown) => app.log.error(error, 'a thread had to be replaced');
  const house = await openHouse(options, onTrouble);
  try {
    guard(app, access, options.limits);
    if (options.cors.length > 0) await app.register(cors, { origin: options.cors, maxAge: 600 });
    await limitRate(app, options.limits);
    await app.register(swagger, { openapi: openapi(access.tokens !== undefined) });
    const metrics = measured(app, house.crews);
    await app.register(
      async (scope) => {
        registerRoutes(scope as App, house);
        registerLabels(scope as App, house);
        registerReview(scope as App, house);
        registerGroups(scope as App, house);
        registerRuns(scope as App, house);
      },
      { prefix: '/v1' },
    );
    await app.register(async (scope) => registerAnnif(scope as App, house, version), { prefix: '/v1' });
    registerOwn(app, metrics);
    await registerStudio(app, open);
    await listen(app, options);
  } catch (error) {
    await house.close();
    throw error;
  }
  const { address, family, port } = app.server.address() as AddressInfo;
  const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  return {
    url,
    async reload() {
      access.tokens = await options.readTokens?.();
      const results = await Promise.allSettled(Array.from(house.crews.values(), (crew) => crew.reload()));
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    },
    async close() {
      access.closing = true;
      house.stopWatching();
      await closeConnections(app);
      await house.close();
    },
  };
}

function makeApp({ limits, trustProxy, log }: ServeOptions): App {
  const app = fastify({
    bodyLimit: limits.bodyBytes,
    trustProxy,
    logger: { level: log.level, stream: log },
    // Addresses carry what people search for: what is logged is said below.
    logController: new LogController({ disableRequestLogging: true }),
    exposeHeadRoutes: false,
    return503OnClosing: false,
    // The time to receive a request, streams included.
    requestTimeout: 300_000,
    routerOptions: { maxParamLength: 2000 },
    frameworkErrors: (error, _request, reply: FastifyReply) => {
      const { status, body } = renderError(error);
      reply.code(status).send(body);
    },
    clientErrorHandler: (error, socket) => {
      if (error.code === 'ECONNRESET' || !socket.writable) return socket.destroy();
      const body = JSON.stringify({ error: { code: 'input', message: 'request must be valid HTTP' } });
      const head = 'HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close';
      socket.end(`${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    },
  }).withTypeProvider<TypeBoxProvider>();
  // Who sends plain text means something else.
  app.removeContentTypeParser('text/plain');
  app.setValidatorCompiler(compileValidator);
  // Schemas of answers are documentation; whoever answers has the types.
  app.setSerializerCompiler(() => JSON.stringify);
  app.setErrorHandler((error, request, reply) => {
    const { status, body, ours } = renderError(error);
    if (ours) request.log.error(error);
    if (status === 503) reply.header('retry-after', '1');
    reply.code(status).type('application/json').send(body);
  });
  app.setNotFoundHandler(() => {
    throw new Problem('not-found', 'there is no such route', 'GET /docs lists them');
  });
  app.addHook('onResponse', (request, reply, done) => {
    const { method, routeOptions, params } = request;
    const { model } = (params ?? {}) as { model?: string };
    const ms = Math.round(10 * reply.elapsedTime) / 10;
    request.log.info({ method, route: routeOptions.url, model, status: reply.statusCode, ms }, 'answered');
    done();
  });
  return app;
}

async function listen(app: App, { host, port }: ServeOptions): Promise<void> {
  await app.listen({ host, port }).catch((error: NodeJS.ErrnoException) => {
    if (error.syscall !== 'listen' && error.syscall !== 'getaddrinfo') throw error;
    const hint =
      error.code === 'EADDRINUSE' ? 'another program listens there; --port chooses another' : undefined;
    throw badUsage(`server must be able to listen at ${host}:${port}`, { value: error.code, hint });
  });
}

/** How long clients have to take their last answers. */
const farewellMs = 30_000;

/** Waits for answers under way. Connections that are kept open for a next request are not waited for. */
async function closeConnections(app: App): Promise<void> {
  const idle = setInterval(() => app.server.closeIdleConnections(), 50);
  const late = setTimeout(() => app.server.closeAllConnections(), farewellMs);
  await app.close();
  clearInterval(idle);
  clearTimeout(late);
}

/** On every answer. Pages of our own need nothing from elsewhere; encryption is the business of a proxy. */
const securityHeaders = {
  'content-security-policy': [
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'",
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** Routes that need no token and count for no limit. */
const open = { open: true, rateLimit: false };

/** Refuses whoever comes while the server stops, is one too many, or has no token. */
function guard(app: App, access: { tokens?: Buffer[]; closing: boolean }, limits: Limits): void {
  let inProgress = 0;
  app.addHook('onRequest', (request, reply, done) => {
    const config = request.routeOptions.config as { open?: boolean };
    reply.headers(securityHeaders);
    reply.raw.once('close', () => inProgress--);
    if (++inProgress > limits.requests && !config.open) {
      const rule = `at most ${limits.requests} requests may be in progress`;
      return done(new Problem('overloaded', rule, 'try again later'));
    }
    if (access.closing) {
      reply.header('connection', 'close');
      return done(new Problem('unavailable', 'server is shutting down'));
    }
    done();
  });
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const config = request.routeOptions.config as { open?: boolean };
    if (!access.tokens || config.open || isAuthorised(request.headers.authorization, access.tokens))
      return done();
    reply.header('www-authenticate', 'Bearer');
    done(new Problem('unauthorised', 'a valid token must be sent', 'send it as Authorization: Bearer TOKEN'));
  });
}

async function limitRate(app: App, { rate }: Limits): Promise<void> {
  if (rate === 0) return;
  await app.register(rateLimit, {
    max: rate,
    timeWindow: 60_000,
    errorResponseBuilder: () =>
      new Problem('rate-limit', `a client may send at most ${rate} requests per minute`, 'try again later'),
  });
}

const openapi = (withTokens: boolean) => ({
  openapi: '3.1.0',
  info: { title: 'umbel', version, description: 'Text in, labels out of thousands or millions.' },
  ...(withTokens && {
    components: { securitySchemes: { token: { type: 'http' as const, scheme: 'bearer' } } },
    security: [{ token: [] }],
  }),
});

function registerOwn(app: App, metrics: () => Promise<{ type: string; text: string }>): void {
  const schema = (summary: string, answer?: object) => ({
    tags: ['server'],
    summary,
    ...(answer && { response: { 200: answer } }),
  });
  app.get('/health', { config: open, schema: schema('Whether the server runs', Health) }, async () => ({
    status: 'ok',
  }));
  app.get('/ready', { config: open, schema: schema('Whether it takes requests', Health) }, async () => ({
    status: 'ready',
  }));
  app.get('/metrics', { schema: schema('Figures for Prometheus') }, async (_request, reply) => {
    const { type, text } = await metrics();
    return reply.type(type).send(text);
  });
  app.get('/openapi.json', { config: open, schema: { hide: true } }, async () => app.swagger());
  app.get('/docs', { config: open, schema: { hide: true } }, async (_request, reply) =>
    reply.type('text/html; charset=utf-8').send(renderDocs(app.swagger() as Document)),
  );
}
