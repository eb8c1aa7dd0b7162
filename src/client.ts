// A typed client for `umbel serve`, for Node and for pages: fetch and nothing else. The types are those of the server's
// schemas.
import type {
  ErrorBody,
  EvaluateQuery,
  EvaluationReport,
  ExplainBody,
  Explained,
  Input,
  LabelDetail,
  LabelPage,
  LabelsQuery,
  ModelDetail,
  ModelSummary,
  Senses,
  SensesTop,
  StreamedLine,
  Suggestion,
  Suggestions,
  SuggestQuery,
} from './server/schemas.ts';

export type {
  EvaluateQuery,
  EvaluationReport,
  Explained,
  Input,
  LabelDetail,
  LabelPage,
  ModelDetail,
  ModelSummary,
  Senses,
  SensesTop,
  StreamedLine,
  Suggestion,
  Suggestions,
};

export interface ClientOptions {
  token?: string;
  fetch?: typeof fetch;
}

/** An answer that is an error, with the server's words. */
export class ServerError extends Error {
  readonly status: number;
  readonly code: string;
  readonly value: string | undefined;
  readonly hint: string | undefined;
  /** Seconds to wait before the next try, where the server says so. */
  readonly retryAfter: number | undefined;

  constructor(status: number, { error }: ErrorBody, retryAfter?: number) {
    super(error.message);
    this.name = 'ServerError';
    this.status = status;
    this.code = error.code;
    this.value = error.value;
    this.hint = error.hint;
    this.retryAfter = retryAfter;
  }
}

type Query = Record<string, string | number | boolean | undefined>;
interface Call {
  query?: Query;
  json?: unknown;
  body?: BodyInit;
  type?: string;
}

const ndjson = 'application/x-ndjson';
/** Lines per request of a stream. */
const linesAtOnce = 1000;

export class Client {
  readonly #address: string;
  readonly #token: string | undefined;
  readonly #fetch: typeof fetch;

  constructor(address: string, { token, fetch = globalThis.fetch }: ClientOptions = {}) {
    this.#address = address.replace(/\/+$/, '');
    this.#token = token;
    this.#fetch = (...args) => fetch(...args);
  }

  async models(): Promise<ModelSummary[]> {
    return (await this.#json<{ models: ModelSummary[] }>('GET', '/v1/models')).models;
  }

  model(name: string): Promise<ModelDetail> {
    return this.#json('GET', at(name));
  }

  /** Has the server load a model from its folder again. */
  reload(name: string): Promise<ModelDetail> {
    return this.#json('POST', at(name, 'reload'));
  }

  /** The best labels for one text (or features). */
  async suggest(model: string, input: string | Input, options: SuggestQuery = {}): Promise<Suggestion[]> {
    const { id: _, ...given } = asInput(input);
    const json = { ...given, ...options };
    return (await this.#json<Suggestions>('POST', at(model, 'suggest'), { json })).labels;
  }

  /** The best labels for many at once, in their order. */
  suggestBatch(
    model: string,
    inputs: (string | Input)[],
    options: SuggestQuery = {},
  ): Promise<Suggestions[]> {
    const call = { json: inputs.map(asInput), query: { ...options } };
    return this.#json('POST', at(model, 'suggest-batch'), call);
  }

  /** The best labels for any number, in their order, as they come. An input that was refused has an `error`. */
  async *suggestStream(
    model: string,
    inputs: Iterable<string | Input> | AsyncIterable<string | Input>,
    options: SuggestQuery = {},
  ): AsyncGenerator<StreamedLine> {
    let first = 0;
    for await (const group of groupsOf(inputs, linesAtOnce)) {
      const body = group.map((input) => `${JSON.stringify(asInput(input))}\n`).join('');
      const call = { body, type: ndjson, query: { ...options } };
      const response = await this.#call('POST', at(model, 'suggest-batch'), call);
      for (const text of (await response.text()).split('\n')) {
        if (text === '') continue;
        const line = JSON.parse(text) as StreamedLine;
        // An error that is no line's is the end of the stream.
        if ('error' in line && line.line === undefined) throw new ServerError(503, line);
        yield 'error' in line ? { ...line, line: first + line.line } : line;
      }
      first += group.length;
    }
  }

  /** Which words pushed a label; the best one where none is named. */
  explain(model: string, text: string, options: Omit<ExplainBody, 'text'> = {}): Promise<Explained> {
    return this.#json('POST', at(model, 'explain'), { json: { text, ...options } });
  }

  /** Labels by the beginning of their id or words of their names; the most frequent where nothing is searched. */
  labels(model: string, query: LabelsQuery = {}): Promise<LabelPage> {
    return this.#json('GET', at(model, 'labels'), { query: { ...query } });
  }

  label(model: string, id: string): Promise<LabelDetail> {
    return this.#json('GET', at(model, 'labels', id));
  }

  /** The meanings of a label, where the model lets labels have several. */
  async senses(model: string, label: string): Promise<Senses['senses']> {
    return (await this.#json<Senses>('GET', at(model, 'labels', label, 'senses'))).senses;
  }

  /** The labels whose meanings lie farthest apart. */
  async sensesTop(model: string, top?: number): Promise<SensesTop['labels']> {
    return (await this.#json<SensesTop>('GET', at(model, 'senses'), { query: { top } })).labels;
  }

  /** Measures a model on a file with labels: its text, or a Blob. */
  evaluate(model: string, file: string | Blob, query: EvaluateQuery): Promise<EvaluationReport> {
    return this.#json('POST', at(model, 'evaluate'), { body: file, type: 'text/plain', query });
  }

  async #json<T>(method: string, path: string, call: Call = {}): Promise<T> {
    return (await (await this.#call(method, path, call)).json()) as T;
  }

  async #call(method: string, path: string, { query = {}, json, body, type }: Call): Promise<Response> {
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    const search = given.length ? `?${new URLSearchParams(given)}` : '';
    const headers = new Headers();
    if (this.#token) headers.set('authorization', `Bearer ${this.#token}`);
    const contentType = json === undefined ? type : 'application/json';
    if (contentType) headers.set('content-type', contentType);
    const sent = json === undefined ? body : JSON.stringify(json);
    const response = await this.#fetch(this.#address + path + search, { method, headers, body: sent });
    if (response.ok) return response;
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
    throw new ServerError(
      response.status,
      await errorOf(response),
      Number.isNaN(retryAfter) ? undefined : retryAfter,
    );
  }
}

const at = (model: string, ...rest: string[]) =>
  `/v1/models/${[model, ...rest].map(encodeURIComponent).join('/')}`;

const asInput = (input: string | Input): Input => (typeof input === 'string' ? { text: input } : input);

async function* groupsOf<T>(items: Iterable<T> | AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let group: T[] = [];
  for await (const item of items) {
    group.push(item);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length) yield group;
}

/** What is between here and the server may answer in its own words. */
async function errorOf(response: Response): Promise<ErrorBody> {
  const text = await response.text();
  try {
    const body = JSON.parse(text) as ErrorBody;
    if (typeof body?.error?.message === 'string') return body;
  } catch {
    // No JSON, so not from our server.
  }
  return {
    error: { code: 'unknown', message: `the server answered ${response.status}: ${text.slice(0, 200)}` },
  };
}
