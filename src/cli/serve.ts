// umbel serve: models over HTTP until it is stopped. The server and its packages are loaded only here.
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { badUsage } from '../errors.ts';
import { newToken, parseTokens } from '../server/auth.ts';
import { limitOptions } from '../server/limits.ts';
import {
  type CommonFlags,
  optionFlags,
  positiveInteger,
  type Terminal,
  verb,
  withOptionFlags,
} from './run.ts';
import { color } from './terminal.ts';

interface ServeFlags extends CommonFlags {
  model?: string[];
  port: number;
  host: string;
  tokens?: string;
  newToken?: boolean;
  cors: string[];
  trustProxy?: boolean;
  log: string;
}

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'];

export function registerServe(program: Command): void {
  const collect = (value: string, earlier: string[] = []) => [...earlier, value];
  const command = program
    .command('serve')
    .description('answer over HTTP: suggestions, explanations, labels, evaluations')
    .option('--model <folder>', 'a trained model, as FOLDER or name=FOLDER; repeatable', collect)
    .option('--port <n>', 'port to listen at; 0 for any that is free', portNumber, 8080)
    .option('--host <address>', 'address to listen at; 0.0.0.0 for all', '127.0.0.1')
    .option('--tokens <file>', 'let in only who sends a token; the file has the SHA-256 hash of one per line')
    .option('--new-token', 'print a new token and its line for that file, and end')
    .option(
      '--cors <origin>',
      'let pages from this origin call, such as https://example.org; repeatable',
      collect,
      [],
    )
    .option('--trust-proxy', 'believe X-Forwarded-For: behind a proxy, clients are told apart by it')
    .addOption(
      new Option('--threads <n>', 'threads per model')
        .default(Math.max(1, availableParallelism() - 1), 'one less than there are cores')
        .argParser(positiveInteger('threads')),
    )
    .addOption(new Option('--log <level>', 'what is logged on stderr').choices(logLevels).default('info'))
    .option('--json', 'print one machine-readable object on stdout');
  withOptionFlags(command, limitOptions)
    .addHelpText(
      'after',
      `
Examples:
  umbel serve --model model
  umbel serve --model titles=models/titles --model abstracts=models/abstracts --port 9000
  umbel serve --new-token

GET /docs lists the routes. SIGHUP loads the models and tokens again without dropping a request.`,
    )
    .action(verb(serve));
}

function portNumber(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= 0 && value <= 65535) return value;
  throw badUsage('--port must be an integer from 0 to 65535', { value: text });
}

async function serve(terminal: Terminal, flags: ServeFlags) {
  if (flags.newToken) return printToken(terminal);
  const { tokens, host, port, threads, cors } = flags;
  const models = parseModels(flags.model ?? []);
  const { startServer } = await import('../server/app.ts');
  const server = await startServer({
    models,
    host,
    port,
    threads,
    cors,
    limits: optionFlags(limitOptions, flags),
    readTokens: tokens === undefined ? undefined : () => readTokens(tokens),
    trustProxy: flags.trustProxy ?? false,
    log: { level: flags.log, write: bufferedLog() },
  });
  if (!tokens && !['127.0.0.1', '::1', 'localhost'].includes(host)) {
    terminal.note(`anybody who reaches ${host} may ask: --tokens lets in only who has one`);
  }
  const names = models.map(({ name }) => color.bold(name)).join(', ');
  terminal.say(
    `Serving ${names} at ${color.bold(server.url)}; ${server.url}/docs lists the routes. Ctrl-C ends.`,
  );
  const hangUp = () => {
    server.reload().then(
      () => terminal.note('loaded again'),
      (error: Error) => terminal.note(`not loaded again: ${error.message}`),
    );
  };
  process.on('SIGHUP', hangUp);
  await new Promise<void>((stop) => terminal.signal.addEventListener('abort', () => stop()));
  await server.close();
  process.off('SIGHUP', hangUp);
  return { url: server.url, models: models.map(({ name }) => name) };
}

function printToken({ say }: Terminal) {
  const { token, hash } = newToken();
  say(`Token, for the client:          ${color.bold(token)}`);
  say(`Its line for the tokens file:   ${hash}`);
  return { token, hash };
}

async function readTokens(file: string): Promise<Buffer[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw badUsage('tokens file must exist and be readable', { file, value: error.code });
  });
  return parseTokens(text, file);
}

/** `titles=models/titles`, or a folder that gives its own name. */
function parseModels(given: string[]): { name: string; folder: string }[] {
  if (given.length === 0)
    throw badUsage('--model must be given', { hint: 'the folder given to train --out' });
  const models = given.map((text) => {
    const [, name, folder] = /^([\w.-]+)=(.+)$/.exec(text) ?? [];
    return name ? { name, folder } : { name: basename(resolve(text)), folder: text };
  });
  const names = new Set<string>();
  for (const { name } of models) {
    if (names.has(name))
      throw badUsage('models must have different names', { value: name, hint: 'name=FOLDER' });
    names.add(name);
  }
  return models;
}

/** Lines of one turn of the event loop in one write. */
function bufferedLog(): (line: string) => void {
  let lines = '';
  return (line) => {
    if (lines === '') {
      setImmediate(() => {
        process.stderr.write(lines);
        lines = '';
      });
    }
    lines += line;
  };
}
