// Suggestions for a stream: JSON lines in, JSON lines out, in the same order. A few messages are on their way at a time:
// whoever reads slowly is read from slowly.
import { setTimeout as pause } from 'node:timers/promises';
import { Compile } from 'typebox/compile';
import { badInput, locate } from '../errors.ts';
import type { Crew } from './crew.ts';
import { Problem, renderError } from './problem.ts';
import { Input } from './schemas.ts';
import { explainMismatch } from './validate.ts';

const linesAtOnce = 64;
const groupsAhead = 4;

interface StreamOptions {
  top: number;
  threshold: number;
  /** Longest line, in bytes. */
  lineBytes: number;
  /** How long a full queue is waited for. */
  seconds: number;
}

/** Lines of the answer; a bad line is answered by its error, and the stream goes on. */
export async function* suggestLines(
  source: AsyncIterable<Buffer>,
  crew: Crew,
  options: StreamOptions,
): AsyncGenerator<string> {
  const pending: Promise<string>[] = [];
  try {
    for await (const group of groups(source, options.lineBytes)) {
      const answered = answerGroup(group, crew, options);
      // Looked at later, but it must never count as unhandled.
      answered.catch(() => {});
      pending.push(answered);
      if (pending.length >= groupsAhead) yield (await pending.shift()) ?? '';
    }
    for (const answered of pending) yield await answered;
  } catch (error) {
    // The status has been sent: the last line tells that this is not the end.
    yield `${JSON.stringify(renderError(error).body)}\n`;
  }
}

interface Line {
  number: number;
  /** Undefined where it was too long. */
  text: string | undefined;
}

async function answerGroup(lines: Line[], crew: Crew, options: StreamOptions): Promise<string> {
  const parsed = lines.map((line) => parse(line, options));
  const inputs = parsed.flatMap((line) => ('input' in line ? [line.input] : []));
  const answers = inputs.length ? await suggestOrEach(inputs, crew, options) : [];
  let at = 0;
  return parsed
    .map((line) => {
      const answer = 'input' in line ? answers[at++] : line.error;
      if (typeof answer === 'string') return `${answer}\n`;
      const { error } = renderError(answer).body;
      const id = 'input' in line ? line.input.id : undefined;
      return `${JSON.stringify({ id, line: line.number, error })}\n`;
    })
    .join('');
}

/** Together where all are good, else one by one: each gets its answer or its error. */
async function suggestOrEach(inputs: Input[], crew: Crew, options: StreamOptions): Promise<unknown[]> {
  try {
    return await patiently(() => crew.suggest(inputs, options), options);
  } catch (error) {
    if (renderError(error).status !== 400) throw error;
    const each = inputs.map((input) =>
      patiently(() => crew.suggest([input], options), options).then(
        ([answer]) => answer,
        (own: unknown) => own,
      ),
    );
    return Promise.all(each);
  }
}

/** A stream waits while the queue is full: it has been let in already. */
async function patiently<T>(action: () => Promise<T>, { seconds }: StreamOptions): Promise<T> {
  const end = performance.now() + 1000 * seconds;
  for (;;) {
    try {
      return await action();
    } catch (error) {
      const full = error instanceof Problem && error.code === 'overloaded';
      if (!full || performance.now() > end) throw error;
      await pause(20);
    }
  }
}

const checkInput = Compile(Input);

type Parsed = { number: number } & ({ input: Input } | { error: unknown });

function parse({ number, text }: Line, { lineBytes }: StreamOptions): Parsed {
  try {
    if (text === undefined) throw badInput(`a line must have at most ${lineBytes} bytes`);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      throw badInput(`line must be valid JSON: ${(error as Error).message}`);
    }
    if (!checkInput.Check(value)) throw explainMismatch(checkInput, value, 'line');
    return { number, input: value };
  } catch (error) {
    return { number, error: locate(error, { line: number }) };
  }
}

async function* groups(source: AsyncIterable<Buffer>, lineBytes: number): AsyncGenerator<Line[]> {
  let [group, bytes]: [Line[], number] = [[], 0];
  for await (const line of splitLines(source, lineBytes)) {
    if (line.text?.trim() === '') continue;
    group.push(line);
    bytes += line.text?.length ?? 0;
    if (group.length < linesAtOnce && bytes < lineBytes) continue;
    yield group;
    [group, bytes] = [[], 0];
  }
  if (group.length) yield group;
}

async function* splitLines(source: AsyncIterable<Buffer>, lineBytes: number): AsyncGenerator<Line> {
  let number = 0;
  let pieces: Buffer[] = [];
  let bytes = 0;
  const finish = (): Line => {
    const text = bytes > lineBytes ? undefined : Buffer.concat(pieces).toString('utf8');
    [pieces, bytes] = [[], 0];
    return { number: ++number, text };
  };
  const add = (piece: Buffer) => {
    bytes += piece.length;
    // The rest of a line that is too long is not kept.
    if (bytes <= lineBytes) pieces.push(piece);
  };
  for await (const chunk of source) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      add(chunk.subarray(start, end));
      yield finish();
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  if (bytes > 0) yield finish();
}
