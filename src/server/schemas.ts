// The shapes of requests and answers: validators, TypeScript types (also the client's) and the OpenAPI document are
// all made from these.
import { type Static, Type } from 'typebox';
import type { Report } from '../judge/evaluate.ts';
import type { OptionTable } from '../options.ts';

export const strict = { additionalProperties: false };

export const ErrorBody = Type.Object({
  error: Type.Object({
    code: Type.String({ description: 'input, usage, not-found, overloaded, ...' }),
    message: Type.String({ description: 'The rule that was broken and the value seen.' }),
    value: Type.Optional(Type.String()),
    hint: Type.Optional(Type.String({ description: 'What to do next.' })),
  }),
});
export type ErrorBody = Static<typeof ErrorBody>;

export const ModelParams = Type.Object({ model: Type.String({ description: 'Name of a model.' }) });
export const LabelParams = Type.Object({
  ...ModelParams.properties,
  label: Type.String({ description: 'Id of a label.' }),
});

const inputFields = {
  text: Type.Optional(Type.String({ description: 'For models trained on text.' })),
  features: Type.Optional(
    Type.Union([Type.Record(Type.String(), Type.Number()), Type.Array(Type.Number())], {
      description: 'For models trained on features: values by column, or a list.',
    }),
  ),
};
const suggestFields = {
  top: Type.Optional(Type.Integer({ minimum: 1, default: 5, description: 'How many labels at most.' })),
  threshold: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1, default: 0, description: 'Leave out labels that score lower.' }),
  ),
};

export const Input = Type.Object(
  { id: Type.Optional(Type.String({ description: 'Comes back with the answer.' })), ...inputFields },
  strict,
);
export type Input = Static<typeof Input>;
export const SuggestBody = Type.Object({ ...inputFields, ...suggestFields }, strict);
export const SuggestQuery = Type.Object(suggestFields, strict);
export type SuggestQuery = Static<typeof SuggestQuery>;

export const Suggestion = Type.Object({
  label: Type.String({ description: 'The stable id.' }),
  name: Type.String(),
  score: Type.Number({ minimum: 0, maximum: 1 }),
});
export type Suggestion = Static<typeof Suggestion>;
export const Suggestions = Type.Object({ id: Type.Optional(Type.String()), labels: Type.Array(Suggestion) });
export type Suggestions = Static<typeof Suggestions>;
/** A line of a streamed answer: the suggestions, or why there are none. */
export type StreamedLine = Suggestions | (ErrorBody & { id?: string; line: number });

export const ExplainBody = Type.Object(
  {
    text: Type.String(),
    label: Type.Optional(Type.String({ description: 'Id of the label to explain; the best one if absent.' })),
    words: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, default: 20, description: 'Words per step.' }),
    ),
  },
  strict,
);
export type ExplainBody = Static<typeof ExplainBody>;
export const Explained = Type.Object({
  label: Type.Union([Type.String(), Type.Null()], {
    description: 'Null where no word of the text is known.',
  }),
  name: Type.Union([Type.String(), Type.Null()]),
  score: Type.Union([Type.Number(), Type.Null()], { description: 'Null where the label was out of reach.' }),
  steps: Type.Array(
    Type.Object({
      what: Type.String({ description: 'label, or a level and node of the tree.' }),
      margin: Type.Number({ description: 'The bias plus all contributions.' }),
      bias: Type.Number(),
      factor: Type.Number({ description: 'The score is the product of these.' }),
      contributions: Type.Array(Type.Object({ feature: Type.String(), value: Type.Number() })),
    }),
  ),
  spans: Type.Array(Type.Object({ start: Type.Integer(), end: Type.Integer(), feature: Type.String() }), {
    description: 'Where the features are in the text.',
  }),
});
export type Explained = Static<typeof Explained>;

export const LabelsQuery = Type.Object(
  {
    search: Type.Optional(
      Type.String({ maxLength: 1000, description: 'Beginning of an id, or words of a name.' }),
    ),
    offset: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 20 })),
  },
  strict,
);
export type LabelsQuery = Static<typeof LabelsQuery>;
export const Label = Type.Object({
  id: Type.String(),
  name: Type.String(),
  altNames: Type.Optional(Type.Array(Type.String())),
  samples: Type.Integer({ description: 'Training samples that carry it.' }),
  excluded: Type.Boolean({ description: 'Whether it is never suggested.' }),
});
export type Label = Static<typeof Label>;
export const LabelPage = Type.Object({
  found: Type.Integer(),
  offset: Type.Integer(),
  labels: Type.Array(Label),
});
export type LabelPage = Static<typeof LabelPage>;
export const Quality = Type.Object({
  k: Type.Integer({ description: 'Suggestions per sample that count.' }),
  positives: Type.Integer({ description: 'Test samples that carry the label.' }),
  predicted: Type.Integer({ description: 'Test samples it was suggested for.' }),
  hits: Type.Integer({ description: 'Test samples where both are so.' }),
  precision: Type.Union([Type.Number(), Type.Null()]),
  recall: Type.Union([Type.Number(), Type.Null()]),
});
export type Quality = Static<typeof Quality>;
export const Neighbours = Type.Object({
  neighbours: Type.Array(
    Type.Object({
      label: Type.String(),
      name: Type.String(),
      similarity: Type.Number({ description: 'Cosine of what speaks for the two, from 0 to 1.' }),
    }),
  ),
});
export type Neighbours = Static<typeof Neighbours>;
export const NeighboursQuery = Type.Object(
  { top: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 20 })) },
  strict,
);
/** More do not fit into a picture. */
const mostCompared = 100;
export const SimilaritiesBody = Type.Object(
  { labels: Type.Array(Type.String(), { minItems: 1, maxItems: mostCompared, description: 'Ids.' }) },
  strict,
);
export const Similarities = Type.Object({
  labels: Type.Array(Type.Object({ id: Type.String(), name: Type.String() })),
  matrix: Type.Array(Type.Array(Type.Number()), { description: 'Cosines, in the order of the labels.' }),
});
export type Similarities = Static<typeof Similarities>;
export const AddLabelBody = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 1000, description: 'What the label is called.' }),
    id: Type.Optional(Type.String({ minLength: 1, maxLength: 1000, description: 'The name, if absent.' })),
    examples: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        maxItems: 1000,
        description: 'Texts of samples that carry it.',
      }),
    ),
  },
  strict,
);
export type AddLabelBody = Static<typeof AddLabelBody>;
export const ExcludeBody = Type.Object({ excluded: Type.Boolean() }, strict);
export const LabelMap = Type.Object({
  ready: Type.Boolean(),
  progress: Type.Number({ description: 'From 0 to 1, while it is being made.' }),
  leftOut: Type.Integer({
    description:
      'Labels that no training sample carries, that are like no other, or beyond the first 100,000.',
  }),
  ids: Type.Array(Type.String()),
  names: Type.Array(Type.String()),
  samples: Type.Array(Type.Integer()),
  x: Type.Array(Type.Number(), { description: 'From 0 to 1, like labels near each other.' }),
  y: Type.Array(Type.Number()),
});
export type LabelMap = Static<typeof LabelMap>;

export const LabelDetail = Type.Object({
  ...Label.properties,
  quality: Type.Union([Quality, Type.Null()], {
    description: 'In the last evaluation; null where none met the label.',
  }),
  broader: Type.Array(Label, { description: 'Its parents in the vocabulary.' }),
  narrower: Type.Array(Label, { description: 'Labels that name it as a parent; the first hundred.' }),
});
export type LabelDetail = Static<typeof LabelDetail>;

export const Senses = Type.Object({
  senses: Type.Array(
    Type.Object({
      tree: Type.Integer(),
      cluster: Type.Integer(),
      rows: Type.Integer({ description: 'Training samples of this sense.' }),
      share: Type.Number(),
      words: Type.Array(
        Type.Object({ word: Type.String(), weight: Type.Number(), elsewhere: Type.Number() }),
        {
          description:
            'Words that speak for the label here; elsewhere: the most they weigh in another sense.',
        },
      ),
      neighbours: Type.Array(
        Type.Object({ label: Type.String(), name: Type.String(), similarity: Type.Number() }),
        { description: 'The other labels here, the most similar first.' },
      ),
      examples: Type.Array(Type.String(), { description: 'Training texts of this sense, the surest first.' }),
    }),
  ),
});
export type Senses = Static<typeof Senses>;
export const SensesQuery = Type.Object(
  { top: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 50 })) },
  strict,
);
export const SensesTop = Type.Object({
  labels: Type.Array(
    Type.Object({
      label: Type.String(),
      name: Type.String(),
      apart: Type.Number({ description: 'How far the senses lie apart, from 0 to 1.' }),
    }),
  ),
});
export type SensesTop = Static<typeof SensesTop>;

export const ModelSummary = Type.Object({
  name: Type.String(),
  version: Type.String({ description: 'Checksum of the saved model.' }),
  learner: Type.String(),
  labels: Type.Integer(),
  features: Type.Integer(),
  samples: Type.Integer({ description: 'It was trained on so many.' }),
  takesText: Type.Boolean(),
  takesLabels: Type.Boolean({ description: 'Whether labels can be added without training.' }),
  loadedAt: Type.String({ format: 'date-time' }),
});
export type ModelSummary = Static<typeof ModelSummary>;
export const ModelList = Type.Object({ models: Type.Array(ModelSummary) });
export type ModelList = Static<typeof ModelList>;

/** Every metric of `umbel evaluate --json`. */
export type EvaluationReport = Report & {
  unknownLabels: number;
  seconds: number;
  microsecondsPerInput: number;
  version: string;
  notes: string[];
};
export const EvaluationReport = Type.Unsafe<EvaluationReport>(
  Type.Object(
    {
      n: Type.Integer(),
      labels: Type.Integer(),
      'P@1': Type.Number(),
      'nDCG@5': Type.Number(),
      microF1: Type.Number(),
      unknownLabels: Type.Number({ description: 'Share of the true labels that the model does not know.' }),
      version: Type.String({ description: 'Of the model that was evaluated.' }),
      notes: Type.Array(Type.String(), { description: 'What was taken for granted about the file.' }),
    },
    { additionalProperties: true, description: 'Every metric of umbel evaluate --json.' },
  ),
);
export const ModelDetail = Type.Object({
  ...ModelSummary.properties,
  seed: Type.Integer(),
  settings: Type.Record(Type.String(), Type.Unknown(), { description: 'Options of the learner.' }),
  excluded: Type.Integer({ description: 'Labels that are never suggested.' }),
  threads: Type.Integer(),
  waiting: Type.Integer({ description: 'Inputs that wait now.' }),
  evaluation: Type.Union([EvaluationReport, Type.Null()], {
    description: 'The last one made here of this version.',
  }),
});
export type ModelDetail = Static<typeof ModelDetail>;

/** Formats of one file, as text. */
export const uploadFormats = ['jsonl', 'csv', 'tsv', 'svmlight', 'xmc'] as const;
export const evaluateQuery = (options: OptionTable) =>
  Type.Object(
    {
      format: Type.Optional(
        Type.Enum([...uploadFormats], { description: 'Told by Content-Type if absent.' }),
      ),
      columns: Type.Optional(Type.String({ description: 'Of a table: text=title,labels=subjects.' })),
      labelDelimiter: Type.Optional(Type.String({ description: 'Between the labels of one cell.' })),
      top: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 100 })),
      ...optionFields(options),
    },
    strict,
  );
export interface EvaluateQuery {
  format?: (typeof uploadFormats)[number];
  columns?: string;
  labelDelimiter?: string;
  top?: number;
  [option: string]: string | number | boolean | undefined;
}

/** A table of options as fields that may be left out. */
function optionFields(table: OptionTable) {
  return Object.fromEntries(
    Object.entries(table).map(([name, option]) => {
      const { help: description, default: value } = option;
      const common = { description, default: value };
      switch (option.kind) {
        case 'flag':
          return [name, Type.Optional(Type.Boolean(common))];
        case 'choice':
          return [name, Type.Optional(Type.Enum([...option.choices], common))];
        case 'text':
          return [name, Type.Optional(Type.String(common))];
        default: {
          const { min: minimum, max: maximum } = option;
          const bounds = {
            ...common,
            ...(minimum !== undefined && { minimum }),
            ...(maximum !== undefined && { maximum }),
          };
          return [
            name,
            Type.Optional(option.kind === 'integer' ? Type.Integer(bounds) : Type.Number(bounds)),
          ];
        }
      }
    }),
  );
}

export const Health = Type.Object({ status: Type.String() });
export type Health = Static<typeof Health>;
