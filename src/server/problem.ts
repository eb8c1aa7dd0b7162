// Everything that ends a request badly, as a status and the one body all errors have. Knows no framework.
import { type ErrorCode, type ErrorDetail, UmbelError } from '../errors.ts';
import type { ErrorBody } from './schemas.ts';

type ProblemCode =
  | 'not-found'
  | 'no-state'
  | 'conflict'
  | 'unauthorised'
  | 'media-type'
  | 'too-large'
  | 'rate-limit'
  | 'overloaded'
  | 'timeout'
  | 'unavailable';

const problemStatus: Record<ProblemCode, number> = {
  'not-found': 404,
  'no-state': 409,
  conflict: 409,
  unauthorised: 401,
  'media-type': 415,
  'too-large': 413,
  'rate-limit': 429,
  overloaded: 503,
  timeout: 503,
  unavailable: 503,
};

const umbelStatus: Record<ErrorCode, number> = {
  usage: 400,
  input: 400,
  'too-large': 413,
  model: 500,
  'missing-package': 500,
  cancelled: 503,
};

/** What only a server has to say; mistakes in the request's content are UmbelErrors. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly statusCode: number;
  readonly hint: string | undefined;

  constructor(code: ProblemCode, message: string, hint?: string) {
    super(message);
    this.code = code;
    this.statusCode = problemStatus[code];
    this.hint = hint;
  }
}

export interface Rendered {
  status: number;
  body: ErrorBody;
  /** Whether it is our fault: then it belongs into the log. */
  ours: boolean;
}

export function renderError(error: unknown): Rendered {
  if (error instanceof UmbelError) return renderUmbel(error);
  if (error instanceof Problem) {
    const { code, message, hint } = error;
    return { status: error.statusCode, body: { error: { code, message, hint } }, ours: false };
  }
  const { statusCode = 500, code = '', message } = error as Error & { statusCode?: number; code?: string };
  // Nobody reads this, but it must not count as our fault.
  if (code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE')
    return renderError(new Problem('unavailable', 'the client is gone'));
  // The framework's own: a body that is no JSON, too long, of a type nobody reads.
  if (statusCode >= 400 && statusCode < 500)
    return { status: statusCode, body: { error: framework(statusCode, code, message) }, ours: false };
  const sentence = 'something went wrong here, not in the request';
  return { status: 500, body: { error: { code: 'internal', message: sentence } }, ours: true };
}

function renderUmbel(error: UmbelError): Rendered {
  const { code, message, value, hint } = error.toJSON().error;
  const status = umbelStatus[error.code];
  return { status, body: { error: { code, message, value, hint } }, ours: status === 500 };
}

function framework(status: number, code: string, message: string): ErrorBody['error'] {
  if (status === 413) return { code: 'too-large', message: 'request body must be smaller' };
  if (status === 415)
    return {
      code: 'media-type',
      message: 'Content-Type must be one this route takes',
      hint: 'application/json for most; /docs tells',
    };
  if (status === 404) return { code: 'not-found', message };
  if (code === 'FST_ERR_CTP_EMPTY_JSON_BODY') return { code: 'input', message: 'body must not be empty' };
  if (code.startsWith('FST_ERR_CTP') || message.includes('JSON'))
    return { code: 'input', message: `body must be valid JSON: ${message}` };
  return { code: 'input', message };
}

/** The same error, in which places of this machine have other names. */
export function renamePlaces(error: unknown, names: Record<string, string>): unknown {
  if (!(error instanceof UmbelError)) return error;
  const { code, rule, detail } = error;
  const rename = (text: string) =>
    Object.entries(names).reduce((renamed, [place, name]) => renamed.replaceAll(place, name), text);
  return new UmbelError(code, rename(rule), { ...detail, file: detail.file && rename(detail.file) });
}

/** An error on its way between threads. */
export type Failure = { umbel: [ErrorCode, string, ErrorDetail] } | { message: string };

export function packError(error: unknown): Failure {
  if (!(error instanceof UmbelError))
    return { message: error instanceof Error ? (error.stack ?? '') : String(error) };
  const { code, rule, detail } = error;
  return { umbel: [code, rule, { ...detail, value: plain(detail.value) }] };
}

export const unpackError = (failure: Failure): Error =>
  'umbel' in failure ? new UmbelError(...failure.umbel) : new Error(failure.message);

/** Only plain values can be sent to another thread. */
const plain = (value: unknown) =>
  value === undefined || typeof value === 'number' || typeof value === 'boolean' ? value : String(value);
