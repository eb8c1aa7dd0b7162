// A typed client for `umbel serve`, for Node and for pages: fetch and nothing else. The types are those of the server's
// schemas.
import type { Correction, GroupDetail, GroupPage, GroupsQuery, SourceList } from './server/groups/schemas.ts';
import type {
  Decision,
  FillBody,
  Filled,
  ReviewCounts,
  ReviewItem,
  ReviewPage,
  ReviewQuery,
} from './server/review/schemas.ts';
import type {
  CurvePoint,
  DataEntry,
  DataQuery,
  LearnerList,
  Run,
  RunResult,
  RunSpec,
  RunStatus,
} from './server/runs/schemas.ts';
import type {
  AddLabelBody,
  ErrorBody,
  EvaluateQuery,
  EvaluationReport,
  ExplainBody,
  Explained,
  Input,
  Label,
  LabelDetail,
  LabelMap,
  LabelPage,
  LabelsQuery,
  ModelDetail,
  ModelSummary,
  Neighbours,
  Senses,
  SensesTop,
  Similarities,
  StreamedLine,
  Suggestion,
  Suggestions,
  SuggestQuery,
} from './server/schemas.ts';

export type {
  AddLabelBody,
  Correction,
  CurvePoint,
  DataEntry,
  Decision,
  EvaluateQuery,
  EvaluationReport,
  Explained,
  Filled,
  GroupDetail,
  GroupPage,
  Input,
  Label,
  LabelDetail,
  LabelMap,
  LabelPage,
  LearnerList,
  ModelDetail,
  ModelSummary,
  Neighbours,
  ReviewItem,
  ReviewPage,
  Run,
  RunResult,
  RunSpec,
  RunStatus,
  Senses,
  SensesTop,
  Similarities,
  SourceList,
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
  signal?: AbortSignal;
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

  /** Labels that the same words speak for. */
  async neighbours(model: string, label: string, top?: number): Promise<Neighbours['neighbours']> {
    const path = at(model, 'labels', label, 'neighbours');
    return (await this.#json<Neighbours>('GET', path, { query: { top } })).neighbours;
  }

  /** How alike some labels are, each with each. */
  similarities(model: string, labels: string[]): Promise<Similarities> {
    return this.#json('POST', at(model, 'similarities'), { json: { labels } });
  }

  /** All labels in the plane; `ready` is false while the map is being made. */
  map(model: string): Promise<LabelMap> {
    return this.#json('GET', at(model, 'map'));
  }

  /** Teaches a model a label it was not trained on; `takesLabels` of the model says whether it can. */
  addLabel(model: string, label: AddLabelBody): Promise<Label> {
    return this.#json('POST', at(model, 'labels'), { json: label });
  }

  /** Has a model forget a label, where it does so without training. */
  async removeLabel(model: string, label: string): Promise<void> {
    await this.#call('DELETE', at(model, 'labels', label), {});
  }

  /** Whether a label is never suggested. */
  exclude(model: string, label: string, excluded: boolean): Promise<Label> {
    return this.#json('PUT', at(model, 'labels', label, 'excluded'), { json: { excluded } });
  }

  /** Measures a model on a file with labels: its text, or a Blob. */
  evaluate(model: string, file: string | Blob, query: EvaluateQuery): Promise<EvaluationReport> {
    return this.#json('POST', at(model, 'evaluate'), { body: file, type: 'text/plain', query });
  }

  async learners(): Promise<LearnerList['learners']> {
    return (await this.#json<LearnerList>('GET', '/v1/learners')).learners;
  }

  /** The data that runs may train on. */
  async data(): Promise<DataEntry[]> {
    return (await this.#json<{ data: DataEntry[] }>('GET', '/v1/data')).data;
  }

  addData(name: string, file: string | Blob, query: DataQuery): Promise<DataEntry> {
    return this.#json('PUT', path('data', name), { body: file, type: 'text/plain', query });
  }

  async removeData(name: string): Promise<void> {
    await this.#call('DELETE', path('data', name), {});
  }

  async runs(): Promise<Run[]> {
    return (await this.#json<{ runs: Run[] }>('GET', '/v1/runs')).runs;
  }

  run(id: number): Promise<Run> {
    return this.#json('GET', path('runs', id));
  }

  startRun(spec: RunSpec): Promise<Run> {
    return this.#json('POST', '/v1/runs', { json: spec });
  }

  cancelRun(id: number): Promise<Run> {
    return this.#json('POST', path('runs', id, 'cancel'));
  }

  async removeRun(id: number): Promise<void> {
    await this.#call('DELETE', path('runs', id), {});
  }

  /** Has the model of a run served under a name. */
  serveRun(id: number, name: string): Promise<Run> {
    return this.#json('PUT', path('runs', id, 'served'), { json: { name } });
  }

  unserveRun(id: number): Promise<Run> {
    return this.#json('DELETE', path('runs', id, 'served'));
  }

  /** A run whenever it changes, until it has ended. */
  async *watchRun(id: number, signal?: AbortSignal): AsyncGenerator<Run> {
    const response = await this.#call('GET', path('runs', id, 'events'), { signal });
    if (!response.body) return;
    for await (const event of eventsOf(response.body)) yield JSON.parse(event) as Run;
  }

  /** Where labels of groups were dealt out to their members. */
  async groupSources(): Promise<SourceList['sources']> {
    return (await this.#json<SourceList>('GET', '/v1/groups')).sources;
  }

  /** Groups of a source, the least clear first. */
  groups(source: string, query: GroupsQuery = {}): Promise<GroupPage> {
    return this.#json('GET', path('groups', source, 'list'), { query: { ...query } });
  }

  group(source: string, group: string): Promise<GroupDetail> {
    return this.#json('GET', path('groups', source, 'group', group));
  }

  /** Says which members of a group have a label. */
  correct(source: string, group: string, label: string, instances: string[]): Promise<Correction> {
    const json = { instances };
    return this.#json('PUT', path('groups', source, 'group', group, 'labels', label), { json });
  }

  async uncorrect(source: string, group: string, label: string): Promise<void> {
    await this.#call('DELETE', path('groups', source, 'group', group, 'labels', label), {});
  }

  /** All corrections as JSON lines: a file for `--corrections`. */
  async corrections(source: string): Promise<string> {
    return (await this.#call('GET', path('groups', source, 'corrections'), {})).text();
  }

  /** Puts unsure predictions for some texts into the queue. */
  fillReview(model: string, fill: FillBody): Promise<Filled> {
    return this.#json('POST', at(model, 'review'), { json: fill });
  }

  review(model: string, query: ReviewQuery = {}): Promise<ReviewPage> {
    return this.#json('GET', at(model, 'review'), { query: { ...query } });
  }

  decide(model: string, item: number, decision: Decision | null): Promise<ReviewCounts> {
    return this.#json('PUT', at(model, 'review', String(item)), { json: { decision } });
  }

  /** What was decided, as training data in JSON lines. */
  async reviewed(model: string): Promise<string> {
    return (await this.#call('GET', at(model, 'review', 'export'), {})).text();
  }

  async #json<T>(method: string, path: string, call: Call = {}): Promise<T> {
    return (await (await this.#call(method, path, call)).json()) as T;
  }

  async #call(method: string, path: string, call: Call): Promise<Response> {
    const { query = {}, json, body, type, signal } = call;
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    const search = given.length ? `?${new URLSearchParams(given)}` : '';
    const headers = new Headers();
    if (this.#token) headers.set('authorization', `Bearer ${this.#token}`);
    const contentType = json === undefined ? type : 'application/json';
    if (contentType) headers.set('content-type', contentType);
    const sent = json === undefined ? body : JSON.stringify(json);
    const address = this.#address + path + search;
    const response = await this.#fetch(address, { method, headers, body: sent, signal });
    if (response.ok) return response;
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
    throw new ServerError(
      response.status,
      await errorOf(response),
      Number.isNaN(retryAfter) ? undefined : retryAfter,
    );
  }
}

const path = (...parts: (string | number)[]) => `/v1/${parts.map(encodeURIComponent).join('/')}`;
const at = (model: string, ...rest: string[]) => path('models', model, ...rest);

/** The data of server-sent events. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const events = text.split('\n\n');
      text = events.pop() ?? '';
      for (const event of events) if (event.startsWith('data: ')) yield event.slice('data: '.length);
    }
  } finally {
    await reader.cancel();
  }
}

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
