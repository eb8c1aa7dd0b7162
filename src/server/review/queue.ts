// Predictions that a model is unsure of, and what people decided about them. Kept by the name of the model.
import type { Reviewed } from '../runs/trainer.ts';
import { now, type State } from '../state.ts';
import type { Decision, ReviewCounts, ReviewItem, ReviewPage, ReviewQuery } from './schemas.ts';

export interface Unsure {
  text: string;
  label: string;
  name: string;
  score: number;
}

/** Adds what is not in the queue yet; returns how many were added. */
export function addUnsure({ database }: State, model: string, found: Unsure[]): number {
  const before = total(countReviews({ database }, model));
  database.atomically(() => {
    for (const { text, label, name, score } of found)
      database.run(
        'insert or ignore into reviews (model, text, label, name, score) values (?, ?, ?, ?, ?)',
        model,
        text,
        label,
        name,
        score,
      );
  });
  return total(countReviews({ database }, model)) - before;
}

const total = ({ waiting, accepted, rejected }: ReviewCounts) => waiting + accepted + rejected;

export function countReviews({ database }: Pick<State, 'database'>, model: string): ReviewCounts {
  const rows = database.all<{ decision: Decision | null; items: number }>(
    'select decision, count(*) as items from reviews where model = ? group by decision',
    model,
  );
  const of = (decision: Decision | null) => rows.find((row) => row.decision === decision)?.items ?? 0;
  return { waiting: of(null), accepted: of('accepted'), rejected: of('rejected') };
}

export function listReviews(state: State, model: string, query: ReviewQuery): ReviewPage {
  const { show = 'waiting', limit = 50 } = query;
  const chosen =
    show === 'waiting'
      ? 'decision is null order by abs(score - 0.5), id'
      : 'decision is not null order by decided desc, id';
  const items = state.database.all<ReviewItem>(
    `select id, text, label, name, score, decision from reviews where model = ? and ${chosen} limit ?`,
    model,
    limit,
  );
  // The package adds a field of its own to rows.
  const plain = items.map(({ id, text, label, name, score, decision }) => {
    return { id, text, label, name, score, decision };
  });
  return { ...countReviews(state, model), items: plain };
}

/** Whether there is such an item. */
export function decide({ database }: State, model: string, id: number, decision: Decision | null): boolean {
  const row = database.get(
    'update reviews set decision = ?, decided = ? where id = ? and model = ? returning id',
    decision,
    decision && now(),
    id,
    model,
  );
  return row !== undefined;
}

/** Every text that something was decided about. */
export function reviewedTexts({ database }: Pick<State, 'database'>, model: string): Reviewed[] {
  const rows = database.all<{ text: string; label: string; decision: Decision }>(
    'select text, label, decision from reviews where model = ? and decision is not null order by id',
    model,
  );
  const texts = new Map<string, Reviewed>();
  for (const { text, label, decision } of rows) {
    const reviewed = texts.get(text) ?? { text, accepted: [], rejected: [] };
    reviewed[decision].push(label);
    texts.set(text, reviewed);
  }
  return [...texts.values()];
}
