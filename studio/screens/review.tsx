// Review: predictions the model is unsure of, one at a time, to accept or reject with one key.
import { useState } from 'preact/hooks';
import type { Decision, ReviewItem } from '../../src/client.ts';
import {
  Bar,
  Empty,
  Field,
  Head,
  NoModel,
  NotKept,
  Pending,
  percent,
  plural,
  Select,
  Trouble,
  Working,
} from '../parts.tsx';
import { address, download, useAnswer, useInOrder, useKeys, useStudio } from '../use.ts';

export function Review() {
  const { client, model } = useStudio();
  const page = useAnswer(model || undefined, () => client.review(model, { limit: 100 }));
  const [decided, setDecided] = useState<{ item: ReviewItem; decision: Decision }[]>([]);
  const [error, setError] = useState<Error>();
  const inOrder = useInOrder();
  const done = new Set(decided.map(({ item }) => item.id));
  const open = (page.value?.items ?? []).filter(({ id }) => !done.has(id));
  const [item] = open;
  const decide = (decision: Decision) => {
    if (!item) return;
    const next = [...decided, { item, decision }];
    setDecided(next);
    inOrder(() => client.decide(model, item.id, decision)).then(() => {
      if (open.length > 1) return;
      setDecided([]);
      page.again();
    }, setError);
  };
  const undo = () => {
    const last = decided.at(-1);
    if (!last) return;
    setDecided(decided.slice(0, -1));
    inOrder(() => client.decide(model, last.item.id, null)).catch(setError);
  };
  useKeys({
    a: () => decide('accepted'),
    r: () => decide('rejected'),
    u: undo,
    ArrowRight: () => decide('accepted'),
    ArrowLeft: () => decide('rejected'),
  });
  if (!model) return <NoModel />;
  if (page.error) return <NotKept what="Decisions" error={page.error} />;
  if (!page.value) return <Pending answer={page} />;
  const tally = (decision: Decision) => decided.filter((one) => one.decision === decision).length;
  const accepted = page.value.accepted + tally('accepted');
  const rejected = page.value.rejected + tally('rejected');
  return (
    <>
      <Head title="Review" words="Predictions the model is unsure of. What you decide becomes training data.">
        <span class="soft small number" role="status">
          {plural(page.value.waiting - decided.length, 'prediction')} to go, {accepted} accepted, {rejected}{' '}
          rejected
        </span>
        <button
          type="button"
          disabled={accepted + rejected === 0}
          onClick={() =>
            client.reviewed(model).then((text) => download(`${model}-reviewed.jsonl`, text), setError)
          }
        >
          Export
        </button>
      </Head>
      <div class="stack">
        {error && <Trouble error={error} />}
        {item ? (
          <Card {...{ item }} onDecide={decide} onUndo={decided.length > 0 ? undo : undefined} />
        ) : (
          <Empty title={accepted + rejected > 0 ? 'All decided' : 'Nothing to review yet'}>
            <p>
              {accepted + rejected > 0 ? (
                <>
                  <a href={address('runs')}>Start a run</a> that adds what was reviewed, or find more below.
                </>
              ) : (
                'Let the model look through some texts below; what it is unsure of comes here.'
              )}
            </p>
          </Empty>
        )}
        <Fill isOpen={!item} onFilled={page.again} />
      </div>
    </>
  );
}

function Card(props: { item: ReviewItem; onDecide(decision: Decision): void; onUndo?(): void }) {
  const { item, onDecide, onUndo } = props;
  return (
    <section class="panel stack" aria-label="Prediction" aria-live="polite">
      <p class="card-text">{item.text}</p>
      <div class="stack tight">
        <div class="row between">
          <span>
            Is this <strong>{item.name}</strong>?
          </span>
          <span class="soft small number">the model says {percent(item.score)}</span>
        </div>
        <Bar share={item.score} />
      </div>
      <div class="row">
        <button type="button" class="main" onClick={() => onDecide('accepted')}>
          Yes <kbd>a</kbd>
        </button>
        <button type="button" onClick={() => onDecide('rejected')}>
          No <kbd>r</kbd>
        </button>
        <button type="button" class="plain" disabled={!onUndo} onClick={onUndo}>
          Undo <kbd>u</kbd>
        </button>
      </div>
    </section>
  );
}

function Fill({ isOpen, onFilled }: { isOpen: boolean; onFilled(): void }) {
  const { client, model } = useStudio();
  const data = useAnswer('data', () => client.data());
  const [source, setSource] = useState('');
  const [pasted, setPasted] = useState('');
  const [state, setState] = useState<'idle' | 'busy' | string | Error>('idle');
  const chosen = source || data.value?.[0]?.name || '';
  const fill = (event: Event) => {
    event.preventDefault();
    const texts = pasted.split('\n').filter((line) => line.trim() !== '');
    setState('busy');
    client
      .fillReview(model, texts.length > 0 ? { texts } : { data: chosen, sample: 2000 })
      .then(({ added }) => {
        setState(
          added > 0
            ? `${plural(added, 'prediction')} added.`
            : 'Nothing new: the model is sure of all of these.',
        );
        setPasted('');
        onFilled();
      }, setState);
  };
  return (
    <details class="panel" open={isOpen}>
      <summary>Find predictions to review</summary>
      <form class="stack option-fields" onSubmit={fill}>
        <div class="fields">
          {data.value && data.value.length > 0 && (
            <Select
              name="In some texts of"
              value={chosen}
              choices={data.value.map(({ name }) => [name, name])}
              onChoose={setSource}
            />
          )}
          <Field name="Or in your own texts, one per line">
            <textarea
              rows={3}
              value={pasted}
              onInput={({ currentTarget }) => setPasted(currentTarget.value)}
            />
          </Field>
        </div>
        {state === 'busy' && <Working words="The model looks through the texts…" />}
        {state instanceof Error && <Trouble error={state} />}
        {typeof state === 'string' && state !== 'idle' && state !== 'busy' && (
          <p class="soft" role="status">
            {state}
          </p>
        )}
        <div class="row">
          <button
            type="submit"
            class="main"
            disabled={state === 'busy' || (chosen === '' && pasted.trim() === '')}
          >
            Find
          </button>
        </div>
      </form>
    </details>
  );
}
