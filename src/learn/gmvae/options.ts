// What users set of C-GMVAE, and what the two profiles make of it: the authors' code and their paper differ. Two
// defaults are neither's: a bias for each label and dropout in the decoder, which validated better on every set tried.
import { choice, flag, integer, number, type OptionsOf } from '../../options.ts';
import { batch, dropout, patience, runtimeThreads, validation } from '../network-options.ts';
import { scoreNames } from './scores.ts';

const byProfile = -1;

export const options = {
  profile: choice(
    'code',
    ['code', 'paper'],
    'sets the defaults of the options that say "profile": as the authors programmed it, or as they wrote it',
  ),
  embedding: integer(512, 'length of the label embeddings', { min: 1 }),
  latent: integer(64, 'length of the latent codes', { min: 1 }),
  dropout,
  inputDropout: number(0, 'the same of features, for both networks that read them', { min: 0, max: 0.99 }),
  decoderDropout: number(0.5, 'the same in the decoder; the authors have 0', { min: 0, max: 0.99 }),
  learningRate: number(0.001, 'how far a step of Adam goes, at first', { min: 0 }),
  lowestRate: number(0.0001, 'where the learning rate comes down to, along a cosine', { min: 0 }),
  restart: integer(50, 'epochs until it starts anew from the top; 0: it stays there', { min: 0 }),
  stretch: integer(2, 'each time so many times as long', { min: 1 }),
  weightDecay: number(1e-5, 'how strongly weights are pulled to zero (L2)', { min: 0 }),
  maxNorm: number(0, 'the longest that a gradient may be; 0: any length', { min: 0 }),
  batch: batch(128),
  epochs: integer(0, 'passes over the rows at most; 0: the profile (code 90, paper 100)', { min: 0 }),
  patience: patience(15),
  validation,
  select: choice(
    'macroF1',
    scoreNames,
    'the validation score by which the epoch is chosen, each at its best threshold of .1 to .9',
  ),
  klWeight: number(byProfile, 'of the divergence from the prior; -1: the profile (code 6, paper 1)', {
    min: -1,
  }),
  likelihoodWeight: number(0.5, 'of the cross-entropy of the labels (beta)', { min: 0 }),
  contrastWeight: number(1, 'of the contrastive loss (alpha)', { min: 0 }),
  prior: choice(
    'mixture',
    ['mixture', 'single'],
    'one Gaussian per label, mixed over the labels of a row, or a single one made from all of them',
  ),
  divergence: choice('q|p', ['q|p', 'p|q'], 'with prior=single, from which side the divergence is taken'),
  labelBranch: flag(true, 'whether codes made from the true labels are decoded too while training'),
  labelInput: choice(
    'profile',
    ['profile', 'relu', 'plain'],
    'embeddings enter the label encoder through bias and ReLU (code) or as they are (paper)',
  ),
  decoderInput: choice(
    'profile',
    ['profile', 'features+latent', 'latent'],
    'what is decoded: the latent code beside the features (code) or alone (paper)',
  ),
  decoderLayers: integer(0, 'hidden layers of 512 in the decoder; 0: the profile (code 1, paper 2)', {
    min: 0,
  }),
  reconstruct: choice(
    'profile',
    ['profile', 'labels', 'features'],
    'what codes must give back: the labels alone (code) or the features too (paper)',
  ),
  logitScale: number(
    0,
    'times the product of the embeddings of an input and of a label; 0: 1 (code), or more where labels are many',
    { min: 0 },
  ),
  labelBias: flag(
    true,
    'whether each label has a bias beside its embedding, which starts from its frequency; the authors have none',
  ),
  temperature: number(0, 'of the contrastive loss; 0: 1 with raw label embeddings, 0.1 with unit ones', {
    min: 0,
  }),
  contrastLabels: choice(
    'profile',
    ['profile', 'raw', 'unit'],
    'label embeddings in the contrastive loss: as they are (code) or of length one (paper)',
  ),
  contrastAnchors: choice(
    'profile',
    ['profile', 'both', 'features'],
    'what is held against the labels: both branches (code) or that of the features (paper)',
  ),
  emptyRows: choice(
    'keep',
    ['keep', 'drop'],
    'rows without labels: they teach what is not there, or nothing',
  ),
  scaling: choice(
    'global',
    ['global', 'columns', 'none'],
    'sparse features: one factor for all, each column to mean 0 and deviation 1, or as they are',
  ),
  runtimeThreads,
};
export type Options = OptionsOf<typeof options>;

const profiles = {
  code: {
    epochs: 90,
    klWeight: 6,
    labelInput: 'relu',
    decoderInput: 'features+latent',
    decoderLayers: 1,
    reconstruct: 'labels',
    contrastLabels: 'raw',
    contrastAnchors: 'both',
  },
  paper: {
    epochs: 100,
    klWeight: 1,
    labelInput: 'plain',
    decoderInput: 'latent',
    decoderLayers: 2,
    reconstruct: 'features',
    contrastLabels: 'unit',
    contrastAnchors: 'features',
  },
} as const;

export type Settings = ReturnType<typeof settle>;

/** The options with the profile's word where they have none of their own. */
export function settle(o: Options) {
  const profile = profiles[o.profile];
  const own = <T extends string>(value: T | 'profile', usual: T): T => (value === 'profile' ? usual : value);
  const contrastLabels = own(o.contrastLabels, profile.contrastLabels);
  return {
    ...o,
    epochs: o.epochs || profile.epochs,
    klWeight: o.klWeight < 0 ? profile.klWeight : o.klWeight,
    labelInput: own(o.labelInput, profile.labelInput),
    decoderInput: own(o.decoderInput, profile.decoderInput),
    decoderLayers: o.decoderLayers || profile.decoderLayers,
    reconstruct: own(o.reconstruct, profile.reconstruct),
    contrastLabels,
    contrastAnchors: own(o.contrastAnchors, profile.contrastAnchors),
    temperature: o.temperature || (contrastLabels === 'unit' ? 0.1 : 1),
  };
}
