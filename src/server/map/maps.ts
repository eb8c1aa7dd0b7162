// Maps of labels: made once for each version of a model, in a thread of its own, and kept.
import { Worker } from 'node:worker_threads';
import { builtFile } from '../../kernels/pool.ts';
import type { Crew } from '../crew.ts';
import { renamePlaces, unpackError } from '../problem.ts';
import type { LabelMap } from '../schemas.ts';
import type { State } from '../state.ts';
import type { News } from './mapper.ts';

interface Making {
  worker: Worker;
  progress: number;
}

export class Maps {
  readonly #state: State | undefined;
  /** JSON by version. */
  readonly #made = new Map<string, string>();
  readonly #failed = new Map<string, Error>();
  readonly #making = new Map<string, Making>();

  constructor(state: State | undefined) {
    this.#state = state;
  }

  /** The map as JSON; whoever asks first has it made, one after the other, and is told how far that is. */
  find(crew: Crew): string {
    const { version } = crew.summary;
    const made = this.#made.get(version) ?? this.#recall(version);
    if (made !== undefined) return made;
    const failed = this.#failed.get(version);
    if (failed) throw failed;
    if (this.#making.size === 0) this.#make(crew, version);
    const nothing: LabelMap = {
      ready: false,
      progress: this.#making.get(version)?.progress ?? 0,
      leftOut: 0,
      ...{ ids: [], names: [], samples: [], x: [], y: [] },
    };
    return JSON.stringify(nothing);
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#making.values(), ({ worker }) => worker.terminate()));
  }

  #recall(version: string): string | undefined {
    const row = this.#state?.database.get<{ map: string }>('select map from maps where version = ?', version);
    if (row) this.#remember(version, row.map);
    return row?.map;
  }

  #make(crew: Crew, version: string): void {
    const url = builtFile(import.meta.url.replace(/maps(\.[jt]s)$/, 'mapper$1'));
    const making = { worker: new Worker(url, { workerData: { folder: crew.folder } }), progress: 0 };
    this.#making.set(version, making);
    const fail = (error: unknown) => {
      this.#failed.set(version, renamePlaces(error, { [crew.folder]: crew.name }) as Error);
    };
    making.worker.on('message', (news: News) => {
      if ('progress' in news) making.progress = news.progress;
      else if ('failure' in news) fail(unpackError(news.failure));
      else this.#keep(version, news.map);
    });
    making.worker.once('error', fail);
    making.worker.once('exit', () => this.#making.delete(version));
  }

  #remember(version: string, map: string): void {
    // Of a retrained model the old map is of no use.
    if (this.#made.size > 3) this.#made.clear();
    this.#made.set(version, map);
  }

  #keep(version: string, map: string): void {
    this.#remember(version, map);
    this.#state?.database.run('insert or replace into maps values (?, ?)', version, map);
  }
}
