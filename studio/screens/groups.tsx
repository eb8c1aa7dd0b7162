// Groups: who took which label of a group, and how clearly; accepted or put right with the keyboard.
import { useState } from 'preact/hooks';
import type { GroupDetail } from '../../src/client.ts';
import { Bar, Choice, count, Empty, Head, Pending, plural, Search, Select, Trouble } from '../parts.tsx';
import { download, go, useAnswer, useInOrder, useKeys, usePlace, useStudio } from '../use.ts';

type Show = 'open' | 'done' | 'all';

export function Groups() {
  const { client } = useStudio();
  const { query } = usePlace();
  const sources = useAnswer('sources', () => client.groupSources());
  const [show, setShow] = useState<Show>('open');
  const [search, setSearch] = useState('');
  const [error, setError] = useState<Error>();
  /** A group that is decided now stays until one goes on. */
  const [held, setHeld] = useState<string>();
  const source = query.get('source') ?? sources.value?.[0]?.name ?? '';
  const page = useAnswer(source && JSON.stringify([source, show, search]), () =>
    client.groups(source, { show, search, limit: 200 }),
  );
  if (!sources.value) return <Pending answer={sources} />;
  if (sources.value.length === 0) return <NoGroups />;
  const groups = page.value?.groups ?? [];
  const group = query.get('group') ?? held ?? groups[0]?.group;
  const open = (name: string | undefined) => name && go('groups', { source, group: name });
  const { corrected = 0, misfits = 0, missing = 0 } = sources.value.find(({ name }) => name === source) ?? {};
  return (
    <>
      <Head
        title="Groups"
        words="Only groups had labels; this is who of their members got them. The least clear come first."
      >
        {sources.value.length > 1 && (
          <Select
            name="Source"
            value={source}
            choices={sources.value.map(({ name }) => [name, name])}
            onChoose={(name) => go('groups', { source: name })}
          />
        )}
        <button
          type="button"
          disabled={corrected === 0}
          onClick={() =>
            client.corrections(source).then((text) => download(`${source}-corrections.jsonl`, text), setError)
          }
        >
          Export {plural(corrected, 'correction')}
        </button>
      </Head>
      {error && <Trouble error={error} />}
      {misfits > 0 && (
        <p class="soft">
          {plural(misfits, 'correction')} kept under this name {misfits === 1 ? 'is' : 'are'} of other groups
          and left out.
        </p>
      )}
      {missing > 0 && <p class="soft">{plural(missing, 'label')} of groups have no evidence.</p>}
      <div class="list-detail">
        <div class="panel stack">
          <Search
            value={search}
            placeholder="Part of a name"
            onSearch={setSearch}
            onEnter={() => open(groups[0]?.group)}
          />
          <Choice<Show>
            name="Which groups"
            value={show}
            choices={[
              ['open', 'Open'],
              ['done', 'Done'],
              ['all', 'All'],
            ]}
            onChoose={setShow}
          />
          <p class="soft small" role="status">
            {page.value && plural(page.value.found, 'group')}
          </p>
          <Pending answer={page} />
          <div class="scrolls">
            <ul class="choices">
              {groups.map((one) => (
                <li key={one.group}>
                  <button type="button" aria-current={one.group === group} onClick={() => open(one.group)}>
                    <span class="row between">
                      <span>{one.group}</span>
                      <span class="small soft number">
                        {one.corrected}/{one.labels}
                      </span>
                    </span>
                  </button>
                </li>
              ))}
            </ul>
          </div>
        </div>
        {group ? (
          <Group
            key={`${source} ${group}`}
            {...{ source, group }}
            onNext={() => open(groups[groups.findIndex((one) => one.group === group) + 1]?.group)}
            onChange={() => {
              setHeld(group);
              sources.again();
              page.again();
            }}
          />
        ) : (
          <Empty title={show === 'open' ? 'Every group is decided' : 'No such group'}>
            <p>Export the corrections and train with them: --corrections FILE.</p>
          </Empty>
        )}
      </div>
    </>
  );
}

const NoGroups = () => (
  <Empty title="No groups to look at">
    <p>
      Where only groups of samples have labels, <code>umbel impute</code> deals them out and writes down why.
      Show the server what it wrote:
    </p>
    <code>
      umbel impute --train instances.jsonl --groups groups.jsonl --out labelled.jsonl --evidence
      evidence.jsonl
    </code>
    <code>
      umbel serve --model MODEL --state STATE --groups shop=instances.jsonl,groups.jsonl,evidence.jsonl
    </code>
  </Empty>
);

interface GroupProps {
  source: string;
  group: string;
  onNext(): void;
  onChange(): void;
}

function Group({ source, group, onNext, onChange }: GroupProps) {
  const { client } = useStudio();
  const detail = useAnswer(`${source} ${group}`, () => client.group(source, group));
  const [at, setAt] = useState(0);
  /** Who was given a label here: shown before the server has answered. */
  const [given, setGiven] = useState<Record<string, string[] | undefined>>({});
  const [error, setError] = useState<Error>();
  const inOrder = useInOrder();
  const labels = detail.value?.labels ?? [];
  const members = detail.value?.instances ?? [];
  const label = labels[at];
  const has = new Set(label ? (given[label.label] ?? holders(label)) : []);
  const save = (action: () => Promise<unknown>, step = 0) => {
    setAt(Math.min(at + step, labels.length - 1));
    inOrder(action).then(
      () => {
        setError(undefined);
        detail.again();
        onChange();
      },
      (failed) => {
        setError(failed);
        setGiven({});
      },
    );
  };
  const put = (instances: string[], step = 0) => {
    if (!label) return;
    setGiven({ ...given, [label.label]: instances });
    save(() => client.correct(source, group, label.label, instances), step);
  };
  const undo = () => {
    if (!label) return;
    setGiven({ ...given, [label.label]: undefined });
    save(() => client.uncorrect(source, group, label.label));
  };
  const toggle = (i: number) => {
    const id = members[i]?.id;
    if (!id) return;
    put(members.map((member) => member.id).filter((other) => (other === id ? !has.has(id) : has.has(other))));
  };
  useKeys({
    ArrowDown: () => setAt(Math.min(at + 1, labels.length - 1)),
    ArrowUp: () => setAt(Math.max(at - 1, 0)),
    a: () => put([...has], 1),
    x: () => put([], 1),
    u: undo,
    n: onNext,
    ...Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`${i + 1}`, () => toggle(i)])),
  });
  if (!detail.value) return <Pending answer={detail} />;
  return (
    <div class="stack">
      {error && <Trouble error={error} />}
      <section class="panel stack" aria-label="Members">
        <div class="row between">
          <h2>{group}</h2>
          <button type="button" onClick={onNext}>
            Next group <kbd>n</kbd>
          </button>
        </div>
        {label && (
          <p class="soft">
            Who is <strong>{label.name}</strong>?
          </p>
        )}
        <ol class="members stack tight">
          {members.map(({ id, text }, i) => (
            <li key={id} class={has.has(id) ? 'has' : ''}>
              <button
                type="button"
                aria-pressed={has.has(id)}
                onClick={() => toggle(i)}
                aria-label={`Member ${i + 1}`}
              >
                {i + 1}
              </button>
              <span>{text || <code>{id}</code>}</span>
            </li>
          ))}
        </ol>
        <div class="row">
          <button type="button" class="main" onClick={() => put([...has], 1)}>
            Accept <kbd>a</kbd>
          </button>
          <button type="button" onClick={() => put([], 1)}>
            Nobody <kbd>x</kbd>
          </button>
          <button type="button" class="plain" disabled={!label?.correction?.decided} onClick={undo}>
            Undo <kbd>u</kbd>
          </button>
        </div>
      </section>
      <section class="panel stack" aria-label="Labels of the group">
        <h2>Labels of the group</h2>
        <ul class="choices">
          {labels.map((one, i) => (
            <li key={one.label}>
              <button type="button" aria-current={i === at} onClick={() => setAt(i)}>
                <span class="row between">
                  <span>{one.name}</span>
                  <Clearness label={one} />
                </span>
                <span class="small soft">
                  {who(one, members)}
                  {one.drawn && ' · drawn'}
                  {one.correction && (isSame(one) ? ' · accepted' : ' · corrected')}
                </span>
              </button>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}

type GroupLabel = GroupDetail['labels'][number];

const holders = (label: GroupLabel) => label.correction?.instances ?? label.instances;

const isSame = ({ correction, instances }: GroupLabel) =>
  correction?.instances.length === instances.length &&
  instances.every((id) => correction.instances.includes(id));

function who(label: GroupLabel, members: GroupDetail['instances']): string {
  const places = holders(label).map((id) => members.findIndex((member) => member.id === id) + 1);
  if (places.length === 0) return 'nobody';
  if (places.length === members.length && places.length > 1) return 'all members';
  return `member ${places.map(count).join(', ')}`;
}

/** How far the holders are ahead; half a cosine is as clear as it gets. */
function Clearness({ label: { margin, correction } }: { label: GroupLabel }) {
  if (margin === null && correction) return null;
  if (margin === null) return <span class="small soft">everyone got it</span>;
  const words = margin < 0.05 ? 'unclear' : margin < 0.2 ? 'fairly clear' : 'clear';
  return (
    <span class="clear small soft">
      <Bar share={margin * 2} label={`${words}, ahead by ${margin.toFixed(2)}`} /> {words}
    </span>
  );
}
