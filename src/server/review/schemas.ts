// Shapes of the review queue, as schemas.ts has those of models.
import { type Static, Type } from 'typebox';
import { ModelParams, strict } from '../schemas.ts';

export const FillBody = Type.Object(
  {
    texts: Type.Optional(Type.Array(Type.String(), { description: 'To look for unsure labels in.' })),
    data: Type.Optional(Type.String({ description: 'Or some texts of one of GET /v1/data.' })),
    sample: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 10_000, default: 1000, description: 'How many of them.' }),
    ),
    seed: Type.Optional(Type.Integer({ default: 1 })),
    low: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, default: 0.2, description: 'Scores from here' }),
    ),
    high: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, default: 0.8, description: 'to here are unsure.' }),
    ),
    most: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: 'Predictions to add at most.' }),
    ),
  },
  strict,
);
export type FillBody = Static<typeof FillBody>;

const Decision = Type.Enum(['accepted', 'rejected']);
export type Decision = Static<typeof Decision>;
export const ReviewItem = Type.Object({
  id: Type.Integer(),
  text: Type.String(),
  label: Type.String(),
  name: Type.String(),
  score: Type.Number(),
  decision: Type.Union([Decision, Type.Null()]),
});
export type ReviewItem = Static<typeof ReviewItem>;
export const ReviewCounts = Type.Object({
  waiting: Type.Integer(),
  accepted: Type.Integer(),
  rejected: Type.Integer(),
});
export type ReviewCounts = Static<typeof ReviewCounts>;
export const Filled = Type.Object({ added: Type.Integer(), ...ReviewCounts.properties });
export type Filled = Static<typeof Filled>;
export const ReviewPage = Type.Object({
  ...ReviewCounts.properties,
  items: Type.Array(ReviewItem, { description: 'The least sure first; decided ones last decided first.' }),
});
export type ReviewPage = Static<typeof ReviewPage>;
export const ReviewQuery = Type.Object(
  {
    show: Type.Optional(Type.Enum(['waiting', 'decided'], { default: 'waiting' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 50 })),
  },
  strict,
);
export type ReviewQuery = Static<typeof ReviewQuery>;
export const ItemParams = Type.Object({ ...ModelParams.properties, item: Type.Integer({ minimum: 1 }) });
export const DecisionBody = Type.Object(
  { decision: Type.Union([Decision, Type.Null()], { description: 'Null takes it back.' }) },
  strict,
);
