// Shapes of training runs and the data they train on, as schemas.ts has those of models.
import { type Static, Type } from 'typebox';
import type { OptionTable } from '../../options.ts';
import type { Step } from '../../progress.ts';
import { EvaluationReport, strict, uploadFormats } from '../schemas.ts';

export const nameRule = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$';

export const LearnerList = Type.Object({
  learners: Type.Array(
    Type.Object({
      name: Type.String(),
      summary: Type.String(),
      options: Type.Unsafe<OptionTable>(
        Type.Record(Type.String(), Type.Object({}, { additionalProperties: true }), {
          description: 'By name: kind (number, integer, choice, flag), default, help, min, max, choices.',
        }),
      ),
    }),
  ),
});
export type LearnerList = Static<typeof LearnerList>;

export const DataEntry = Type.Object({
  name: Type.String(),
  bytes: Type.Integer(),
  added: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
    description: 'When it was uploaded; null for files named at the start.',
  }),
});
export type DataEntry = Static<typeof DataEntry>;
export const DataList = Type.Object({ data: Type.Array(DataEntry) });
export const DataParams = Type.Object({ data: Type.String({ pattern: nameRule, description: 'Its name.' }) });
export const DataQuery = Type.Object(
  {
    format: Type.Enum([...uploadFormats]),
    columns: Type.Optional(Type.String({ description: 'Of a table: text=title,labels=subjects.' })),
    labelDelimiter: Type.Optional(Type.String({ description: 'Between the labels of one cell.' })),
  },
  strict,
);
export type DataQuery = Static<typeof DataQuery>;

export const RunSpec = Type.Object(
  {
    name: Type.Optional(Type.String({ maxLength: 200, description: 'For people.' })),
    data: Type.String({ description: 'One of GET /v1/data.' }),
    learner: Type.Optional(Type.String({ description: 'One of GET /v1/learners; tree if absent.' })),
    options: Type.Optional(
      Type.Record(Type.String(), Type.Union([Type.Number(), Type.String(), Type.Boolean()]), {
        description: "The learner's options; the defaults for those left out.",
      }),
    ),
    seed: Type.Optional(Type.Integer({ default: 1 })),
    test: Type.Optional(
      Type.Number({
        minimum: 0.01,
        maximum: 0.5,
        default: 0.1,
        description: 'Share of the samples that judges.',
      }),
    ),
    curve: Type.Optional(
      Type.Boolean({ default: false, description: 'Train on an eighth, a quarter and a half first.' }),
    ),
    reviewed: Type.Optional(
      Type.String({ description: 'Add what was decided in the review of this model.' }),
    ),
  },
  strict,
);
export type RunSpec = Static<typeof RunSpec>;

const RunStatus = Type.Enum(['waiting', 'running', 'done', 'failed', 'cancelled', 'interrupted']);
export type RunStatus = Static<typeof RunStatus>;

/** Quality after training on so many samples. */
export const CurvePoint = Type.Object({
  samples: Type.Integer(),
  seconds: Type.Number(),
  metrics: Type.Record(
    Type.String(),
    Type.Object({ value: Type.Number(), low: Type.Number(), high: Type.Number() }),
  ),
});
export type CurvePoint = Static<typeof CurvePoint>;

export const RunResult = Type.Object({
  samples: Type.Integer(),
  features: Type.Integer(),
  labels: Type.Integer(),
  seconds: Type.Object({ read: Type.Number(), train: Type.Number(), judge: Type.Number() }),
  report: EvaluationReport,
});
export type RunResult = Static<typeof RunResult>;

export const Run = Type.Object({
  id: Type.Integer(),
  spec: RunSpec,
  status: RunStatus,
  created: Type.String({ format: 'date-time' }),
  started: Type.Union([Type.String({ format: 'date-time' }), Type.Null()]),
  ended: Type.Union([Type.String({ format: 'date-time' }), Type.Null()]),
  error: Type.Union([Type.String(), Type.Null()], { description: 'Why it failed.' }),
  served: Type.Union([Type.String(), Type.Null()], { description: 'The name its model is served by.' }),
  progress: Type.Unsafe<Step | null>(
    Type.Union([
      Type.Object({
        phase: Type.String(),
        done: Type.Number(),
        total: Type.Optional(Type.Number()),
        unit: Type.String(),
      }),
      Type.Null(),
    ]),
  ),
  curve: Type.Array(CurvePoint),
  result: Type.Union([RunResult, Type.Null()]),
});
export type Run = Static<typeof Run>;
export const RunList = Type.Object({ runs: Type.Array(Run) });
export const RunParams = Type.Object({ run: Type.Integer({ minimum: 1 }) });
export const ServeBody = Type.Object(
  { name: Type.String({ pattern: nameRule, description: 'Name of the model.' }) },
  strict,
);
