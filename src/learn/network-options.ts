// Options that networks have in common, described once; how much of each is the learner's.
import { integer, type NumberOption, number } from '../options.ts';

export const epochs = (value: number): NumberOption =>
  integer(value, 'passes over the training data at most', { min: 1 });

export const batch = (value: number, least = 1): NumberOption =>
  integer(value, 'samples (of bags: bags) per step', { min: least });

export const patience = (value: number): NumberOption =>
  integer(value, 'stop after so many epochs in which no validation score got better; 0: never', { min: 0 });

export const validation = number(
  0.1,
  'share of the training data held back to choose the epoch, where no validation data is given',
  { min: 0, max: 0.9 },
);

export const dropout = number(0.5, 'chance that a hidden number is left out of a step', {
  min: 0,
  max: 0.99,
});

export const runtimeThreads = integer(
  2,
  'threads of the runtime, whatever --threads says: other numbers round otherwise',
  { min: 1 },
);
