// What users set of Deep-MIML.
import { choice, flag, integer, number, type OptionsOf } from '../../options.ts';
import { batch, dropout, epochs, patience, runtimeThreads, validation } from '../network-options.ts';
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
  dropout,
  learningRate: number(1e-4, 'how far a step of Adam goes', { min: 0 }),
  weightDecay: number(0, 'share of the weights, times the learning rate, that a step takes away', { min: 0 }),
  batch: batch(64),
  epochs: epochs(40),
  patience: patience(10),
  validation,
  columns: integer(512, 'sparse features (texts) are projected to so many columns', { min: 1 }),
  runtimeThreads,
};
export type Options = OptionsOf<typeof options>;
