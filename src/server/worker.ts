// A thread that has loaded one model and answers what the crew asks. Answers are JSON already: the thread with the
// sockets only passes them on.
import { parentPort, workerData } from 'node:worker_threads';
import { datasetOf } from '../data/plain-samples.ts';
import type { Classifier } from '../learn/classifier.ts';
import type { Inputs } from '../learn/preparation.ts';
import { LabelIndex } from './labels.ts';
import { type Failure, packError } from './problem.ts';
import type {
  ExplainBody,
  Explained,
  Input,
  LabelsQuery,
  ModelDetail,
  Senses,
  SensesTop,
} from './schemas.ts';
import { loadServed } from './served.ts';

/** What can be asked; each kind has its answer in `Answers`. */
export type Ask =
  | { kind: 'suggest'; inputs: Input[]; top: number; threshold: number }
  | ({ kind: 'explain' } & ExplainBody)
  | ({ kind: 'labels' } & LabelsQuery)
  | { kind: 'label'; id: string }
  | { kind: 'names'; ids: string[] }
  | { kind: 'neighbours'; id: string; top: number }
  | { kind: 'similarities'; ids: string[] }
  /** Which labels are never suggested, where that differs from the saved model; to every thread. */
  | { kind: 'exclude'; changes: [id: string, excluded: boolean][] }
  | { kind: 'senses'; id: string }
  | { kind: 'sensesTop'; top: number };

/** JSON texts: of every input, or one; undefined for what does not exist. */
export interface Answers {
  suggest: string[];
  explain: string;
  labels: string;
  label: string | undefined;
  names: string;
  neighbours: string | undefined;
  similarities: string;
  /** How many labels are never suggested now. */
  exclude: number;
  senses: string | undefined;
  sensesTop: string;
}

/** What a model tells about itself when it is loaded. */
export type Loaded = Omit<ModelDetail, 'name' | 'loadedAt' | 'threads' | 'waiting' | 'evaluation'>;

export interface Order {
  id: number;
  asks: Ask[];
}
export type Outcome = { answer: Answers[Ask['kind']] } | { failure: Failure };
export type Message = { loaded: Loaded } | { failure: Failure } | { id: number; outcomes: Outcome[] };

async function run(folder: string, post: (message: Message) => void): Promise<void> {
  const { classifier, version } = await loadServed(folder);
  const { learner, vocabulary, features, rows, takesText, takesLabels, seed, options } = classifier;
  const labels = new LabelIndex(classifier);
  parentPort?.on('message', async ({ id, asks }: Order) => {
    post({ id, outcomes: await answerAll(classifier, labels, asks) });
  });
  const excluded = vocabulary.excludedIds.length;
  const sizes = { labels: vocabulary.size, features, samples: rows, excluded };
  post({ loaded: { version, learner, ...sizes, takesText, takesLabels, seed, settings: options } });
}

/** Suggestions of one message are made in one go, where they ask for as many labels. */
async function answerAll(classifier: Classifier, labels: LabelIndex, asks: Ask[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const groups = new Map<number, number[]>();
  for (const [i, ask] of asks.entries()) {
    if (ask.kind !== 'suggest') outcomes[i] = await attempt(() => answer(classifier, labels, ask));
    else groups.set(ask.top, [...(groups.get(ask.top) ?? []), i]);
  }
  for (const group of groups.values()) {
    const members = group.map((i) => asks[i] as Suggest);
    const whole = await attempt(() => suggest(classifier, members));
    for (const [at, i] of group.entries()) {
      // One bad input must not spoil the answers of the others.
      if ('answer' in whole) outcomes[i] = { answer: whole.answer[at] };
      else outcomes[i] = await attempt(async () => (await suggest(classifier, [members[at]]))[0]);
    }
  }
  return outcomes;
}

async function attempt<T>(action: () => T | Promise<T>): Promise<{ answer: T } | { failure: Failure }> {
  try {
    return { answer: await action() };
  } catch (error) {
    return { failure: packError(error) };
  }
}

export type Suggest = Extract<Ask, { kind: 'suggest' }>;

async function suggest(classifier: Classifier, asks: Suggest[]): Promise<string[][]> {
  const inputs = asks.flatMap((ask) => ask.inputs);
  const found = await classifier.suggest(toInputs(inputs), { top: asks[0].top });
  let row = 0;
  return asks.map(({ inputs, threshold }) =>
    inputs.map(({ id }) => {
      const labels = found[row++].filter(({ score }) => score >= threshold);
      return JSON.stringify({ id, labels });
    }),
  );
}

function toInputs(inputs: Input[]): Inputs {
  const texts = inputs.flatMap(({ text, features }) => (text !== undefined && !features ? [text] : []));
  return texts.length === inputs.length
    ? texts
    : datasetOf(inputs.map(({ text, features }) => ({ text, features })));
}

function answer(classifier: Classifier, labels: LabelIndex, ask: Exclude<Ask, Suggest>) {
  const { vocabulary } = classifier;
  switch (ask.kind) {
    case 'explain':
      return explain(classifier, ask);
    case 'labels':
      return JSON.stringify(labels.search(ask));
    case 'label': {
      const detail = labels.detail(ask.id);
      return detail && JSON.stringify(detail);
    }
    case 'names': {
      const known = ask.ids.filter((id) => vocabulary.column(id) !== undefined);
      const nameOf = (id: string) => vocabulary.name(vocabulary.column(id) ?? 0);
      return JSON.stringify(Object.fromEntries(known.map((id) => [id, nameOf(id)])));
    }
    case 'neighbours':
      return labels.neighbours(ask.id, ask.top);
    case 'similarities':
      return JSON.stringify(labels.similarities(ask.ids));
    case 'exclude':
      for (const [id, excluded] of ask.changes) {
        if (vocabulary.column(id) === undefined) continue;
        if (excluded) vocabulary.exclude([id]);
        else vocabulary.allow([id]);
      }
      return vocabulary.excludedIds.length;
    case 'senses': {
      const known = vocabulary.column(ask.id) !== undefined;
      return known ? JSON.stringify({ senses: classifier.senses(ask.id) } satisfies Senses) : undefined;
    }
    case 'sensesTop':
      return JSON.stringify({ labels: classifier.sensesTop(ask.top) } satisfies SensesTop);
    default:
      return ask satisfies never;
  }
}

async function explain(classifier: Classifier, { text, label, words = 20 }: ExplainBody): Promise<string> {
  const chosen = label ?? (await classifier.suggest([text], { top: 1 }))[0][0]?.label;
  if (chosen === undefined) {
    const none: Explained = { label: null, name: null, score: null, steps: [], spans: [] };
    return JSON.stringify(none);
  }
  const explanation = await classifier.explain([text], chosen);
  const explained: Explained = {
    label: chosen,
    name: classifier.vocabulary.name(classifier.vocabulary.column(chosen) ?? 0),
    score: explanation?.score ?? null,
    steps: (explanation?.steps ?? []).map(({ what, margin, bias, factor, contributions }) => ({
      what,
      margin,
      bias,
      factor,
      contributions: contributions
        .slice(0, words)
        .map(({ feature, value }) => ({ feature: classifier.featureName(feature), value })),
    })),
    spans: classifier
      .spans(text)
      .map(({ start, end, column }) => ({ start, end, feature: classifier.featureName(column) })),
  };
  return JSON.stringify(explained);
}

const post = (message: Message) => parentPort?.postMessage(message);
run((workerData as { folder: string }).folder, post).catch((error) => post({ failure: packError(error) }));
