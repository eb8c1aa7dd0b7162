// The tally of bad records left out under --skip-bad: how many, and the first few with their reasons.
import { UmbelError } from '../errors.ts';

export class Skipped {
  count = 0;
  readonly first: string[] = [];

  /** Counts a bad record; anything that is not a mistake in the input is thrown on. */
  add(error: unknown): void {
    if (!(error instanceof UmbelError) || error.code !== 'input') throw error;
    this.count++;
    if (this.first.length < 10) this.first.push(error.message);
  }
}
