// What people see: progress with rate and time left, tables, numbers. Progress goes to stderr, results to stdout.
import picocolors from 'picocolors';
import type { Progress, Step } from '../progress.ts';

/** Colours for people only: a pipe, a file or a log of a build server gets plain text. */
export const color = picocolors.createColors(process.stdout.isTTY === true && picocolors.isColorSupported);

const count = new Intl.NumberFormat('en-US');
export const formatCount = (n: number): string => count.format(n);
export const formatPercent = (fraction: number): string => (100 * fraction).toFixed(2);

export function formatBytes(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(bytes, 1)) / 3)));
  return `${(bytes / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

export function formatSeconds(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

const width = (text: string) => text.replaceAll(ansi, '').length;

/** How many characters a line of results may have; no end unless people read them on a terminal. */
const lineWidth = () => (process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY);

/**
 * Columns padded to their widest cell; cells that are numbers in every row are set right. Where the line is too short
 * for all of it, the last column is wrapped.
 */
export function table(header: string[], rows: string[][], room = lineWidth()): string {
  const last = header.length - 1;
  const widest = (table: string[][], c: number) =>
    Math.max(width(header[c]), ...table.map((row) => width(row[c])));
  const left = header.slice(0, last).reduce((sum, _, c) => sum + widest(rows, c) + 2, 0);
  // With hardly any room, a column of single words would help nobody.
  const lines = room - left < 10 ? rows : rows.flatMap((row) => wrapLast(row, room - left));
  const widths = header.map((_, c) => widest(lines, c));
  const numeric = header.map((_, c) =>
    rows.every((row) => /^[\s\d.,%±+-]*$/.test(row[c].replaceAll(ansi, ''))),
  );
  const line = (cells: string[]) =>
    cells
      .map((cell, c) => {
        const padding = ' '.repeat(widths[c] - width(cell));
        return numeric[c] ? padding + cell : cell + padding;
      })
      .join('  ')
      .trimEnd();
  return [color.dim(line(header)), ...lines.map(line)].join('\n');
}

/** A row as several, so that its last cell has at most `room` characters; broken between words. */
function wrapLast(row: string[], room: number): string[][] {
  const lines: string[] = [];
  for (const word of (row.at(-1) ?? '').split(' ')) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && width(longer) > room) lines.push(word);
    else lines.splice(-1, 1, longer);
  }
  return lines.map((text, i) => [...row.slice(0, -1).map((cell) => (i === 0 ? cell : '')), text]);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with a control character
const ansi = /\u001b\[\d+m/g;

/** A progress bar on a terminal, from the start of each phase; a line every ten seconds elsewhere. */
export class ProgressBar {
  #phase = '';
  #started = 0;
  #drawn = 0;
  readonly #stream: NodeJS.WriteStream;

  constructor(stream: NodeJS.WriteStream = process.stderr) {
    this.#stream = stream;
  }

  readonly show: Progress = (step) => {
    const now = performance.now();
    if (step.phase !== this.#phase) {
      this.clear();
      this.#phase = step.phase;
      this.#started = now;
      this.#drawn = this.#stream.isTTY ? 0 : now;
    }
    const interval = this.#stream.isTTY ? 100 : 10_000;
    if (now - this.#drawn < interval) return;
    this.#drawn = now;
    const text = describe(
      step,
      (now - this.#started) / 1000,
      this.#stream.isTTY ? this.#stream.columns : Infinity,
    );
    this.#stream.write(this.#stream.isTTY ? `\r\u001b[2K${text}` : `${text}\n`);
  };

  /** Removes the bar, so that other output starts on a clean line. */
  clear(): void {
    if (this.#stream.isTTY && this.#phase) this.#stream.write('\r\u001b[2K');
    this.#phase = '';
  }
}

function describe({ phase, done, total, unit, detail }: Step, seconds: number, columns: number): string {
  const amount = (n: number) => (unit === 'bytes' ? formatBytes(n) : formatCount(Math.round(n)));
  const rate = done / Math.max(seconds, 1e-9);
  const few = unit !== 'bytes' && rate < 10;
  const speed = `${few ? rate.toFixed(1) : amount(rate)}${unit === 'bytes' ? '' : ` ${unit}`}/s`;
  if (!total) return `${phase}  ${amount(done)}  ${speed}`;
  const fraction = Math.min(1, done / total);
  // The first moments say little about the rest.
  const pace = seconds < 2 || done === 0 ? '' : `  ${speed}  ${formatSeconds((total - done) / rate)} left`;
  const counted = `${Math.floor(100 * fraction)}%  ${amount(done)} of ${amount(total)}${pace}`;
  // A line that wraps could not be cleared.
  const numbers = `${counted}${detail ? `  ${detail}` : ''}`.slice(
    0,
    Math.max(0, columns - phase.length - 6),
  );
  const room = Math.max(0, Math.min(30, columns - phase.length - numbers.length - 6));
  const filled = Math.round(room * fraction);
  return `${color.bold(phase)}  ${color.cyan('█'.repeat(filled))}${color.dim('░'.repeat(room - filled))}  ${numbers}`;
}
