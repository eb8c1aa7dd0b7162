// The threads that serve one model, and the queue before them. Requests of one turn of the event loop travel together,
// so that a message costs little; the queue is bounded; new threads take over on reload while the old ones finish.
import { Worker } from 'node:worker_threads';
import { UmbelError } from '../errors.ts';
import { builtFile } from '../kernels/pool.ts';
import type { Evaluation } from './judged.ts';
import type { Limits } from './limits.ts';
import { Problem, unpackError } from './problem.ts';
import type { Input, ModelDetail, ModelSummary } from './schemas.ts';
import type { Answers, Ask, Loaded, Message, Order, Suggest } from './worker.ts';

/** Inputs per message: enough to spread its cost, few enough that threads share the work. */
const messageWeight = 64;
/** Messages a thread holds: one at work, one waiting for it. */
const messagesAhead = 2;

interface Job {
  ask: Ask;
  weight: number;
  deadline: number;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}

export interface CrewOptions {
  name: string;
  folder: string;
  threads: number;
  limits: Pick<Limits, 'queue' | 'seconds'>;
  /** Labels that are never suggested, or are again: where that differs from the saved model. */
  excluded: ReadonlyMap<string, boolean>;
  /** An earlier evaluation of a version. */
  recall: (version: string) => Evaluation | null;
  /** Told when a thread died and was replaced. */
  onTrouble: (error: unknown) => void;
}

export class Crew {
  readonly name: string;
  /** The last evaluation of the model as it is now. */
  evaluation: Evaluation | null = null;
  readonly #options: CrewOptions;
  readonly #sweep: NodeJS.Timeout;
  readonly #excluded: Map<string, boolean>;
  #hands: Hand[] = [];
  #loaded: Loaded & { loadedAt: string };
  #waiting: Job[] = [];
  #weight = 0;
  #flushing = false;
  #reloading: Promise<void> | undefined;
  #closed = false;

  static async start(options: CrewOptions): Promise<Crew> {
    return new Crew(options, await startHands(options));
  }

  private constructor(options: CrewOptions, hands: Hand[]) {
    this.name = options.name;
    this.#options = options;
    this.#excluded = new Map(options.excluded);
    this.#loaded = describe(hands);
    this.evaluation = options.recall(this.#loaded.version);
    this.#take(hands);
    this.#sweep = setInterval(() => this.#expire(), 250).unref();
  }

  get folder(): string {
    return this.#options.folder;
  }

  /** Weight of what waits: an input counts once, and once more per 1000 characters. */
  get waiting(): number {
    return this.#weight;
  }

  get summary(): ModelSummary {
    const { seed: _seed, settings: _settings, excluded: _excluded, ...summary } = this.#loaded;
    return { name: this.name, ...summary };
  }

  get detail(): ModelDetail {
    const { threads } = this.#options;
    const { evaluation, waiting } = this;
    return { name: this.name, ...this.#loaded, threads, waiting, evaluation: evaluation?.report ?? null };
  }

  ask<K extends Ask['kind']>(ask: Extract<Ask, { kind: K }>): Promise<Answers[K]> {
    return this.#admit(weigh(ask)) ?? this.#push(ask);
  }

  /** All inputs are taken, or none; many are cut into messages, so that the threads share them. */
  async suggest(inputs: Input[], { top, threshold }: { top: number; threshold: number }): Promise<string[]> {
    const asks: Suggest[] = [];
    for (let from = 0; from < inputs.length; from += messageWeight) {
      asks.push({ kind: 'suggest', inputs: inputs.slice(from, from + messageWeight), top, threshold });
    }
    const refused = this.#admit(asks.reduce((sum, ask) => sum + weigh(ask), 0));
    return refused ?? (await Promise.all(asks.map((ask) => this.#push(ask)))).flat();
  }

  /** Whether a label is never suggested from now on; the id must be known. */
  async exclude(id: string, excluded: boolean): Promise<void> {
    this.#excluded.set(id, excluded);
    await Promise.all(this.#hands.map((hand) => this.#tell(hand)));
  }

  /** Loads the folder anew; requests are answered all the while. A model that cannot be loaded changes nothing. */
  reload(): Promise<void> {
    this.#reloading ??= this.#replaceAll().finally(() => {
      this.#reloading = undefined;
    });
    return this.#reloading;
  }

  /** Finishes what was accepted, then ends the threads. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#reloading?.catch(() => {});
    while (this.#waiting.length > 0 || this.#hands.some(({ messages }) => messages > 0)) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    clearInterval(this.#sweep);
    await Promise.all(this.#hands.map((hand) => hand.retire()));
  }

  /** A refusal where there is no room; what is alone is always taken, so that no limit shuts it out for good. */
  #admit(weight: number): Promise<never> | undefined {
    const { queue } = this.#options.limits;
    if (this.#closed) return Promise.reject(new Problem('unavailable', 'server is shutting down'));
    if (this.#weight === 0 || this.#weight + weight <= queue) return undefined;
    const rule = `at most ${queue} inputs may wait for model ${this.name}`;
    return Promise.reject(new Problem('overloaded', rule, 'try again later'));
  }

  #push<K extends Ask['kind']>(ask: Extract<Ask, { kind: K }>): Promise<Answers[K]> {
    const weight = weigh(ask);
    this.#weight += weight;
    const deadline = performance.now() + 1000 * this.#options.limits.seconds;
    const { promise, resolve, reject } = withResolvers<Answers[K]>();
    this.#waiting.push({ ask, weight, deadline, resolve: resolve as Job['resolve'], reject });
    if (!this.#flushing) {
      this.#flushing = true;
      setImmediate(() => {
        this.#flushing = false;
        this.#flush();
      });
    }
    return promise;
  }

  async #replaceAll(): Promise<void> {
    const hands = await startHands(this.#options);
    const old = this.#hands;
    this.#loaded = describe(hands);
    this.evaluation = this.#options.recall(this.#loaded.version);
    this.#take(hands);
    for (const hand of old) hand.retire();
    this.#flush();
  }

  #take(hands: Hand[]): void {
    this.#hands = hands;
    for (const hand of hands) {
      hand.onFree = () => this.#flush();
      hand.onDeath = (error) => this.#replace(hand, error);
      // Before anything else that it will be asked; where it fails the thread is replaced.
      if (this.#excluded.size > 0) this.#tell(hand).catch(() => {});
    }
  }

  async #tell(hand: Hand): Promise<void> {
    const { promise, resolve, reject } = withResolvers<number>();
    const ask: Ask = { kind: 'exclude', changes: [...this.#excluded] };
    const deadline = Number.POSITIVE_INFINITY;
    hand.give([{ ask, weight: 0, deadline, resolve: resolve as Job['resolve'], reject }]);
    this.#loaded = { ...this.#loaded, excluded: await promise };
  }

  /** A thread died: another takes its place, after a pause where that fails. */
  async #replace(dead: Hand, error: unknown): Promise<void> {
    this.#options.onTrouble(error);
    this.#hands = this.#hands.filter((hand) => hand !== dead);
    while (!this.#closed && this.#hands.length < this.#options.threads) {
      try {
        const hand = await Hand.start(this.#options.folder);
        const isSame = hand.loaded.version === this.#loaded.version;
        // A reload may have filled the place.
        if (isSame && !this.#closed && this.#hands.length < this.#options.threads) {
          this.#take([...this.#hands, hand]);
          this.#flush();
        } else hand.retire();
        // The folder has another model by now, and all threads must have the same.
        if (!isSame && !this.#closed) await this.reload();
      } catch (failure) {
        this.#options.onTrouble(failure);
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    }
  }

  #flush(): void {
    for (;;) {
      const free = this.#hands.filter(({ messages }) => messages < messagesAhead);
      if (free.length === 0 || this.#waiting.length === 0) return;
      free.sort((a, b) => a.messages - b.messages);
      free[0].give(this.#draw(Math.min(messageWeight, Math.ceil(this.#weight / free.length))));
    }
  }

  /** The next jobs of about this weight, at least one. */
  #draw(weight: number): Job[] {
    let [count, sum] = [0, 0];
    while (count < this.#waiting.length && (count === 0 || sum + this.#waiting[count].weight <= weight)) {
      sum += this.#waiting[count++].weight;
    }
    this.#weight -= sum;
    return this.#waiting.splice(0, count);
  }

  /** Refuses what has waited too long, and gives up a thread that is stuck. */
  #expire(): void {
    const now = performance.now();
    const { seconds } = this.#options.limits;
    const rule = `requests must be answered within ${seconds} seconds`;
    const late = new Problem('timeout', rule, 'try again later, with less at once');
    while (this.#waiting.length > 0 && this.#waiting[0].deadline < now) {
      for (const job of this.#draw(0)) job.reject(late);
    }
    for (const hand of this.#hands) if (now - hand.busySince > 1000 * seconds) hand.abandon(late);
  }
}

/** One thread. */
class Hand {
  readonly loaded: Loaded;
  readonly #worker: Worker;
  readonly #given = new Map<number, Job[]>();
  #next = 0;
  #began = 0;
  #retired: (() => void) | undefined;
  onFree = () => {};
  onDeath = (_error: unknown) => {};

  static start(folder: string): Promise<Hand> {
    const url = builtFile(import.meta.url.replace(/crew(\.[jt]s)$/, 'worker$1'));
    const worker = new Worker(url, { workerData: { folder } });
    return new Promise((resolve, reject) => {
      worker.once('message', (message: Message) => {
        worker.off('error', reject);
        if ('loaded' in message) return resolve(new Hand(worker, message.loaded));
        if ('failure' in message) reject(unpackError(message.failure));
        worker.terminate();
      });
      worker.once('error', reject);
      worker.once('exit', (code) =>
        reject(new Error(`a thread ended with code ${code} before it was ready`)),
      );
    });
  }

  private constructor(worker: Worker, loaded: Loaded) {
    this.#worker = worker;
    this.loaded = loaded;
    worker.on('message', (message: Message) => this.#receive(message));
    worker.on('error', (error) => this.#die(error));
    worker.on('exit', () => this.#die(new Error('a thread ended')));
  }

  get messages(): number {
    return this.#given.size;
  }

  /** When it began with the message it is at work on; never, where it has none. */
  get busySince(): number {
    return this.#given.size > 0 ? this.#began : Number.POSITIVE_INFINITY;
  }

  give(jobs: Job[]): void {
    if (this.#given.size === 0) this.#began = performance.now();
    const id = this.#next++;
    this.#given.set(id, jobs);
    this.#worker.postMessage({ id, asks: jobs.map(({ ask }) => ask) } satisfies Order);
  }

  /** Ends the thread once it has done what it was given. */
  retire(): Promise<void> {
    this.onFree = () => {};
    this.onDeath = () => {};
    const { promise, resolve } = withResolvers<void>();
    this.#retired = () => this.#worker.terminate().then(() => resolve());
    if (this.#given.size === 0) this.#retired();
    return promise;
  }

  /** Ends the thread now; its work fails with this error. */
  abandon(error: Problem): void {
    this.#die(error, error);
    this.#worker.terminate();
  }

  #receive(message: Message): void {
    if (!('id' in message)) return;
    const jobs = this.#given.get(message.id) ?? [];
    this.#given.delete(message.id);
    this.#began = performance.now();
    // First the thread gets its next work, then the sockets theirs.
    this.onFree();
    for (const [i, job] of jobs.entries()) {
      const outcome = message.outcomes[i];
      if ('answer' in outcome) job.resolve(outcome.answer);
      else job.reject(unpackError(outcome.failure));
    }
    if (this.#given.size === 0) this.#retired?.();
  }

  /** Whoever waits gets `lost`, the crew is told `error`. */
  #die(
    error: Error,
    lost = new Problem('unavailable', 'the thread at work on this ended', 'try again'),
  ): void {
    const jobs = [...this.#given.values()].flat();
    this.#given.clear();
    for (const job of jobs) job.reject(lost);
    const tell = this.onDeath;
    this.onDeath = () => {};
    tell(error);
    this.#retired?.();
  }
}

async function startHands({ folder, threads }: CrewOptions): Promise<Hand[]> {
  const started = await Promise.allSettled(Array.from({ length: threads }, () => Hand.start(folder)));
  const hands = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const refuse = (error: unknown): never => {
    for (const hand of hands) hand.retire();
    throw error;
  };
  for (const result of started) if (result.status === 'rejected') refuse(result.reason);
  if (hands.some(({ loaded }) => loaded.version !== hands[0].loaded.version)) {
    refuse(new UmbelError('model', 'model must not change while it is loaded', { hint: 'load it again' }));
  }
  return hands;
}

const describe = ([{ loaded }]: Hand[]) => ({ ...loaded, loadedAt: new Date().toISOString() });

function weigh(ask: Ask): number {
  if (ask.kind === 'explain') return 1 + Math.floor(ask.text.length / 1000);
  if (ask.kind !== 'suggest') return 1;
  return ask.inputs.reduce((sum, { text = '', features = [] }) => {
    return sum + 1 + Math.floor((text.length + 10 * Object.keys(features).length) / 1000);
  }, 0);
}

/** Promise.withResolvers, which Node 20 lacks. */
function withResolvers<T>() {
  let [resolve, reject]: [(value: T) => void, (error: unknown) => void] = [() => {}, () => {}];
  const promise = new Promise<T>((yes, no) => {
    [resolve, reject] = [yes, no];
  });
  return { promise, resolve, reject };
}
