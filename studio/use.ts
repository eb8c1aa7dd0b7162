// How screens get and keep what they show: answers of the server, the place in the address, keys.
import { createContext } from 'preact';
import { useCallback, useContext, useEffect, useRef, useState } from 'preact/hooks';
import { Client, type ModelSummary } from '../src/client.ts';

export interface Studio {
  client: Client;
  models: ModelSummary[];
  /** The model that screens are about; empty where none is served. */
  model: string;
  reloadModels(): void;
}

export const StudioContext = createContext<Studio>({
  client: new Client(''),
  models: [],
  model: '',
  reloadModels: () => {},
});
export const useStudio = (): Studio => useContext(StudioContext);

export interface Answer<T> {
  value?: T;
  error?: Error;
  /** Whether an answer is on its way; the last one stays until it comes. */
  loading: boolean;
  again(): void;
}

/** Asks again whenever `key` changes; answers that come too late are left out. Undefined asks nothing. */
export function useAnswer<T>(key: string | undefined, ask: () => Promise<T>): Answer<T> {
  const [state, setState] = useState<Omit<Answer<T>, 'again'>>({ loading: key !== undefined });
  const [round, setRound] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (key === undefined) return setState({ loading: false });
    let current = true;
    setState(({ value }) => ({ value, loading: true }));
    latest.current().then(
      (value) => current && setState({ value, loading: false }),
      (error: Error) => current && setState({ error, loading: false }),
    );
    return () => {
      current = false;
    };
  }, [key, round]);
  return { ...state, again: useCallback(() => setRound((last) => last + 1), []) };
}

/** What changes something reaches the server in the order of the keys, however fast they are. */
export function useInOrder(): <T>(action: () => Promise<T>) => Promise<T> {
  const last = useRef<Promise<unknown>>(Promise.resolve());
  return (action) => {
    const answer = last.current.then(action);
    last.current = answer.catch(() => {});
    return answer;
  };
}

/** The value once it has not changed for a moment. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

/** The address after #: `#/labels?label=x`. */
export function usePlace(): { screen: string; query: URLSearchParams; go: typeof go } {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  const [screen, query = ''] = hash.replace(/^#\/?/, '').split('?');
  return { screen, query: new URLSearchParams(query), go };
}

export const address = (screen: string, query: Record<string, string | undefined> = {}): string => {
  const given = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []));
  return `#/${screen}${given.length ? `?${new URLSearchParams(given)}` : ''}`;
};

export function go(screen: string, query: Record<string, string | undefined> = {}): void {
  location.hash = address(screen, query);
}

const isWriting = ({ target }: KeyboardEvent) =>
  target instanceof HTMLElement &&
  target.matches('input:not([type=checkbox]):not([type=range]), textarea, select');

/** Single keys, while nobody is writing. */
export function useKeys(keys: Record<string, () => void>): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event)) return;
      const action = latest.current[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

/** Saves text as a file of the reader's. */
export function download(name: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/x-ndjson' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
