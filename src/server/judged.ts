// A model's answers to a data set, judged: the report, and how each label fares. Used by uploads and by runs.
import type { Dataset } from '../data/dataset.ts';
import { labelReport } from '../judge/bins.ts';
import { evaluate, evaluateOptions } from '../judge/evaluate.ts';
import type { Classifier } from '../learn/classifier.ts';
import { parseOptions } from '../options.ts';
import type { Context } from '../progress.ts';
import type { EvaluationReport, Quality } from './schemas.ts';

/** Of each label that was true or predicted: test samples with it, those it was suggested for, and both. */
export interface LabelQuality {
  k: number;
  labels: Record<string, [positives: number, predicted: number, hits: number]>;
}

export interface Evaluation {
  report: EvaluationReport;
  quality: LabelQuality;
}

/** `dataset` has the labels of the classifier first in its vocabulary. */
export async function judgeAnswers(
  classifier: Classifier,
  dataset: Dataset,
  options: Record<string, unknown>,
  { top = 100, ...running }: { top?: number } & Partial<Context> = {},
): Promise<{ report: Omit<EvaluationReport, 'version' | 'notes'>; quality: LabelQuality }> {
  const { a, b, ...settings } = parseOptions(evaluateOptions, options);
  const started = performance.now();
  const ranking = await classifier.rank(dataset, { top, ...running });
  const seconds = (performance.now() - started) / 1000;
  const { counts, rows } = classifier;
  const { indices } = dataset.labels;
  const unknown = indices.filter((column) => column >= classifier.vocabulary.size).length;
  const { k, positives, predicted, hits } = labelReport(ranking, dataset.labels, { counts });
  const met = Array.from(positives.keys()).filter((label) => positives[label] + predicted[label] > 0);
  return {
    report: {
      ...evaluate(ranking, dataset.labels, { ...settings, counts, rows, propensity: { a, b } }),
      unknownLabels: indices.length ? unknown / indices.length : 0,
      seconds,
      microsecondsPerInput: (1e6 * seconds) / dataset.rows,
    },
    quality: {
      k,
      labels: Object.fromEntries(
        met.map((label) => [
          dataset.vocabulary.label(label).id,
          [positives[label], predicted[label], hits[label]],
        ]),
      ),
    },
  };
}

/** What a label's page tells of it; null where no evaluation met the label. */
export function qualityOf(evaluation: Evaluation | null, label: string): Quality | null {
  const { k = 0, labels = {} } = evaluation?.quality ?? {};
  if (!Object.hasOwn(labels, label)) return null;
  const [positives, predicted, hits] = labels[label];
  const share = (whole: number) => (whole > 0 ? hits / whole : null);
  return { k, positives, predicted, hits, precision: share(predicted), recall: share(positives) };
}
