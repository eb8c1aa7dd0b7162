// The one error family. Every message states the rule and the value seen; every door (command line, HTTP,
// library) renders it from the same fields. A stack trace is for our bugs, never for a user's mistake.

/** `usage` and `input` are the caller's to mend (exit code 2); the others are ours or the machine's (exit code 1). */
export type ErrorCode = 'usage' | 'input' | 'model' | 'missing-package' | 'too-large' | 'cancelled';

export interface ErrorDetail {
  /** File the value came from. */
  file?: string;
  /** 1-based line (or record) in that file. */
  line?: number;
  /** The value seen, shown shortened. */
  value?: unknown;
  /** What to do next. */
  hint?: string;
}

export class UmbelError extends Error {
  readonly code: ErrorCode;
  /** The rule alone, without place and value. */
  readonly rule: string;
  readonly detail: ErrorDetail;

  constructor(code: ErrorCode, rule: string, detail: ErrorDetail = {}) {
    super(render(rule, detail));
    this.name = 'UmbelError';
    this.code = code;
    this.rule = rule;
    this.detail = detail;
  }

  toJSON() {
    const { file, line, value, hint } = this.detail;
    const shown = value === undefined ? undefined : shorten(value);
    return {
      error: { code: this.code, message: this.message, rule: this.rule, file, line, value: shown, hint },
    };
  }
}

/** The input breaks a rule: `badInput('label id must be below 10', { file, line, value: 12 })`. */
export const badInput = (rule: string, detail?: ErrorDetail) => new UmbelError('input', rule, detail);

/** The call breaks a rule: a wrong option, flag or argument. */
export const badUsage = (rule: string, detail?: ErrorDetail) => new UmbelError('usage', rule, detail);

/** The same error, now knowing where it happened; fields already known stay. */
export function locate(error: unknown, place: ErrorDetail): unknown {
  if (!(error instanceof UmbelError)) return error;
  return new UmbelError(error.code, error.rule, { ...place, ...error.detail });
}

/** The closest of `known` to `word`, if it is close enough to be a typo, or the first that begins with it. */
export function suggest(word: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best ?? [...known].find((candidate) => word.length > 2 && candidate.startsWith(word));
}

/** `badUsage` for a name that is not in a list, with the closest one or the list (its start, if long) as the hint. */
export function unknownName(kind: string, name: string, known: readonly string[]): UmbelError {
  const close = suggest(name, known);
  // Where a table has no header, the names are all that its first row says.
  const clipped = (text: string) => (text.length <= 40 ? text : `${text.slice(0, 37)}...`);
  const list = known.slice(0, 20).map(clipped).join(', ');
  const hint = close
    ? `did you mean ${clipped(close)}?`
    : `known: ${list}${known.length > 20 ? ', ...' : ''}`;
  return badUsage(`unknown ${kind}`, { value: name, hint });
}

/** A value of any shape as JSON, or what it is where JSON cannot say it. */
export function asJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

function render(rule: string, { file, line, value, hint }: ErrorDetail): string {
  const place = file === undefined ? '' : `${file}${line === undefined ? '' : `:${line}`}: `;
  const seen = value === undefined ? '' : `, got ${shorten(value)}`;
  return `${place}${rule}${seen}${hint ? ` (${hint})` : ''}`;
}

/** Numbers and words as they are, texts in quotes; null is what was not there. */
function shorten(value: unknown): string {
  const plain = typeof value !== 'string' && typeof value !== 'object';
  const text = value === null ? 'nothing' : plain ? String(value) : asJson(value);
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}

/** Insertions, deletions, substitutions and swapped neighbours (the commonest typo) each count one. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      current[j] = Math.min(last[j] + 1, current[j - 1] + 1, substitution);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) current[j] = Math.min(current[j], beforeLast[j - 2] + 1);
    }
    [beforeLast, last] = [last, current];
  }
  return last[b.length];
}
