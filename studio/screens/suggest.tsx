// Suggest: labels as one types, the words that pushed them, the way through the tree, two models side by side.
import { useEffect, useState } from 'preact/hooks';
import type { EvaluationReport, Explained, Suggestion } from '../../src/client.ts';
import { Evaluate } from '../evaluate.tsx';
import { Bar, count, Empty, Head, NoModel, Pending, percent, plural, Select } from '../parts.tsx';
import { address, go, useAnswer, useKeys, useSettled, useStudio } from '../use.ts';

const top = 20;
const draftName = 'umbel-draft';

export function Suggest() {
  const { model, models } = useStudio();
  const [text, setText] = useState(sessionStorage.getItem(draftName) ?? '');
  const [other, setOther] = useState('');
  const [threshold, setThreshold] = useState(0.1);
  const [chosen, setChosen] = useState<string>();
  const settled = useSettled(text, 120);
  useEffect(() => sessionStorage.setItem(draftName, settled), [settled]);
  const explained = useExplanation(model, settled, chosen);
  if (!model) return <NoModel />;
  const others = models.filter(({ name }) => name !== model);
  return (
    <>
      <Head title="Suggest" words="Type or paste a text. Labels appear as you type.">
        {others.length > 0 && (
          <Select
            name="Compare with"
            value={other}
            choices={[['', 'no other model'], ...others.map(({ name }) => [name, name] as const)]}
            onChoose={setOther}
          />
        )}
      </Head>
      <div class="suggest">
        <Writing text={text} onWrite={setText} explained={settled === text ? explained.value : undefined} />
        {settled.trim() !== '' && explained.value?.label && <Why explained={explained.value} />}
        <div class="answers stack">
          <label class="row">
            <span class="small">Show from</span>
            <input
              type="range"
              min="0"
              max="0.95"
              step="0.05"
              value={threshold}
              onInput={({ currentTarget }) => setThreshold(Number(currentTarget.value))}
            />
            <output class="number small">{percent(threshold)}</output>
          </label>
          <div class={other ? 'two' : 'stack'}>
            <Answers
              {...{ model, text: settled, threshold }}
              chosen={explained.value?.label ?? undefined}
              onChoose={setChosen}
            />
            {other && <Answers model={other} text={settled} threshold={threshold} second />}
          </div>
        </div>
      </div>
    </>
  );
}

function useExplanation(model: string, text: string, label: string | undefined) {
  const { client, models } = useStudio();
  const takesText = models.find(({ name }) => name === model)?.takesText ?? false;
  const isAsked = takesText && text.trim() !== '';
  return useAnswer(isAsked ? JSON.stringify([model, text, label]) : undefined, () =>
    // A model that cannot explain still suggests; one label may have been another model's.
    client
      .explain(model, text, { label })
      .catch(() => client.explain(model, text))
      .catch(() => undefined),
  );
}

/** The text, with what speaks for the chosen label marked in place. */
function Writing(props: { text: string; explained?: Explained; onWrite(text: string): void }) {
  const { text, explained, onWrite } = props;
  return (
    <div class="writing">
      <div class="behind" aria-hidden="true">
        {explained ? <Marked text={text} explained={explained} /> : text}
        {'\n'}
      </div>
      <textarea
        data-first
        aria-label="Text"
        placeholder="A history of the violin, from Cremona to the concert hall…"
        value={text}
        spellcheck={false}
        onInput={({ currentTarget }) => onWrite(currentTarget.value)}
      />
    </div>
  );
}

/** What each word adds over all steps; the larger counts as 1. */
function pushOf({ steps }: Explained): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { contributions } of steps)
    for (const { feature, value } of contributions) sums.set(feature, (sums.get(feature) ?? 0) + value);
  const most = Math.max(...Array.from(sums.values(), Math.abs), 1e-9);
  return new Map(Array.from(sums, ([feature, value]) => [feature, value / most]));
}

const strength = (push: number) => ({ '--strength': (0.15 + 0.7 * Math.abs(push)).toFixed(2) });

function Marked({ text, explained }: { text: string; explained: Explained }) {
  const push = pushOf(explained);
  const pieces = [];
  let end = 0;
  for (const span of [...explained.spans].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const value = push.get(span.feature) ?? 0;
    if (span.start < end || Math.abs(value) < 0.05) continue;
    pieces.push(text.slice(end, span.start));
    pieces.push(
      <mark key={span.start} class={value > 0 ? 'for' : 'against'} style={strength(value)}>
        {text.slice(span.start, span.end)}
      </mark>,
    );
    end = span.end;
  }
  return (
    <>
      {pieces}
      {text.slice(end)}
    </>
  );
}

function Why({ explained }: { explained: Explained }) {
  const words = Array.from(pushOf(explained))
    .filter(([, push]) => Math.abs(push) >= 0.01)
    .sort(([, a], [, b]) => Math.abs(b) - Math.abs(a));
  return (
    <section class="why panel stack" aria-label="Why">
      <h2>
        Why <q>{explained.name}</q>
      </h2>
      <div class="words">
        {words.slice(0, 12).map(([word, push]) => (
          <mark key={word} class={push > 0 ? 'for' : 'against'} style={strength(push)}>
            {word} {push > 0 ? '+' : '−'}
            {Math.round(100 * Math.abs(push))}
          </mark>
        ))}
        {words.length === 0 && <span class="soft">No word of this text speaks for it or against it.</span>}
      </div>
      {explained.steps.length > 1 && (
        <details>
          <summary>The way through the tree, {plural(explained.steps.length, 'step')}</summary>
          <ol class="steps small">
            {explained.steps.map(({ what, factor, contributions }, i) => (
              <li key={i} class="stack tight">
                <div class="row between">
                  <span>{what}</span>
                  <span class="number">{percent(factor)}</span>
                </div>
                <Bar share={factor} label={`${what}: ${percent(factor)}`} />
                <span class="soft">
                  {contributions
                    .slice(0, 5)
                    .map(({ feature }) => feature)
                    .join(', ')}
                </span>
              </li>
            ))}
          </ol>
        </details>
      )}
      <p class="soft small">
        {explained.score === null
          ? 'The label was out of reach for this text.'
          : 'Marked words push the label up; reddish ones push it down.'}{' '}
        <a href={address('labels', { label: explained.label ?? undefined })}>More about this label</a>
      </p>
    </section>
  );
}

/** How often scores like this one were right, where the model was evaluated. */
function calibrate(score: number, report: EvaluationReport | null | undefined): number {
  const bins = report?.calibration?.bins.filter((bin) => bin.count >= 20) ?? [];
  if (bins.length < 2) return score;
  const points = [{ x: 0, y: 0 }, ...bins.map((bin) => ({ x: bin.meanScore, y: bin.hitRate }))];
  const at = points.findIndex(({ x }) => x >= score);
  if (at <= 0) return at === 0 ? points[0].y : (points.at(-1)?.y ?? score);
  const [a, b] = [points[at - 1], points[at]];
  return a.y + ((b.y - a.y) * (score - a.x)) / (b.x - a.x || 1);
}

interface AnswersProps {
  model: string;
  text: string;
  threshold: number;
  second?: boolean;
  chosen?: string;
  onChoose?(label: string): void;
}

function Answers({ model, text, threshold, second = false, chosen, onChoose }: AnswersProps) {
  const { client } = useStudio();
  const isEmpty = text.trim() === '';
  const detail = useAnswer(model, () => client.model(model));
  const answer = useAnswer(isEmpty ? undefined : JSON.stringify([model, text]), () =>
    client.suggest(model, text, { top }),
  );
  const evaluation = detail.value?.evaluation;
  const rated = (answer.value ?? []).map((label) => ({
    ...label,
    share: calibrate(label.score, evaluation),
  }));
  const shown = rated.filter(({ share }) => share >= threshold);
  const move = (by: number) => {
    const at = shown.findIndex(({ label }) => label === chosen) + by;
    if (shown[at]) onChoose?.(shown[at].label);
  };
  useKeys(onChoose ? { ArrowDown: () => move(1), ArrowUp: () => move(-1) } : {});
  if (detail.value && !detail.value.takesText)
    return <Empty title="This model takes features, not text">Ask it over HTTP: POST /suggest.</Empty>;
  return (
    <section class="panel stack" aria-label={`Labels by ${model}`} aria-busy={answer.loading}>
      <div class="row between">
        <h2>{model}</h2>
        <span class="soft small">{detail.value && plural(detail.value.labels, 'label')}</span>
      </div>
      {isEmpty && <p class="soft">Type a few words, and the best of its labels are here.</p>}
      <Pending answer={answer} />
      {!isEmpty && answer.value?.length === 0 && (
        <p class="soft">No word of this text is known to the model.</p>
      )}
      <ul class="choices">
        {shown.map((label) => (
          <Row
            key={label.label}
            {...{ label, second }}
            current={label.label === chosen}
            onChoose={onChoose}
          />
        ))}
      </ul>
      {!isEmpty && rated.length > shown.length && (
        <p class="soft small">{plural(rated.length - shown.length, 'label')} below the threshold.</p>
      )}
      {!isEmpty && evaluation && (
        <p class="soft small">
          Bars tell how often such scores were right in {count(evaluation.n)} test texts.
        </p>
      )}
      {!isEmpty && evaluation === null && (
        <details class="small">
          <summary>Calibrate the bars</summary>
          <div class="option-fields">
            <Evaluate
              model={model}
              words="Bars are the scores of the model. Evaluated on a test file with labels, they tell how often such scores are right."
              afterwards="Evaluated."
              onEvaluated={detail.again}
            />
          </div>
        </details>
      )}
    </section>
  );
}

function Row(props: {
  label: Suggestion & { share: number };
  second: boolean;
  current: boolean;
  onChoose?(label: string): void;
}) {
  const { label, second, current, onChoose } = props;
  const content = (
    <>
      <span class="row between">
        <span>{label.name}</span>
        <span class="number small soft">{percent(label.share)}</span>
      </span>
      <Bar share={label.share} second={second} />
    </>
  );
  return (
    <li>
      <button
        type="button"
        aria-current={current}
        onClick={() => (onChoose ? onChoose(label.label) : go('labels', { label: label.label }))}
      >
        {content}
      </button>
    </li>
  );
}
