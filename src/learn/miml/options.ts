// What users set of Deep-MIML.
import { choice, flag, integer, number, type OptionsOf } from '../../options.ts';
import { heads } from './network.ts';

export const options = {
  attention: choice(
    'eagle',
    ['none', 'eagle-0', 'eagle'],
    'which instances count for a label: all alike (plain Deep-MIML), those near the mean of the bags with the label, or ' +
      'near that mean turned towards the nearest instances',
  ),
  tau: number(0.5, 'how sharply attention chooses; 0: not at all', { min: 0 }),
  chooseTau: flag(false, 'train with tau 0, 0.5, 1, 2, 5, 10 and 20 and keep what validates best'),
  iterations: integer(20, 'how often eagle turns', { min: 0 }),
  step: number(0.1, 'how far it turns each time', { min: 0 }),
  hidden: integer(512, 'size of the hidden layer', { min: 1 }),
  concepts: integer(5, 'concepts per label, of which the best counts', { min: 1 }),
  head: choice(
    'softmax',
    heads,
    'what scores are held against: the share of each label in its bag, or (bce-softmax) whether the bag has it',
  ),
  dropout: number(0.5, 'chance that a hidden number is left out of a step', { min: 0, max: 0.99 }),
  learningRate: number(1e-4, 'how far a step of Adam goes', { min: 0 }),
  weightDecay: number(0, 'share of the weights, times the learning rate, that a step takes away', { min: 0 }),
  batch: integer(64, 'bags per step', { min: 1 }),
  epochs: integer(40, 'passes over the bags at most', { min: 1 }),
  patience: integer(10, 'stop after so many epochs without a better validation score; 0: never', { min: 0 }),
  validation: number(
    0.1,
    'share of the bags held back to choose the epoch, where no validation data is given',
    {
      min: 0,
      max: 0.9,
    },
  ),
  columns: integer(512, 'sparse features (texts) are projected to so many columns', { min: 1 }),
  runtimeThreads: integer(
    2,
    'threads of the runtime, whatever --threads says: other numbers round otherwise',
    {
      min: 1,
    },
  ),
};
export type Options = OptionsOf<typeof options>;
