// Runs: start one from a form, watch it, compare several with their intervals, serve the best.
import { useEffect, useState } from 'preact/hooks';
import type { Run } from '../../src/client.ts';
import { Bar, count, Empty, Head, NotKept, Pending, percent, Trouble, Working } from '../parts.tsx';
import { Comparison } from '../run-comparison.tsx';
import { RunForm } from '../run-form.tsx';
import { useAnswer, useStudio } from '../use.ts';

const isLive = ({ status }: Run) => status === 'waiting' || status === 'running';

export function Runs() {
  const { client } = useStudio();
  const list = useAnswer('runs', () => client.runs());
  const [live, setLive] = useState<Record<number, Run>>({});
  const [chosen, setChosen] = useState<number[]>([]);
  const [form, setForm] = useState(false);
  const runs = (list.value ?? []).map((run) => live[run.id] ?? run);
  const watched = runs.filter(isLive).map(({ id }) => id);
  useWatching(watched, (run) => setLive((known) => ({ ...known, [run.id]: run })));
  const forget = () => {
    setLive({});
    list.again();
  };
  if (list.error) return <NotKept what="Runs" error={list.error} />;
  if (!list.value) return <Pending answer={list} />;
  const toggle = (id: number) =>
    setChosen(chosen.includes(id) ? chosen.filter((other) => other !== id) : [...chosen, id].slice(-4));
  const done = runs.filter(({ result }) => result !== null);
  const compared = chosen.length > 0 ? done.filter(({ id }) => chosen.includes(id)) : done.slice(0, 1);
  return (
    <>
      <Head title="Runs" words="Train models on the data of this server, and see how good they are.">
        <button type="button" class="main" data-first onClick={() => setForm(!form)} aria-expanded={form}>
          {form ? 'Close the form' : 'New run'}
        </button>
      </Head>
      <div class="stack">
        {form && (
          <RunForm
            onStart={() => {
              setForm(false);
              list.again();
            }}
          />
        )}
        {runs.length === 0 && !form && (
          <Empty title="No run yet">
            <p>Start one: choose data and a learner; its options have good defaults.</p>
            <button type="button" onClick={() => setForm(true)}>
              New run
            </button>
          </Empty>
        )}
        {runs.map((run) => (
          <RunCard
            key={run.id}
            run={run}
            isChosen={compared.includes(run)}
            onToggle={() => toggle(run.id)}
            onChange={forget}
          />
        ))}
        {compared.length > 0 && <Comparison runs={compared} />}
      </div>
    </>
  );
}

/** Follows runs until they have ended. */
function useWatching(ids: number[], onChange: (run: Run) => void): void {
  const { client } = useStudio();
  const key = ids.join(' ');
  useEffect(() => {
    const gone = new AbortController();
    for (const id of ids) {
      const follow = async () => {
        for await (const run of client.watchRun(id, gone.signal)) onChange(run);
      };
      // The server or the reader went away; the list tells the rest.
      follow().catch(() => {});
    }
    return () => gone.abort();
  }, [key]);
}

interface CardProps {
  run: Run;
  isChosen: boolean;
  onToggle(): void;
  onChange(): void;
}

function RunCard({ run, isChosen, onToggle, onChange }: CardProps) {
  const { spec, status, progress, result, error } = run;
  const changed = Object.entries(spec.options ?? {}).map(([name, value]) => `${name} ${value}`);
  const about = [spec.learner, spec.data, ...changed].join(' · ');
  return (
    <section class="panel stack tight" aria-label={`Run ${run.id}`}>
      <div class="row between">
        <div class="row">
          <h2>{spec.name || `Run ${run.id}`}</h2>
          <span class={`status ${status}`}>{status}</span>
          {run.served && <span class="status done">served as {run.served}</span>}
        </div>
        <div class="row">
          {result && (
            <label class="check small">
              <input type="checkbox" checked={isChosen} onChange={onToggle} /> Compare
            </label>
          )}
          <Actions run={run} onChange={onChange} />
        </div>
      </div>
      <p class="soft small">
        {about} · {new Date(run.created).toLocaleString()}
      </p>
      {status === 'waiting' && <Working words="Waits for its turn" />}
      {status === 'running' && (
        <Working
          share={progress?.total ? progress.done / progress.total : undefined}
          words={
            progress
              ? `${progress.phase}: ${count(progress.done)}${progress.total ? ` of ${count(progress.total)}` : ''} ${progress.unit}`
              : 'Starts'
          }
        />
      )}
      {error && <Trouble error={new Error(error)} />}
      {status === 'interrupted' && (
        <p class="soft">The server was stopped while this run was under way. Start it again.</p>
      )}
      {result && (
        <div class="row">
          <span class="number">
            P@1 <strong>{percent(result.report['P@1'], 1)}</strong>
          </span>
          <span class="soft small">
            {count(result.samples)} samples · {count(result.labels)} labels · trained in{' '}
            {result.seconds.train.toFixed(1)} s
          </span>
        </div>
      )}
      {result && <Bar share={result.report['P@1']} label={`P@1 ${percent(result.report['P@1'], 1)}`} />}
    </section>
  );
}

function Actions({ run, onChange }: { run: Run; onChange(): void }) {
  const { client, models, reloadModels } = useStudio();
  const [error, setError] = useState<Error>();
  const act = (action: Promise<unknown>) =>
    action.then(() => {
      setError(undefined);
      reloadModels();
      onChange();
    }, setError);
  const free = (name: string): string =>
    models.some((model) => model.name === name) ? free(`${name}-${run.id}`) : name;
  const serveName = free(
    (run.spec.name ?? '').replace(/[^\w.-]+/g, '-').replace(/^-+|-+$/g, '') || `run-${run.id}`,
  );
  return (
    <>
      {error && <Trouble error={error} />}
      {isLive(run) && (
        <button type="button" class="bad" onClick={() => act(client.cancelRun(run.id))}>
          Cancel
        </button>
      )}
      {run.status === 'done' && !run.served && (
        <button type="button" onClick={() => act(client.serveRun(run.id, serveName))}>
          Serve
        </button>
      )}
      {run.served && (
        <button type="button" onClick={() => act(client.unserveRun(run.id))}>
          Stop serving
        </button>
      )}
      {!isLive(run) && !run.served && (
        <button type="button" class="bad" onClick={() => act(client.removeRun(run.id))}>
          Remove
        </button>
      )}
    </>
  );
}
