// What every verb shares: its flags, progress, cancelling by Ctrl-C, errors as one sentence, exit codes, --json.
import { availableParallelism } from 'node:os';
import { type Command, Option } from 'commander';
import { parseColumns } from '../data/columns.ts';
import type { ReadOptions } from '../data/format.ts';
import { formatNames } from '../data/formats.ts';
import { Skipped } from '../data/skipped.ts';
import { badUsage, UmbelError } from '../errors.ts';
import { type OptionsOf, type OptionTable, parseOptions } from '../options.ts';
import type { Context } from '../progress.ts';
import { color, ProgressBar } from './terminal.ts';

export interface CommonFlags {
  json?: boolean;
  seed: number;
  threads: number;
}

export interface ReadFlags {
  format?: string;
  columns?: string;
  labelDelimiter?: string;
  skipBad?: boolean;
}

/** What a verb is given: context for long work, and where its words go. */
export interface Terminal extends Context {
  signal: AbortSignal;
  /** For people; silent under --json. */
  say(text: string): void;
  /** For people and logs; always on stderr. */
  note(text: string): void;
  /** What --skip-bad left out and nobody has said yet. */
  unsaid: Set<Skipped>;
}

export const positiveInteger = (name: string) => (text: string) => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw badUsage(`--${name} must be a positive integer`, { value: text });
  return value;
};

export const fraction = (name: string) => (text: string) => {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= 1)) {
    throw badUsage(`--${name} must be between 0 and 1`, { value: text });
  }
  return value;
};

/** For what is given once: a second value would silently replace the first. */
export const once = (name: string) => (text: string, earlier: string | undefined) => {
  if (earlier !== undefined) throw badUsage(`--${name} must be given once`, { value: text });
  return text;
};

/** For `--set`: one option after the other. */
export function collectSetting(text: string, settings: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf('=');
  if (at < 1) throw badUsage('--set must have the form option=value', { value: text });
  return { ...settings, [text.slice(0, at)]: text.slice(at + 1) };
}

const wholeNumber = (name: string) => (text: string) => {
  const value = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(value))
    throw badUsage(`--${name} must be an integer`, { value: text });
  return value;
};

export function withCommonFlags(command: Command): Command {
  return command
    .option('--json', 'print one machine-readable object on stdout')
    .addOption(
      new Option('--seed <n>', 'the same seed gives the same result')
        .default(1)
        .argParser(wholeNumber('seed')),
    )
    .addOption(
      new Option('--threads <n>', 'worker threads')
        .default(availableParallelism(), 'all cores')
        .argParser(positiveInteger('threads')),
    );
}

export const withReadFlags = (command: Command): Command =>
  withFormatFlags(command).option('--skip-bad', 'leave out bad records, and say how many and why');

export function withFormatFlags(command: Command): Command {
  return command
    .option('--format <name>', `format of the input: ${formatNames.join(', ')} (default: by extension)`)
    .option(
      '--columns <map>',
      'columns of a table, by name or position: id=1,text=title+body,labels=tags; labels=A..B for columns of 0 and 1, ' +
        'labels= for none',
    )
    .option('--label-delimiter <text>', 'between the labels of one cell (default: ",")');
}

const flagName = (option: string) => option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** One flag for every option of a table; its help and default are the table's. */
export function withOptionFlags(command: Command, table: OptionTable): Command {
  for (const [name, option] of Object.entries(table)) {
    const help = option.kind === 'choice' ? `${option.help} (${option.choices.join(' | ')})` : option.help;
    const value = option.kind === 'flag' ? '[value]' : '<value>';
    command.option(`--${flagName(name)} ${value}`, `${help} (default: ${option.default})`);
  }
  return command;
}

/** Those of the flags that are options of the table. */
export const flagsOf = (table: OptionTable, flags: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(flags).filter(([name]) => Object.hasOwn(table, name)));

/** Their values, checked. */
export const optionFlags = <T extends OptionTable>(table: T, flags: object): OptionsOf<T> =>
  parseOptions(table, flagsOf(table, flags));

/** Flags that mean nothing without another one. */
export function refuseAlone<T extends string>(
  flags: { [name in T]?: unknown },
  other: string,
  names: readonly T[],
): void {
  for (const name of names)
    if (flags[name] !== undefined)
      throw badUsage(`--${name} must come with ${other}`, { value: flags[name] });
}

/** Turns the reading flags into what readers take. */
export function readOptions(flags: ReadFlags, terminal: Terminal): ReadOptions & { format?: string } {
  const skipped = flags.skipBad ? new Skipped() : undefined;
  if (skipped) terminal.unsaid.add(skipped);
  return {
    format: flags.format,
    columns: flags.columns === undefined ? undefined : parseColumns(flags.columns),
    labelDelimiter: flags.labelDelimiter,
    skipped,
    note: terminal.note,
    progress: terminal.progress,
    signal: terminal.signal,
  };
}

/** Says what --skip-bad left out. */
export function reportSkipped({ skipped }: Pick<ReadOptions, 'skipped'>, terminal: Terminal): void {
  if (!skipped?.count) return;
  terminal.unsaid.delete(skipped);
  const more = skipped.count > skipped.first.length ? ['...'] : [];
  const reasons = [...skipped.first, ...more].map((reason) => `  ${reason}`);
  terminal.note(
    `left out ${skipped.count} bad record${skipped.count === 1 ? '' : 's'}:\n${reasons.join('\n')}`,
  );
}

/** Wraps a verb: its result is printed by --json, its errors become one line and an exit code. */
export function verb<Args extends unknown[], Flags extends CommonFlags>(
  action: (terminal: Terminal, flags: Flags, ...args: Args) => Promise<unknown>,
) {
  return async (...given: unknown[]): Promise<void> => {
    const flags = given.at(-2) as Flags;
    const args = given.slice(0, -2) as Args;
    const bar = new ProgressBar();
    const cancel = new AbortController();
    const interrupt = () => {
      if (!cancel.signal.aborted) return cancel.abort();
      // A second Ctrl-C means it.
      bar.clear();
      process.exit(130);
    };
    process.on('SIGINT', interrupt);
    process.on('SIGTERM', interrupt);
    const write = (stream: NodeJS.WriteStream) => (text: string) => {
      bar.clear();
      stream.write(`${text}\n`);
    };
    const terminal: Terminal = {
      seed: flags.seed,
      threads: flags.threads,
      progress: bar.show,
      signal: cancel.signal,
      say: flags.json ? () => {} : write(process.stdout),
      note: write(process.stderr),
      unsaid: new Set(),
    };
    try {
      const result = await action(terminal, flags, ...args);
      bar.clear();
      if (flags.json) process.stdout.write(`${JSON.stringify(result)}\n`);
    } catch (error) {
      bar.clear();
      // What was left out may be why the rest is no use.
      for (const skipped of terminal.unsaid) reportSkipped({ skipped }, terminal);
      fail(error, flags.json);
    } finally {
      process.off('SIGINT', interrupt);
      process.off('SIGTERM', interrupt);
    }
  };
}

/** One line for a user's mistake, a stack trace for ours. */
export function fail(error: unknown, json?: boolean): void {
  if (!(error instanceof UmbelError)) {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exitCode = 1;
    return;
  }
  if (json) process.stdout.write(`${JSON.stringify(error)}\n`);
  process.stderr.write(`${color.red('error:')} ${error.message}\n`);
  const exitCodes = { usage: 2, input: 2, model: 1, 'missing-package': 1, 'too-large': 1, cancelled: 130 };
  process.exitCode = exitCodes[error.code];
}
