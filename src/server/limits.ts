// What the server takes at most, described once: the command line's flags are made from this table.
import { integer, type OptionsOf } from '../options.ts';

export const limitOptions = {
  bodyBytes: integer(1_000_000, 'largest request body; streams and uploads have limits of their own', {
    min: 1000,
  }),
  batch: integer(1000, 'most inputs in one request that is not a stream', { min: 1 }),
  top: integer(1000, 'most labels per input that may be asked for', { min: 1 }),
  seconds: integer(10, 'a request that waits longer is refused', { min: 1 }),
  queue: integer(5000, 'inputs that may wait per model; one counts once per 1000 characters', { min: 1 }),
  requests: integer(10_000, 'requests in progress at once', { min: 1 }),
  rate: integer(6000, 'requests per client and minute; 0 for any number', { min: 0 }),
  uploadBytes: integer(100_000_000, 'largest file to evaluate', { min: 1000 }),
  evaluateSeconds: integer(300, 'longest evaluation', { min: 1 }),
};

export type Limits = OptionsOf<typeof limitOptions>;
