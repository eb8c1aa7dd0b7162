// Labels: search all of them, and look at one: how frequent, how good, near whom, in which senses; exclude it, or add
// another.
import { useState } from 'preact/hooks';
import type { LabelDetail, Senses } from '../../src/client.ts';
import { Evaluate } from '../evaluate.tsx';
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
  Search,
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
          <Search
            value={search}
            placeholder="Words of a name, or an id"
            onSearch={(words) => {
              setSearch(words);
              setLimit(pageSize);
            }}
            onEnter={() => labels[0] && go('labels', { label: labels[0].id })}
          />
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
          <AddLabel onAdded={page.again} />
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

/** For models that know labels by their names; others would have to be trained again. */
function AddLabel({ onAdded }: { onAdded(): void }) {
  const { client, model, models, reloadModels } = useStudio();
  const [label, setLabel] = useState({ name: '', id: '', examples: '' });
  const [state, setState] = useState<'idle' | 'busy' | Error>('idle');
  const change = (part: Partial<typeof label>) => setLabel({ ...label, ...part });
  if (!models.find(({ name }) => name === model)?.takesLabels)
    return (
      <p class="soft small">
        New labels need training here. A model of the learner <code>prime</code> takes them by their names.
      </p>
    );
  const add = (event: Event) => {
    event.preventDefault();
    const [name, id] = [label.name.trim(), label.id.trim() || undefined];
    const examples = label.examples.split('\n').filter((line) => line.trim() !== '');
    setState('busy');
    client.addLabel(model, { name, id, examples }).then((added) => {
      setState('idle');
      setLabel({ name: '', id: '', examples: '' });
      onAdded();
      reloadModels();
      go('labels', { label: added.id });
    }, setState);
  };
  return (
    <details>
      <summary>Add a label</summary>
      <form class="stack option-fields" onSubmit={add}>
        <Field name="Name of the label">
          <input
            required
            maxLength={1000}
            value={label.name}
            onInput={({ currentTarget }) => change({ name: currentTarget.value })}
          />
        </Field>
        <Field name="Id" help="Its name, if left empty.">
          <input
            maxLength={1000}
            value={label.id}
            onInput={({ currentTarget }) => change({ id: currentTarget.value })}
          />
        </Field>
        <Field name="Examples" help="Texts that carry it, one per line; the more, the better it is known.">
          <textarea
            rows={4}
            value={label.examples}
            onInput={({ currentTarget }) => change({ examples: currentTarget.value })}
          />
        </Field>
        {state instanceof Error && <Trouble error={state} />}
        {state === 'busy' && <Working words="The model takes it up, and is loaded again…" />}
        <div class="row">
          <button type="submit" class="main" disabled={state === 'busy' || label.name.trim() === ''}>
            Add
          </button>
        </div>
      </form>
    </details>
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
      {!quality && (
        <Evaluate
          words="How good the model is at this label is not known: evaluate it on a test file with labels."
          afterwards="The test file has no sample of this label, and it was suggested for none."
          onEvaluated={onEvaluated}
        />
      )}
    </>
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
