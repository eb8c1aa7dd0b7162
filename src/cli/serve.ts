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
  type ReadFlags,
  refuseAlone,
  type Terminal,
  verb,
  withFormatFlags,
  withOptionFlags,
} from './run.ts';
import { color } from './terminal.ts';

interface ServeFlags extends CommonFlags, ReadFlags {
  model?: string[];
  state?: string;
  data: string[];
  groups: string[];
  groupColumns?: string;
  labels?: string;
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
    .description('answer over HTTP, with a page to look at models, train them and review what they say')
    .option('--model <folder>', 'a trained model, as FOLDER or name=FOLDER; repeatable', collect)
    .option('--state <folder>', 'keep runs, uploads, corrections and decisions here')
    .option('--data <file>', 'data that runs may train on, as FILE or name=FILE; repeatable', collect, [])
    .option('--labels <file>', 'names for the labels of that data')
    .option(
      '--groups <files>',
      'what EAGLE decided, as name=INSTANCES,GROUPS,EVIDENCE: files of umbel impute; repeatable',
      collect,
      [],
    )
    .option(
      '--group-columns <map>',
      'columns of those instances, where umbel did not write them: id=1,text=2',
    )
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
  withFormatFlags(withOptionFlags(command, limitOptions))
    .addHelpText(
      'after',
      `
Examples:
  umbel serve --model model
  umbel serve --model titles=models/titles --model abstracts=models/abstracts --port 9000
  umbel serve --model model --state state --data titles=titles.csv --columns text=title,labels=subjects
  umbel serve --new-token

The studio is at /, GET /docs lists the routes. SIGHUP loads the models and tokens again without dropping a request.`,
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
  const models = (flags.model ?? []).map((text) => parseNamed(text));
  const data = flags.data.map((text) => {
    const { name, place } = parseNamed(text);
    return { name, file: place, ...reading(flags) };
  });
  if (models.length + data.length === 0 && flags.state === undefined)
    throw badUsage('--model must be given', { hint: 'the folder given to train --out' });
  refuseAlone(flags, '--groups', flags.groups.length > 0 ? [] : ['groupColumns']);
  const groups = flags.groups.map((text) => ({
    ...parseGroups(text),
    ...reading(flags),
    columns: flags.groupColumns,
  }));
  refuseSameNames('groups', groups);
  refuseSameNames('models', models);
  refuseSameNames('data', data);
  const { startServer } = await import('../server/app.ts');
  const server = await startServer({
    models: models.map(({ name, place }) => ({ name, folder: place })),
    state: flags.state,
    data,
    labels: flags.labels,
    groups,
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
    `Serving ${names || 'no model yet'} at ${color.bold(server.url)}; ${server.url}/docs lists the routes. Ctrl-C ends.`,
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

/** `titles=models/titles`, or a path that gives its own name. */
function parseNamed(text: string): { name: string; place: string } {
  const [, name, place] = /^([\w.-]+)=(.+)$/.exec(text) ?? [];
  return name ? { name, place } : { name: basename(resolve(text)), place: text };
}

function parseGroups(text: string) {
  const [, name, files] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  const [instances, groups, evidence, more] = (files ?? '').split(',');
  if (!evidence || more !== undefined)
    throw badUsage('--groups must have the form name=INSTANCES,GROUPS,EVIDENCE', { value: text });
  if (/^[\w.-]+$/.test(name)) return { name, instances, groups, evidence };
  throw badUsage('the name of groups must be of letters, digits, dots, dashes and underscores', {
    value: name,
  });
}

const reading = ({ format, columns, labelDelimiter }: ReadFlags) => ({ format, columns, labelDelimiter });

function refuseSameNames(what: string, named: { name: string }[]): void {
  const names = new Set<string>();
  for (const { name } of named) {
    if (names.has(name))
      throw badUsage(`${what} must have different names`, { value: name, hint: 'name=PATH' });
    names.add(name);
  }
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
