// Labels: search all of them, and look at one: how frequent, how good, near whom, in which senses; exclude it.
import { useState } from 'preact/hooks';
import type { LabelDetail, Senses } from '../../src/client.ts';
import {
  Bar,
  count,
  Empty,
  Field,
  Head,
  LabelLink,
  NoModel,
  Pending,
  percent,
  plural,
  Trouble,
  Working,
} from '../parts.tsx';
import { go, useAnswer, useKeys, usePlace, useStudio } from '../use.ts';

const pageSize = 60;

export function Labels() {
  const { client, model } = useStudio();
  const { query } = usePlace();
  const id = query.get('label') ?? undefined;
  const [search, setSearch] = useState('');
  const [limit, setLimit] = useState(pageSize);
  const page = useAnswer(model && JSON.stringify([model, search, limit]), () =>
    client.labels(model, { search, limit }),
  );
  const labels = page.value?.labels ?? [];
  const move = (by: number) => {
    const next = labels[labels.findIndex((label) => label.id === id) + by];
    if (next) go('labels', { label: next.id });
  };
  useKeys({ ArrowDown: () => move(1), ArrowUp: () => move(-1) });
  if (!model) return <NoModel />;
  return (
    <>
      <Head
        title="Labels"
        words="What the model can say: how often it saw each label, and how well it knows it."
      />
      <div class="list-detail">
        <div class="panel stack">
          <Field name="Search">
            <input
              type="search"
              data-first
              value={search}
              placeholder="Words of a name, or an id"
              onInput={({ currentTarget }) => {
                setSearch(currentTarget.value);
                setLimit(pageSize);
              }}
              onKeyDown={({ key }) => key === 'Enter' && labels[0] && go('labels', { label: labels[0].id })}
            />
          </Field>
          <p class="soft small" role="status">
            {page.value &&
              (search
                ? `${plural(page.value.found, 'label')} found`
                : `${plural(page.value.found, 'label')}, the most frequent first`)}
          </p>
          <Pending answer={page} />
          <div class="scrolls">
            <ul class="choices">
              {labels.map((label) => (
                <li key={label.id}>
                  <button
                    type="button"
                    class={label.excluded ? 'faint' : ''}
                    aria-current={label.id === id}
                    onClick={() => go('labels', { label: label.id })}
                  >
                    <span class="row between">
                      <span>{label.name}</span>
                      <span class="number small soft">
                        {label.excluded ? 'excluded' : count(label.samples)}
                      </span>
                    </span>
                  </button>
                </li>
              ))}
            </ul>
            {page.value && page.value.found > labels.length && (
              <button type="button" class="plain" onClick={() => setLimit(limit + 10 * pageSize)}>
                Show more
              </button>
            )}
          </div>
        </div>
        {id === undefined ? (
          <Empty title="Choose a label">
            <p>Search by words of its name, then look at its frequency, quality, neighbours and senses.</p>
          </Empty>
        ) : (
          <Detail key={id} id={id} onChange={page.again} />
        )}
      </div>
    </>
  );
}

function Detail({ id, onChange }: { id: string; onChange(): void }) {
  const { client, model } = useStudio();
  const detail = useAnswer(`${model} ${id}`, () => client.label(model, id));
  const [error, setError] = useState<Error>();
  const { value } = detail;
  if (!value) return <Pending answer={detail} />;
  const change = () =>
    client.exclude(model, id, !value.excluded).then(() => {
      detail.again();
      onChange();
    }, setError);
  return (
    <div class="stack">
      <section class="panel stack" aria-label="The label">
        <div class="row between">
          <h2>{value.name}</h2>
          <button type="button" class={value.excluded ? '' : 'bad'} onClick={change}>
            {value.excluded ? 'Suggest it again' : 'Never suggest it'}
          </button>
        </div>
        {error && <Trouble error={error} />}
        <p class="soft small">
          <code>{value.id}</code>
          {value.altNames && value.altNames.length > 0 && ` · also ${value.altNames.join(', ')}`}
        </p>
        <Facts label={value} onEvaluated={detail.again} />
        {(value.broader.length > 0 || value.narrower.length > 0) && (
          <div class="two">
            <Relatives title="Broader" labels={value.broader} />
            <Relatives title="Narrower" labels={value.narrower} />
          </div>
        )}
      </section>
      <Neighbours id={id} />
      <SensesOf id={id} />
    </div>
  );
}

function Facts({ label, onEvaluated }: { label: LabelDetail; onEvaluated(): void }) {
  const { quality, samples } = label;
  const share = (value: number | null) => (value === null ? '–' : percent(value));
  return (
    <>
      <dl class="facts">
        <div>
          <dt>Training samples</dt>
          <dd>{count(samples)}</dd>
        </div>
        {quality && (
          <>
            <div>
              <dt>Found, of {count(quality.positives)} in the test</dt>
              <dd>{share(quality.recall)}</dd>
            </div>
            <div>
              <dt>Right, of {count(quality.predicted)} suggested</dt>
              <dd>{share(quality.precision)}</dd>
            </div>
          </>
        )}
      </dl>
      {!quality && <Evaluate onEvaluated={onEvaluated} />}
    </>
  );
}

const formatOf: Record<string, 'jsonl' | 'csv' | 'tsv' | 'svmlight' | 'xmc'> = {
  jsonl: 'jsonl',
  ndjson: 'jsonl',
  csv: 'csv',
  tsv: 'tsv',
  svm: 'svmlight',
  txt: 'xmc',
};

/** How good a label is can only be told with a test file. */
function Evaluate({ onEvaluated }: { onEvaluated(): void }) {
  const { client, model } = useStudio();
  const [state, setState] = useState<'idle' | 'busy' | 'done' | Error>('idle');
  const send = (file: File | undefined) => {
    if (!file) return;
    setState('busy');
    const format = formatOf[file.name.split('.').pop() ?? ''] ?? 'jsonl';
    client.evaluate(model, file, { format, resamples: 100 }).then(() => {
      setState('done');
      onEvaluated();
    }, setState);
  };
  return (
    <div class="stack tight">
      <p class="soft small">
        {state === 'done'
          ? 'The test file has no sample of this label, and it was suggested for none.'
          : 'How good the model is at this label is not known: evaluate it on a test file with labels.'}
      </p>
      {state === 'busy' ? (
        <Working words="Evaluating…" />
      ) : (
        <Field name="Test file (JSONL, CSV, TSV)">
          <input type="file" onChange={({ currentTarget }) => send(currentTarget.files?.[0])} />
        </Field>
      )}
      {state instanceof Error && <Trouble error={state} />}
    </div>
  );
}

function Relatives({ title, labels }: { title: string; labels: { id: string; name: string }[] }) {
  return (
    <div class="stack tight">
      <h3>{title}</h3>
      <div class="chips">
        {labels.slice(0, 24).map(({ id, name }) => (
          <LabelLink key={id} id={id} name={name} />
        ))}
        {labels.length > 24 && <span class="soft small">and more</span>}
        {labels.length === 0 && <span class="soft small">none</span>}
      </div>
    </div>
  );
}

function Neighbours({ id }: { id: string }) {
  const { client, model } = useStudio();
  const near = useAnswer(`${model} ${id}`, () => client.neighbours(model, id, 12));
  return (
    <section class="panel stack" aria-label="Neighbours">
      <h2>Neighbours</h2>
      <p class="soft small">Labels that the same words speak for.</p>
      <Pending answer={near} />
      <ul class="choices">
        {near.value?.map(({ label, name, similarity }) => (
          <li key={label}>
            <button type="button" onClick={() => go('labels', { label })}>
              <span class="row between">
                <span>{name}</span>
                <span class="number small soft">{similarity.toFixed(2)}</span>
              </span>
              <Bar share={similarity} second />
            </button>
          </li>
        ))}
      </ul>
      {near.value?.length === 0 && <p class="soft">No other label has words in common with it.</p>}
    </section>
  );
}

function SensesOf({ id }: { id: string }) {
  const { client, model } = useStudio();
  const senses = useAnswer(`${model} ${id}`, () => client.senses(model, id));
  return (
    <section class="panel stack" aria-label="Senses">
      <h2>Senses</h2>
      {senses.error && (
        <p class="soft">
          This model keeps every label in one place. Trained with <code>overlap=true</code>, it would tell the
          meanings of labels apart.
        </p>
      )}
      {!senses.error && <Pending answer={senses} />}
      <div class="two">
        {senses.value?.map((sense) => (
          <Sense key={`${sense.tree} ${sense.cluster}`} sense={sense} />
        ))}
      </div>
    </section>
  );
}

function Sense({ sense }: { sense: Senses['senses'][number] }) {
  return (
    <div class="stack tight">
      <h3>
        {sense.rows > 0 ? `${plural(sense.rows, 'sample')}, ${percent(sense.share)}` : 'Hardly any samples'}
      </h3>
      <div class="words">
        {sense.words.slice(0, 8).map(({ word }) => (
          <mark key={word} class="for">
            {word}
          </mark>
        ))}
      </div>
      <ul class="stack tight small">
        {sense.examples.map((text) => (
          <li key={text}>“{text}”</li>
        ))}
      </ul>
      <div class="chips">
        {sense.neighbours.slice(0, 6).map(({ label, name }) => (
          <LabelLink key={label} id={label} name={name} />
        ))}
      </div>
    </div>
  );
}
