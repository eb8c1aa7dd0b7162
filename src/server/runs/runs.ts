// Training runs: kept in the database, trained one after the other by a process of their own (trainer.ts), watched by
// whoever wants to. A run that was under way when the server was killed is marked so, not begun again.
import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtFile } from '../../kernels/pool.ts';
import { allOptions } from '../../learn/classifier.ts';
import type { Learner } from '../../learn/learner.ts';
import { defaultLearner, findLearner } from '../../learn/registry.ts';
import { type OptionTable, parseOptions } from '../../options.ts';
import type { Step } from '../../progress.ts';
import type { Evaluation } from '../judged.ts';
import { Problem, renderError, unpackError } from '../problem.ts';
import { now, type State } from '../state.ts';
import type { CurvePoint, Run, RunResult, RunSpec, RunStatus } from './schemas.ts';
import type { Sources } from './sources.ts';
import type { News, Reviewed, Task } from './trainer.ts';

/** Runs that may wait for their turn. */
const mostWaiting = 20;
/** How long a cancelled run has to end by itself. */
const graceMs = 3000;

/** What a request may set: all but texts, which may name files of this machine. */
export function remoteOptions(learner: Learner): OptionTable {
  const options = Object.entries(allOptions(learner));
  return Object.fromEntries(options.filter(([, { kind }]) => kind !== 'text'));
}

export interface RunsOptions {
  state: State;
  sources: Sources;
  threads: number;
  /** File with names for the labels. */
  labels?: string;
  /** What was decided in the review of a model. */
  reviewed(model: string): Reviewed[];
  /** Told how a new model fares. */
  onEvaluation(evaluation: Evaluation): void;
}

interface Row {
  id: number;
  spec: string;
  status: RunStatus;
  created: string;
  started: string | null;
  ended: string | null;
  error: string | null;
  served: string | null;
  result: string | null;
}
/** In the column `result`: a run that was cancelled may have some points. */
interface Outcome {
  curve: CurvePoint[];
  result: RunResult | null;
}

interface Current {
  id: number;
  child: ChildProcess;
  progress: Step | null;
  curve: CurvePoint[];
  cancelled: boolean;
}

export class Runs {
  readonly #options: RunsOptions;
  /** Emits the id of a run that changed. */
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #current: Current | undefined;
  #closed = false;

  constructor(options: RunsOptions) {
    this.#options = options;
    this.#database.run(
      "update runs set status = 'interrupted', ended = ? where status in ('waiting', 'running')",
      now(),
    );
  }

  get #database() {
    return this.#options.state.database;
  }

  list(): Run[] {
    return this.#database.all<Row>('select * from runs order by id desc').map((row) => this.#run(row));
  }

  find(id: number): Run {
    const row = this.#database.get<Row>('select * from runs where id = ?', id);
    if (row) return this.#run(row);
    throw new Problem('not-found', `no run has the number ${id}`, 'GET /v1/runs lists them');
  }

  /** Where the model of a run is. */
  folder(id: number): string {
    return join(this.#options.state.folder, 'runs', String(id));
  }

  /** Takes its turn after those that wait. */
  async start(spec: RunSpec): Promise<Run> {
    const learner = await findLearner(spec.learner ?? defaultLearner);
    parseOptions(remoteOptions(learner), spec.options);
    this.#options.sources.find(spec.data);
    const { waiting } = this.#database.get<{ waiting: number }>(
      "select count(*) as waiting from runs where status = 'waiting'",
    ) ?? { waiting: 0 };
    if (waiting >= mostWaiting)
      throw new Problem('overloaded', `at most ${mostWaiting} runs may wait`, 'cancel one, or wait');
    const row = this.#database.get<{ id: number }>(
      "insert into runs (spec, status, created) values (?, 'waiting', ?) returning id",
      JSON.stringify({ learner: defaultLearner, ...spec }),
      now(),
    );
    this.#next();
    return this.find(row?.id ?? 0);
  }

  cancel(id: number): Run {
    const { status } = this.find(id);
    if (status === 'waiting') this.#end(id, 'cancelled');
    else if (this.#current?.id === id) this.#stop(this.#current);
    else
      throw new Problem('conflict', `only a run that waits or runs can be cancelled; this one is ${status}`);
    return this.find(id);
  }

  async remove(id: number): Promise<void> {
    const { status, served } = this.find(id);
    if (status === 'waiting' || status === 'running')
      throw new Problem('conflict', 'a run must have ended to be removed', 'cancel it first');
    if (served !== null)
      throw new Problem('conflict', `the model of this run is served as ${served}`, 'stop serving it first');
    this.#database.run('delete from runs where id = ?', id);
    await rm(this.folder(id), { recursive: true, force: true });
  }

  setServed(id: number, name: string | null): Run {
    this.#database.run('update runs set served = ? where id = ?', name, id);
    this.#changes.emit(String(id));
    return this.find(id);
  }

  /** The run as it is, and again whenever that changes, until it has ended. */
  async *watch(id: number, signal: AbortSignal): AsyncGenerator<Run> {
    let changed = true;
    let wake = () => {};
    const onChange = () => {
      changed = true;
      wake();
    };
    this.#changes.on(String(id), onChange);
    signal.addEventListener('abort', onChange);
    try {
      for (;;) {
        if (!changed) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        if (signal.aborted) return;
        changed = false;
        const run = this.find(id);
        yield run;
        if (run.ended !== null) return;
      }
    } finally {
      this.#changes.off(String(id), onChange);
      signal.removeEventListener('abort', onChange);
    }
  }

  /** Ends what runs; it is marked as interrupted. */
  async close(): Promise<void> {
    this.#closed = true;
    const child = this.#current?.child;
    if (!child) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exited;
  }

  #next(): void {
    if (this.#current || this.#closed) return;
    const row = this.#database.get<Row>("select * from runs where status = 'waiting' order by id limit 1");
    if (!row) return;
    const spec = JSON.parse(row.spec) as RunSpec;
    try {
      const task = this.#task(row.id, spec);
      this.#database.run("update runs set status = 'running', started = ? where id = ?", now(), row.id);
      this.#begin(row.id, task);
    } catch (error) {
      this.#end(row.id, 'failed', renderError(error).body.error.message);
      this.#next();
    }
  }

  #task(id: number, spec: RunSpec): Task {
    const { sources, threads, labels, reviewed } = this.#options;
    return {
      spec,
      source: sources.find(spec.data),
      labels,
      reviewed: spec.reviewed === undefined ? [] : reviewed(spec.reviewed),
      out: this.folder(id),
      threads,
    };
  }

  #begin(id: number, task: Task): void {
    const url = builtFile(import.meta.url.replace(/runs(\.[jt]s)$/, 'trainer$1'));
    const child = fork(fileURLToPath(url), { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], execArgv: [] });
    const current: Current = { id, child, progress: null, curve: [], cancelled: false };
    this.#current = current;
    let last: News | undefined;
    child.on('message', (news: News) => {
      if ('progress' in news) current.progress = news.progress;
      else if ('point' in news) current.curve.push(news.point);
      else last = news;
      this.#changes.emit(String(id));
    });
    child.once('error', () => child.kill('SIGKILL'));
    child.once('exit', (_code, by) => {
      this.#current = undefined;
      this.#finish(current, last, by);
      this.#next();
    });
    mkdir(join(this.#options.state.folder, 'runs'), { recursive: true }).then(
      () => child.connected && child.send(task),
      () => child.kill('SIGKILL'),
    );
  }

  #finish(current: Current, last: News | undefined, by: NodeJS.Signals | null): void {
    const { id, curve, cancelled } = current;
    if (last && 'done' in last) {
      const { report } = last.evaluation;
      this.#options.onEvaluation(last.evaluation);
      this.#end(id, 'done', null, { curve, result: { ...last.done, report } });
    } else if (this.#closed) this.#end(id, 'interrupted', null, { curve, result: null });
    else if (cancelled) this.#end(id, 'cancelled', null, { curve, result: null });
    else {
      const reason =
        last && 'failure' in last
          ? renderError(unpackError(last.failure)).body.error.message
          : by === 'SIGKILL'
            ? 'the system ended the process of the run, most likely for want of memory'
            : 'the process of the run ended before its time';
      this.#end(id, 'failed', reason, { curve, result: null });
    }
  }

  #end(id: number, status: RunStatus, error: string | null = null, outcome: Outcome | null = null): void {
    this.#database.run(
      'update runs set status = ?, ended = ?, error = ?, result = ? where id = ?',
      status,
      now(),
      error,
      outcome && JSON.stringify(outcome),
      id,
    );
    this.#changes.emit(String(id));
  }

  #stop(current: Current): void {
    current.cancelled = true;
    if (current.child.connected) current.child.send('cancel');
    const late = setTimeout(() => current.child.kill('SIGKILL'), graceMs);
    current.child.once('exit', () => clearTimeout(late));
  }

  #run({ spec, result: text, ...row }: Row): Run {
    const current = this.#current?.id === row.id ? this.#current : undefined;
    const { curve, result } = (text ? JSON.parse(text) : { curve: [], result: null }) as Outcome;
    return {
      id: row.id,
      spec: JSON.parse(spec) as RunSpec,
      status: row.status,
      created: row.created,
      started: row.started,
      ended: row.ended,
      error: row.error,
      served: row.served,
      progress: current?.progress ?? null,
      curve: current?.curve ?? curve,
      result,
    };
  }
}
