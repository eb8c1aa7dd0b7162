// Routes of groups: what EAGLE decided, and what people accept or put right. The export is what --corrections takes.
import { Type } from 'typebox';
import { badInput, unknownName } from '../../errors.ts';
import type { Crew } from '../crew.ts';
import { Problem } from '../problem.ts';
import { type App, answers, ndjson } from '../routes.ts';
import { kept, now, type State } from '../state.ts';
import type { Evidence, Group } from './evidence.ts';
import {
  Correction,
  CorrectionBody,
  GroupDetail,
  GroupPage,
  GroupParams,
  GroupsQuery,
  PairParams,
  SourceList,
  SourceParams,
} from './schemas.ts';

export interface Grouping {
  evidence: ReadonlyMap<string, Evidence>;
  state: State | undefined;
  /** Models that may know what labels are called. */
  crews: ReadonlyMap<string, Crew>;
}

interface Row {
  member_of: string;
  label: string;
  instances: string;
  decided: string;
}

export function registerGroups(app: App, grouping: Grouping): void {
  registerReading(app, grouping);
  registerCorrecting(app, grouping);
}

function registerReading(app: App, grouping: Grouping): void {
  app.get(
    '/groups',
    {
      schema: {
        tags: ['groups'],
        summary: 'Where labels of groups were dealt out to their members',
        response: answers(SourceList),
      },
    },
    async () => ({
      sources: Array.from(grouping.evidence.values(), ({ name, groups, pairs }) => ({
        name,
        groups: groups.size,
        pairs,
        corrected: correctionsOf(grouping, name).length,
      })),
    }),
  );
  app.get(
    '/groups/:source/list',
    {
      schema: {
        tags: ['groups'],
        summary: 'Groups, the least clear first',
        params: SourceParams,
        querystring: GroupsQuery,
        response: answers(GroupPage),
      },
    },
    async ({ params, query }) => listGroups(grouping, findSource(grouping, params.source), query),
  );
  app.get(
    '/groups/:source/group/:group',
    {
      schema: {
        tags: ['groups'],
        summary: 'One group: its members, and who took which label how clearly',
        params: GroupParams,
        response: answers(GroupDetail),
      },
    },
    async ({ params }) => {
      const source = findSource(grouping, params.source);
      return describeGroup(grouping, source, findGroup(source, params.group));
    },
  );
}

function registerCorrecting(app: App, grouping: Grouping): void {
  app.put(
    '/groups/:source/group/:group/labels/:label',
    {
      schema: {
        tags: ['groups'],
        summary: 'Say which members have a label: as decided, or others, or none',
        params: PairParams,
        body: CorrectionBody,
        response: answers(Correction),
      },
    },
    async ({ params, body }) => {
      const group = findPair(grouping, params);
      const stranger = body.instances.find((id) => !group.members.includes(id));
      if (stranger !== undefined)
        throw badInput(`instance must be a member of group ${group.name}`, { value: stranger });
      const correction = { instances: [...new Set(body.instances)], decided: now() };
      kept(grouping.state).database.run(
        'insert or replace into corrections values (?, ?, ?, ?, ?)',
        params.source,
        params.group,
        params.label,
        JSON.stringify(correction.instances),
        correction.decided,
      );
      return correction;
    },
  );
  app.delete(
    '/groups/:source/group/:group/labels/:label',
    { schema: { tags: ['groups'], summary: 'Take a correction back', params: PairParams } },
    async ({ params }, reply) => {
      findPair(grouping, params);
      kept(grouping.state).database.run(
        'delete from corrections where source = ? and member_of = ? and label = ?',
        params.source,
        params.group,
        params.label,
      );
      return reply.code(204).send();
    },
  );
  app.get(
    '/groups/:source/corrections',
    {
      schema: {
        tags: ['groups'],
        summary: 'All corrections as JSON lines, for --corrections of train and impute',
        params: SourceParams,
        response: { 200: { content: { [ndjson]: { schema: Type.String() } } } },
      },
    },
    async ({ params }, reply) => {
      kept(grouping.state);
      const { name } = findSource(grouping, params.source);
      const lines = correctionsOf(grouping, name).map(({ member_of: group, label, instances }) => {
        return `${JSON.stringify({ group, label, instances: JSON.parse(instances) })}\n`;
      });
      return reply.type(ndjson).send(lines.join(''));
    },
  );
}

function findSource({ evidence }: Grouping, name: string): Evidence {
  const source = evidence.get(name);
  if (source) return source;
  const { message, detail } = unknownName('source of groups', name, [...evidence.keys()]);
  throw new Problem('not-found', message, detail.hint);
}

function findGroup({ groups }: Evidence, name: string): Group {
  const group = groups.get(name);
  if (group) return group;
  throw new Problem('not-found', `no group is called ${JSON.stringify(name.slice(0, 80))}`);
}

function findPair(grouping: Grouping, params: { source: string; group: string; label: string }): Group {
  const group = findGroup(findSource(grouping, params.source), params.group);
  if (group.labels.some(({ label }) => label === params.label)) return group;
  const label = JSON.stringify(params.label.slice(0, 80));
  throw new Problem('not-found', `group ${group.name} does not carry the label ${label}`);
}

const correctionsOf = ({ state }: Grouping, source: string): Row[] =>
  state?.database.all<Row>('select * from corrections where source = ?', source) ?? [];

function listGroups(grouping: Grouping, { name, ordered }: Evidence, query: GroupsQuery): GroupPage {
  const { search = '', show = 'all', offset = 0, limit = 50 } = query;
  const corrected = new Map<string, number>();
  for (const { member_of: group } of correctionsOf(grouping, name))
    corrected.set(group, (corrected.get(group) ?? 0) + 1);
  const isDone = (group: Group) => (corrected.get(group.name) ?? 0) >= group.labels.length;
  const wanted = search.toLowerCase();
  const found = ordered.filter(
    (group) =>
      group.name.toLowerCase().includes(wanted) && (show === 'all' || isDone(group) === (show === 'done')),
  );
  return {
    found: found.length,
    offset,
    groups: found.slice(offset, offset + limit).map((group) => ({
      group: group.name,
      instances: group.members.length,
      labels: group.labels.length,
      corrected: corrected.get(group.name) ?? 0,
      margin: group.margin,
    })),
  };
}

async function describeGroup(grouping: Grouping, source: Evidence, group: Group): Promise<GroupDetail> {
  const corrections = new Map(
    (
      grouping.state?.database.all<Row>(
        'select * from corrections where source = ? and member_of = ?',
        source.name,
        group.name,
      ) ?? []
    ).map((row) => [row.label, row]),
  );
  const names = await nameLabels(
    grouping,
    group.labels.map(({ label }) => label),
  );
  return {
    group: group.name,
    instances: group.members.map((id) => ({ id, text: source.textOf(id) })),
    labels: group.labels.map(({ label, instances, similarities = [], margin = null }) => {
      const row = corrections.get(label);
      const correction = row
        ? { instances: JSON.parse(row.instances) as string[], decided: row.decided }
        : null;
      return { label, name: names[label] ?? label, instances, similarities, margin, correction };
    }),
  };
}

/** What the first model that knows a label calls it. */
async function nameLabels({ crews }: Grouping, ids: string[]): Promise<Record<string, string>> {
  let names: Record<string, string> = {};
  for (const crew of crews.values()) {
    const unknown = ids.filter((id) => !Object.hasOwn(names, id));
    if (unknown.length === 0) break;
    names = { ...(JSON.parse(await crew.ask({ kind: 'names', ids: unknown })) as typeof names), ...names };
  }
  return names;
}
