// Small parts that all screens share: bars, empty states, problems, fields.
import type { ComponentChildren } from 'preact';
import type { ServerError } from '../src/client.ts';
import { type Answer, address } from './use.ts';

const numbers = new Intl.NumberFormat('en');
export const count = (value: number): string => numbers.format(value);
export const percent = (value: number, digits = 0): string => `${(100 * value).toFixed(digits)}%`;
export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

export function Bar({ share, second = false, label }: { share: number; second?: boolean; label?: string }) {
  const aria = label
    ? ({
        role: 'meter',
        'aria-label': label,
        'aria-valuemin': 0,
        'aria-valuemax': 1,
        'aria-valuenow': share,
      } as const)
    : ({ 'aria-hidden': true } as const);
  return (
    <div class={second ? 'bar second' : 'bar'} {...aria}>
      <i style={{ transform: `scaleX(${Math.max(0, Math.min(1, share))})` }} />
    </div>
  );
}

/** Progress of something long; of unknown length where there is no share. */
export function Working({ share, words }: { share?: number; words: string }) {
  return (
    <div class="stack tight" role="status">
      <span class="soft small">{words}</span>
      <div class={share === undefined ? 'bar unknown' : 'bar'}>
        <i style={share === undefined ? {} : { transform: `scaleX(${share})` }} />
      </div>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Trouble({ error }: { error: Error }) {
  const { hint } = error as Partial<ServerError>;
  const words =
    error instanceof TypeError ? 'The server does not answer. Is it still running?' : error.message;
  return (
    <p class="problem" role="alert">
      {words}
      {hint && !words.includes(hint) && (
        <>
          {' '}
          Try: <code>{hint}</code>
        </>
      )}
    </p>
  );
}

/** An answer that is not there yet, or never will be. */
export function Pending({ answer, words = 'One moment…' }: { answer: Answer<unknown>; words?: string }) {
  if (answer.error) return <Trouble error={answer.error} />;
  return answer.loading && answer.value === undefined ? <p class="loading">{words}</p> : null;
}

/** Where nothing is kept, says how to start the server so that it is. */
export function NotKept({ what, error }: { what: string; error: Error }) {
  if ((error as Partial<ServerError>).code !== 'no-state') return <Trouble error={error} />;
  return (
    <Empty title={`${what} need a place to be kept`}>
      <p>Start the server with a folder for them, and come back:</p>
      <code>umbel serve --model MODEL --state STATE --data titles=titles.csv</code>
    </Empty>
  );
}

export function Head({
  title,
  words,
  children,
}: {
  title: string;
  words?: string;
  children?: ComponentChildren;
}) {
  return (
    <header class="head">
      <div>
        <h1>{title}</h1>
        {words && <p>{words}</p>}
      </div>
      {children && <div class="row">{children}</div>}
    </header>
  );
}

export function Field({
  name,
  help,
  children,
}: {
  name: string;
  help?: string;
  children: ComponentChildren;
}) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is among the children
    <label class="field">
      <span>{name}</span>
      {children}
      {help && <small>{help}</small>}
    </label>
  );
}

/** The search of a screen: `/` goes there, Enter takes the first that was found. */
export function Search(props: {
  value: string;
  placeholder: string;
  onSearch(words: string): void;
  onEnter?(): void;
}) {
  return (
    <Field name="Search">
      <input
        type="search"
        data-first
        value={props.value}
        placeholder={props.placeholder}
        onInput={({ currentTarget }) => props.onSearch(currentTarget.value)}
        onKeyDown={({ key }) => key === 'Enter' && props.onEnter?.()}
      />
    </Field>
  );
}

export function Choice<T extends string>(props: {
  name: string;
  value: T;
  choices: readonly (readonly [NoInfer<T>, string])[];
  onChoose(value: T): void;
}) {
  return (
    <fieldset class="switch">
      <legend class="visually-hidden">{props.name}</legend>
      {props.choices.map(([value, words]) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === props.value}
          onClick={() => props.onChoose(value)}
        >
          {words}
        </button>
      ))}
    </fieldset>
  );
}

export function Select(props: {
  name: string;
  value: string;
  choices: readonly (readonly [string, string])[];
  onChoose(value: string): void;
  help?: string;
}) {
  return (
    <Field name={props.name} help={props.help}>
      <select value={props.value} onChange={({ currentTarget }) => props.onChoose(currentTarget.value)}>
        {props.choices.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** What is wider than the page scrolls, by keys too. */
export function Wide({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keys
    <section class="table-wrap" tabIndex={0} aria-label={name}>
      {children}
    </section>
  );
}

export const LabelLink = ({ id, name }: { id: string; name: string }) => (
  <a class="button chip" href={address('labels', { label: id })}>
    {name}
  </a>
);

export const NoModel = () => (
  <Empty title="No model is served yet">
    <p>Train one and serve it, or start a run and serve its model:</p>
    <code>umbel train --train titles.csv --out model && umbel serve --model model</code>
    <p>
      <a href={address('runs')}>Go to runs</a>
    </p>
  </Empty>
);

/** Which columns of a table hold the texts and the labels. */
export function ColumnsField({
  help,
  value,
  change,
}: {
  help: string;
  value: string;
  change: (columns: string) => void;
}) {
  return (
    <Field name="Columns of a table" help={help}>
      <input
        value={value}
        placeholder="text=title,labels=subjects"
        onInput={({ currentTarget }) => change(currentTarget.value)}
      />
    </Field>
  );
}
