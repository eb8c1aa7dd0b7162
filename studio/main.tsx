// The frame of the studio: who is asked, about which model, and which screen is shown.
import { render } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Client, type ServerError } from '../src/client.ts';
import { Empty, Field, Trouble } from './parts.tsx';
import { Groups } from './screens/groups.tsx';
import { Labels } from './screens/labels.tsx';
import { LabelMap } from './screens/map.tsx';
import { Review } from './screens/review.tsx';
import { Runs } from './screens/runs.tsx';
import { Suggest } from './screens/suggest.tsx';
import { address, go, StudioContext, useAnswer, useKeys, usePlace } from './use.ts';

const screens = {
  suggest: { name: 'Suggest', show: Suggest },
  labels: { name: 'Labels', show: Labels },
  map: { name: 'Map', show: LabelMap },
  groups: { name: 'Groups', show: Groups },
  runs: { name: 'Runs', show: Runs },
  review: { name: 'Review', show: Review },
};
type Screen = keyof typeof screens;
const names = Object.keys(screens) as Screen[];

const tokenName = 'umbel-token';
const modelName = 'umbel-model';

function App() {
  const place = usePlace();
  const screen = (names.includes(place.screen as Screen) ? place.screen : 'suggest') as Screen;
  const [token, setToken] = useState(sessionStorage.getItem(tokenName) ?? '');
  const client = useMemo(() => new Client(location.origin, token ? { token } : {}), [token]);
  const models = useAnswer(`models ${token}`, () => client.models());
  const [chosen, setChosen] = useState(localStorage.getItem(modelName) ?? '');
  const served = models.value ?? [];
  const model = (served.find(({ name }) => name === chosen) ?? served[0])?.name ?? '';
  const [help, setHelp] = useState(false);
  useKeys({
    ...Object.fromEntries(names.map((name, i) => [`${i + 1}`, () => screen !== 'groups' && go(name)])),
    '?': () => setHelp(true),
    '/': () => document.querySelector<HTMLElement>('main [data-first]')?.focus(),
  });
  useEffect(() => {
    document.title = `${screens[screen].name} · Umbel`;
  }, [screen]);
  if ((models.error as ServerError | undefined)?.status === 401) {
    const enter = (given: string) => {
      sessionStorage.setItem(tokenName, given);
      setToken(given);
    };
    return <TokenForm wrong={token !== ''} onEnter={enter} />;
  }
  const Show = screens[screen].show;
  const choose = (name: string) => {
    localStorage.setItem(modelName, name);
    setChosen(name);
  };
  return (
    <StudioContext.Provider value={{ client, models: served, model, reloadModels: models.again }}>
      <div class="frame">
        <div class="side">
          <div class="brand">
            <img src="/umbel.svg" alt="" /> <span>Umbel</span>
          </div>
          <nav class="screens" aria-label="Screens">
            {names.map((name, i) => (
              <a key={name} href={address(name)} aria-current={name === screen ? 'page' : undefined}>
                {screens[name].name} <kbd>{i + 1}</kbd>
              </a>
            ))}
          </nav>
          {served.length > 0 && (
            <Field name="Model">
              <select
                aria-label="Model"
                value={model}
                onChange={({ currentTarget }) => choose(currentTarget.value)}
              >
                {served.map(({ name }) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </Field>
          )}
          <div class="foot">
            <button type="button" class="plain" onClick={() => setHelp(true)}>
              Keys <kbd>?</kbd>
            </button>
            <a href="/docs">The same for programs</a>
          </div>
        </div>
        <main>
          {models.error ? (
            <Trouble error={models.error} />
          ) : (
            models.value && <Show key={`${screen} ${model}`} />
          )}
        </main>
        {help && <Keys onClose={() => setHelp(false)} />}
      </div>
    </StudioContext.Provider>
  );
}

function TokenForm({ wrong, onEnter }: { wrong: boolean; onEnter(token: string): void }) {
  const [token, setToken] = useState('');
  return (
    <main>
      <Empty title="This server lets in only who has a token">
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            onEnter(token.trim());
          }}
        >
          {wrong && <Trouble error={new Error('That token is not one of them.')} />}
          <Field name="Token">
            <input
              type="password"
              value={token}
              autoComplete="off"
              onInput={({ currentTarget }) => setToken(currentTarget.value)}
            />
          </Field>
          <button type="submit" class="main">
            Enter
          </button>
        </form>
      </Empty>
    </main>
  );
}

const keys: [string, string][] = [
  ['1 … 6', 'go to a screen'],
  ['/', 'go to the text or the search'],
  ['↑ ↓', 'move through labels, groups or predictions'],
  ['a', 'accept (groups, review)'],
  ['r', 'reject (review)'],
  ['1 … 9', 'in a group: give the label to a member, or take it away'],
  ['x', 'in a group: nobody has the label'],
  ['n', 'in a group: on to the next group'],
  ['u', 'undo (groups, review)'],
];

function Keys({ onClose }: { onClose(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="keys">
      <div class="stack">
        <h2 id="keys">Keys</h2>
        <dl class="keys">
          {keys.map(([key, words]) => (
            <>
              <dt key={key}>
                <kbd>{key}</kbd>
              </dt>
              <dd>{words}</dd>
            </>
          ))}
        </dl>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </div>
    </dialog>
  );
}

const root = document.getElementById('studio');
if (root) {
  root.textContent = '';
  render(<App />, root);
}
