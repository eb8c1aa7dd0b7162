// Shapes of what EAGLE decided in groups and of what people corrected, as schemas.ts has those of models.
import { type Static, Type } from 'typebox';
import { strict } from '../schemas.ts';

export const SourceList = Type.Object({
  sources: Type.Array(
    Type.Object({
      name: Type.String(),
      groups: Type.Integer(),
      pairs: Type.Integer({ description: 'Groups and labels that were decided.' }),
      missing: Type.Integer({ description: 'Labels of groups that the evidence says nothing about.' }),
      corrected: Type.Integer({ description: 'Pairs that people accepted or put right.' }),
      misfits: Type.Integer({
        description:
          'Corrections kept under this name that are of other groups, members or labels: left alone.',
      }),
    }),
  ),
});
export type SourceList = Static<typeof SourceList>;
export const SourceParams = Type.Object({ source: Type.String({ description: 'One of GET /v1/groups.' }) });
export const GroupParams = Type.Object({ ...SourceParams.properties, group: Type.String() });
export const PairParams = Type.Object({ ...GroupParams.properties, label: Type.String() });

export const GroupsQuery = Type.Object(
  {
    search: Type.Optional(Type.String({ maxLength: 1000, description: 'Part of the name.' })),
    show: Type.Optional(
      Type.Enum(['open', 'done', 'all'], { default: 'all', description: 'open: some pair is not decided.' }),
    ),
    offset: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 50 })),
  },
  strict,
);
export type GroupsQuery = Static<typeof GroupsQuery>;
export const GroupPage = Type.Object({
  found: Type.Integer(),
  offset: Type.Integer(),
  groups: Type.Array(
    Type.Object({
      group: Type.String(),
      instances: Type.Integer(),
      labels: Type.Integer(),
      corrected: Type.Integer(),
      margin: Type.Union([Type.Number(), Type.Null()], {
        description: 'Of its least clear label; null where every member got every label.',
      }),
    }),
    { description: 'The least clear first.' },
  ),
});
export type GroupPage = Static<typeof GroupPage>;

export const Correction = Type.Object({
  instances: Type.Array(Type.String(), { description: 'Members that have the label; none if no one has.' }),
  decided: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
    description: 'null: imputing was given it already.',
  }),
});
export type Correction = Static<typeof Correction>;
export const CorrectionBody = Type.Object({ instances: Correction.properties.instances }, strict);
export const GroupDetail = Type.Object({
  group: Type.String(),
  instances: Type.Array(Type.Object({ id: Type.String(), text: Type.String() })),
  labels: Type.Array(
    Type.Object({
      label: Type.String(),
      name: Type.String(),
      instances: Type.Array(Type.String(), { description: 'Who got the label.' }),
      similarities: Type.Array(Type.Number(), { description: 'How well it fits each of them.' }),
      margin: Type.Union([Type.Number(), Type.Null()], {
        description: 'How far they are ahead of the others; null where every member got it.',
      }),
      drawn: Type.Boolean({ description: 'Whether they were drawn, the likelier the oftener.' }),
      correction: Type.Union([Correction, Type.Null()]),
    }),
  ),
});
export type GroupDetail = Static<typeof GroupDetail>;
