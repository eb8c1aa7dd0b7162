// The plug point of the data room: what a file format must offer, and what every reader and writer is told.
import type { Progress } from '../progress.ts';
import type { Sample, SampleStream } from './dataset.ts';
import type { Skipped } from './skipped.ts';
import type { Vocabulary } from './vocabulary.ts';

/** Which columns of a table hold what: names from the header, or 1-based positions. Several text columns are joined. */
export interface Columns {
  id?: string;
  text?: string[];
  labels?: string[];
  group?: string;
}

export interface ReadOptions {
  /** Labels found are added to this vocabulary; a new one if absent. */
  vocabulary?: Vocabulary;
  columns?: Columns;
  /** Between the labels of one table cell; a comma unless told otherwise. */
  labelDelimiter?: string;
  /** Second file, where labels live apart: Mulan's XML, a label matrix (.npz), IDX labels. */
  companion?: string;
  /** Whether a file without a byte is one without records; otherwise it is refused. */
  mayBeEmpty?: boolean;
  /** Bad records are counted here and left out; without it the first one is an error. */
  skipped?: Skipped;
  /** Told what was taken for granted about a file, in words for people. */
  note?: (text: string) => void;
  progress?: Progress;
  signal?: AbortSignal;
}

/** What a writer must know before the first sample. */
export interface Header {
  vocabulary: Vocabulary;
  width?: number;
  featureNames?: string[];
  labelDelimiter?: string;
}

/** Takes batches in order; the file appears whole under its name on `close`, or not at all. */
export interface SampleWriter {
  write(batch: Sample[]): Promise<void>;
  close(): Promise<void>;
  /** Removes what was written so far. */
  abort(): Promise<void>;
}

export interface Format {
  name: string;
  read(path: string, options: ReadOptions): Promise<SampleStream>;
  write?(path: string, header: Header): Promise<SampleWriter>;
}
