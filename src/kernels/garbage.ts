// Shared memories are no garbage to the engine until it looks for some, which it seldom does: they count as nothing.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Frees what this thread no longer uses, before more is asked for. */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}
