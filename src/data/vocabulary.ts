// The label set: stable string ids, the columns they have in matrices, and what people call them.
import { badInput, badUsage } from '../errors.ts';

export interface Label {
  id: string;
  name?: string;
  /** Other names: synonyms, translations, abbreviations. */
  altNames?: string[];
  /** Ids of broader labels. */
  parents?: string[];
}

export class Vocabulary {
  readonly #labels: Label[] = [];
  readonly #columns = new Map<string, number>();
  readonly #excluded = new Set<number>();

  constructor(labels: Iterable<Label> = []) {
    for (const label of labels) {
      if (this.#columns.has(label.id)) throw badInput('label ids must be unique', { value: label.id });
      this.#columns.set(label.id, this.#labels.push(label) - 1);
    }
  }

  /** Ids "0" to "size-1", as the XMC repository's files have them. */
  static numbered(size: number): Vocabulary {
    return new Vocabulary(Array.from({ length: size }, (_, i) => ({ id: String(i) })));
  }

  get size(): number {
    return this.#labels.length;
  }

  [Symbol.iterator](): IterableIterator<Label> {
    return this.#labels.values();
  }

  label(column: number): Label {
    return this.#labels[column];
  }

  /** What to show people: the name, or the id where there is none. */
  name(column: number): string {
    const { name, id } = this.#labels[column];
    return name ?? id;
  }

  /** The column of an id, if known. */
  column(id: string): number | undefined {
    return this.#columns.get(id);
  }

  /** The column of an id, added at the end if new. */
  add(id: string): number {
    const known = this.#columns.get(id);
    if (known !== undefined) return known;
    const column = this.#labels.push({ id }) - 1;
    this.#columns.set(id, column);
    return column;
  }

  /** Takes over names, alternative names and parents for labels of the same id; labels not here are added. */
  describe(labels: Iterable<Label>): void {
    for (const label of labels) {
      const column = this.add(label.id);
      this.#labels[column] = { ...this.#labels[column], ...label };
    }
  }

  /** Labels that must never be predicted. */
  exclude(ids: Iterable<string>): void {
    for (const id of ids) this.#excluded.add(this.#known(id));
  }

  /** Takes back `exclude`. */
  allow(ids: Iterable<string>): void {
    for (const id of ids) this.#excluded.delete(this.#known(id));
  }

  /** Only these labels may be predicted. */
  include(ids: Iterable<string>): void {
    const wanted = new Set(Array.from(ids, (id) => this.#known(id)));
    for (let column = 0; column < this.size; column++) if (!wanted.has(column)) this.#excluded.add(column);
  }

  isExcluded(column: number): boolean {
    return this.#excluded.has(column);
  }

  get excludedIds(): string[] {
    return Array.from(this.#excluded, (column) => this.#labels[column].id);
  }

  /** One byte per label, 1 where it is excluded; undefined where none is. */
  excludedMask(): Uint8Array | undefined {
    if (this.#excluded.size === 0) return undefined;
    return Uint8Array.from(this.#labels, (_, column) => Number(this.#excluded.has(column)));
  }

  /** An independent copy: what is added to it does not change this one. */
  clone(): Vocabulary {
    const copy = new Vocabulary(this.#labels);
    for (const column of this.#excluded) copy.#excluded.add(column);
    return copy;
  }

  #known(id: string): number {
    const column = this.#columns.get(id);
    if (column === undefined) throw badUsage('label id must be in the vocabulary', { value: id });
    return column;
  }
}
