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
      sources: Array.from(grouping.evidence.values(), (source) => {
        const { name, groups, pairs, missing } = source;
        const { corrections, misfits } = decisionsOf(grouping, source);
        const corrected = [...corrections.values()].reduce((sum, { size }) => sum + size, 0);
        return { name, groups: groups.size, pairs, missing, corrected, misfits };
      }),
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
      const members = new Set(group.members);
      const stranger = body.instances.find((id) => !members.has(id));
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
      const { corrections } = decisionsOf(grouping, findSource(grouping, params.source));
      const lines = [...corrections].flatMap(([group, labels]) =>
        Array.from(labels, ([label, { instances }]) => `${JSON.stringify({ group, label, instances })}\n`),
      );
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

/**
 * By group and label, of one group or of all: what imputing was given, and what was decided here since. The groups that
 * it was decided of may have been others.
 */
function decisionsOf({ state }: Grouping, { name, groups }: Evidence, only?: Group) {
  const corrections = new Map<string, Map<string, Correction>>();
  const decide = (group: string, label: string, correction: Correction) =>
    corrections.set(group, (corrections.get(group) ?? new Map()).set(label, correction));
  for (const group of only ? [only] : groups.values())
    for (const { label, instances, pinned } of group.labels)
      if (pinned) decide(group.name, label, { instances, decided: null });
  let misfits = 0;
  const wanted = 'select * from corrections where source = ?';
  const rows = only
    ? state?.database.all<Row>(`${wanted} and member_of = ?`, name, only.name)
    : state?.database.all<Row>(wanted, name);
  for (const row of rows ?? []) {
    const group = groups.get(row.member_of);
    const members = new Set(group?.members);
    const instances = JSON.parse(row.instances) as string[];
    const fits =
      group?.labels.some(({ label }) => label === row.label) && instances.every((id) => members.has(id));
    if (fits) decide(row.member_of, row.label, { instances, decided: row.decided });
    else misfits++;
  }
  return { corrections, misfits };
}

function listGroups(grouping: Grouping, source: Evidence, query: GroupsQuery): GroupPage {
  const { search = '', show = 'all', offset = 0, limit = 50 } = query;
  const { corrections } = decisionsOf(grouping, source);
  const correctedOf = (group: Group) => corrections.get(group.name)?.size ?? 0;
  const isDone = (group: Group) => correctedOf(group) >= group.labels.length;
  const wanted = search.toLowerCase();
  const found = source.ordered.filter(
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
      corrected: correctedOf(group),
      margin: group.margin,
    })),
  };
}

async function describeGroup(grouping: Grouping, source: Evidence, group: Group): Promise<GroupDetail> {
  const corrections = decisionsOf(grouping, source, group).corrections.get(group.name);
  const names = await nameLabels(
    grouping,
    group.labels.map(({ label }) => label),
  );
  return {
    group: group.name,
    instances: group.members.map((id) => ({ id, text: source.textOf(id) })),
    labels: group.labels.map(({ label, instances, similarities = [], margin = null, drawn = false }) => {
      const correction = corrections?.get(label) ?? null;
      const name = Object.hasOwn(names, label) ? names[label] : label;
      return { label, name, instances, similarities, margin, drawn, correction };
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
