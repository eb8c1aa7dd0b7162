// The form of a run, made from what the server says about its learners' options.
import { useState } from 'preact/hooks';
import type { DataEntry, LearnerList, RunSpec } from '../src/client.ts';
import { ColumnsField, Empty, Field, Pending, Select, Trouble, Working } from './parts.tsx';
import { useAnswer, useStudio } from './use.ts';

type Learner = LearnerList['learners'][number];
type Option = Learner['options'][string];
type Value = string | number | boolean;

export function RunForm({ onStart }: { onStart(): void }) {
  const { client, models } = useStudio();
  const learners = useAnswer('learners', () => client.learners());
  const data = useAnswer('data', () => client.data());
  const [spec, setSpec] = useState<RunSpec>({ data: '', learner: 'tree', curve: true });
  const [error, setError] = useState<Error>();
  if (!learners.value || !data.value) return <Pending answer={learners.value ? data : learners} />;
  const learner = learners.value.find(({ name }) => name === spec.learner) ?? learners.value[0];
  const chosen = spec.data || data.value[0]?.name || '';
  const change = (part: Partial<RunSpec>) => setSpec({ ...spec, ...part });
  const start = (event: Event) => {
    event.preventDefault();
    client.startRun({ ...spec, data: chosen, learner: learner.name }).then(onStart, setError);
  };
  return (
    <form class="panel stack" onSubmit={start} aria-label="New run">
      <h2>New run</h2>
      {data.value.length === 0 && (
        <Empty title="There is no data to train on">
          <p>Upload a file below, or name files when the server is started:</p>
          <code>umbel serve --state STATE --data titles=titles.csv</code>
        </Empty>
      )}
      <div class="fields">
        <Field name="Name">
          <input
            value={spec.name ?? ''}
            placeholder="For you to recognise it"
            maxLength={200}
            onInput={({ currentTarget }) => change({ name: currentTarget.value || undefined })}
          />
        </Field>
        {data.value.length > 0 && (
          <Select
            name="Data"
            value={chosen}
            choices={data.value.map(({ name, bytes }) => [name, `${name} (${size(bytes)})`])}
            onChoose={(name) => change({ data: name })}
          />
        )}
        <Select
          name="Learner"
          value={learner.name}
          choices={learners.value.map(({ name }) => [name, name])}
          help={learner.summary}
          onChoose={(name) => change({ learner: name, options: {} })}
        />
        <Field name="Seed" help="The same seed gives the same model.">
          <input
            type="number"
            step="1"
            value={spec.seed ?? 1}
            onInput={({ currentTarget }) => change({ seed: Number(currentTarget.value) })}
          />
        </Field>
        {models.length > 0 && (
          <Select
            name="Add what was reviewed"
            value={spec.reviewed ?? ''}
            choices={[['', 'nothing'], ...models.map(({ name }) => [name, `of ${name}`] as const)]}
            help="Accepted labels are added, rejected ones removed."
            onChoose={(name) => change({ reviewed: name || undefined })}
          />
        )}
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={spec.curve}
          onChange={({ currentTarget }) => change({ curve: currentTarget.checked })}
        />
        <span>
          Learning curve <span class="soft small">train on an eighth, a quarter and a half first</span>
        </span>
      </label>
      <OptionFields
        learner={learner}
        values={spec.options ?? {}}
        onChange={(options) => change({ options })}
      />
      {error && <Trouble error={error} />}
      <div class="row">
        <button type="submit" class="main" disabled={chosen === ''}>
          Start
        </button>
      </div>
      <Upload data={data.value} onDone={data.again} />
    </form>
  );
}

const size = (bytes: number) =>
  bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} KB` : `${(bytes / 1e6).toFixed(1)} MB`;

interface FieldsProps {
  learner: Learner;
  values: Record<string, Value>;
  onChange(values: Record<string, Value>): void;
}

function OptionFields({ learner, values, onChange }: FieldsProps) {
  const options = Object.entries(learner.options);
  const ofText = options.filter(([name]) => name.includes('.'));
  const own = options.filter(([name]) => !name.includes('.'));
  const set = (name: string, option: Option, value: Value) => {
    const { [name]: _, ...rest } = values;
    // What is as it was need not be said.
    onChange(value === option.default || value === '' ? rest : { ...rest, [name]: value });
  };
  const changed = (list: typeof options) => list.filter(([name]) => name in values).length;
  const groups = [
    [`Options of ${learner.name}`, own],
    ['Options of the input', ofText],
  ] as const;
  return (
    <>
      {groups
        .filter(([, list]) => list.length > 0)
        .map(([title, list]) => (
          <details key={title}>
            <summary>
              {title}{' '}
              <span class="soft small">
                {changed(list) > 0 ? `${changed(list)} changed` : 'all as usual'}
              </span>
            </summary>
            <div class="fields option-fields">
              {list.map(([name, option]) => (
                <OptionField
                  key={`${learner.name} ${name}`}
                  {...{ name, option }}
                  value={values[name] ?? option.default}
                  onSet={(value) => set(name, option, value)}
                />
              ))}
            </div>
          </details>
        ))}
    </>
  );
}

function OptionField(props: { name: string; option: Option; value: Value; onSet(value: Value): void }) {
  const { name, option, value, onSet } = props;
  switch (option.kind) {
    case 'flag':
      return (
        <label class="check">
          <input
            type="checkbox"
            checked={value === true}
            onChange={({ currentTarget }) => onSet(currentTarget.checked)}
          />
          <span class="field">
            <span>{name}</span>
            <small>{option.help}</small>
          </span>
        </label>
      );
    case 'choice':
      return (
        <Select
          name={name}
          value={String(value)}
          choices={option.choices.map((choice) => [choice, choice])}
          help={option.help}
          onChoose={onSet}
        />
      );
    // Texts may name files of the server: it does not offer them.
    case 'text':
      return null;
    default:
      return (
        <Field name={name} help={option.help}>
          <input
            type="number"
            value={Number(value)}
            min={option.min}
            max={option.max}
            step={option.kind === 'integer' ? 1 : 'any'}
            onInput={({ currentTarget }) =>
              onSet(currentTarget.value === '' ? '' : Number(currentTarget.value))
            }
          />
        </Field>
      );
  }
}

/** Data of the reader's, kept by the server. */
function Upload({ data, onDone }: { data: DataEntry[]; onDone(): void }) {
  const { client } = useStudio();
  const [state, setState] = useState<'idle' | 'busy' | Error>('idle');
  const [columns, setColumns] = useState('');
  const send = (file: File | undefined) => {
    if (!file) return;
    const [, stem = 'data', ending = ''] = /^(.*?)\.([^.]*)$/.exec(file.name) ?? [];
    const format = ending === 'csv' || ending === 'tsv' ? ending : 'jsonl';
    const name = stem.replace(/[^\w.-]+/g, '-').replace(/^[-.]+/, '') || 'data';
    setState('busy');
    client.addData(name, file, { format, columns: columns || undefined }).then(() => {
      setState('idle');
      onDone();
    }, setState);
  };
  const uploads = data.filter(({ added }) => added !== null);
  return (
    <details>
      <summary>Upload data</summary>
      <div class="stack option-fields">
        <p class="soft small">
          JSON lines with <code>text</code> and <code>labels</code>, or a table (CSV, TSV) with columns of
          these names.
        </p>
        <div class="fields">
          <ColumnsField help="Where they have other names." value={columns} change={setColumns} />
          <Field name="File">
            <input type="file" onChange={({ currentTarget }) => send(currentTarget.files?.[0])} />
          </Field>
        </div>
        {state === 'busy' && <Working words="Uploading…" />}
        {state instanceof Error && <Trouble error={state} />}
        <div class="chips">
          {uploads.map(({ name }) => (
            <button
              key={name}
              type="button"
              class="chip"
              onClick={() => client.removeData(name).then(onDone, setState)}
            >
              Remove {name}
            </button>
          ))}
        </div>
      </div>
    </details>
  );
}
