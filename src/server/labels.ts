// Label search for people who type: every word must begin a word of the name (or of another name), or all of it begin
// the id. Exact names first, then names that begin so, then the most frequent.
import { badInput } from '../errors.ts';
import type { Classifier } from '../learn/classifier.ts';
import type { LabelSpace } from '../learn/label-space.ts';
import type { Label, LabelDetail, LabelPage, LabelsQuery, Neighbours, Similarities } from './schemas.ts';

const narrowerShown = 100;

export class LabelIndex {
  readonly #classifier: Classifier;
  /** ` name | other name `, in lower case with single spaces: ` wor` finds a word by its beginning. */
  readonly #names: string[];
  readonly #ids: string[];
  readonly #byFrequency: Uint32Array;
  #children: Map<string, number[]> | undefined;
  #space: LabelSpace | undefined;

  constructor(classifier: Classifier) {
    const { vocabulary, counts } = classifier;
    this.#classifier = classifier;
    const labels = [...vocabulary];
    this.#names = labels.map(
      ({ id, name = id, altNames = [] }) => ` ${[name, ...altNames].map(words).join(' | ')} `,
    );
    this.#ids = labels.map(({ id }) => id.toLowerCase());
    this.#byFrequency = Uint32Array.from(labels.keys()).sort((a, b) => counts[b] - counts[a] || a - b);
  }

  search({ search = '', offset = 0, limit = 20 }: LabelsQuery): LabelPage {
    const columns = search.trim() === '' ? this.#byFrequency : this.#matches(search.trim());
    const page = Array.from(columns.slice(offset, offset + limit), (column) => this.#label(column));
    return { found: columns.length, offset, labels: page };
  }

  /** Undefined where the vocabulary has no such id. */
  detail(id: string): Omit<LabelDetail, 'quality'> | undefined {
    const { vocabulary } = this.#classifier;
    const column = vocabulary.column(id);
    if (column === undefined) return undefined;
    const parents = (vocabulary.label(column).parents ?? []).map((parent) => vocabulary.column(parent));
    const broader = parents.filter((parent) => parent !== undefined).map((parent) => this.#label(parent));
    const narrower = (this.#childrenOf(id) ?? []).slice(0, narrowerShown).map((child) => this.#label(child));
    return { ...this.#label(column), broader, narrower };
  }

  /** JSON; undefined where the vocabulary has no such id. */
  neighbours(id: string, top: number): string | undefined {
    const { vocabulary } = this.#classifier;
    const column = vocabulary.column(id);
    if (column === undefined) return undefined;
    const neighbours = this.#labelSpace().neighbours(column, top);
    return JSON.stringify({
      neighbours: neighbours.map(({ label, similarity }) => {
        return { label: vocabulary.label(label).id, name: vocabulary.name(label), similarity };
      }),
    } satisfies Neighbours);
  }

  /** Of every label with every other. */
  similarities(ids: string[]): Similarities {
    const { vocabulary } = this.#classifier;
    const columns = [...new Set(ids)].map((id) => {
      const column = vocabulary.column(id);
      if (column === undefined) throw badInput('label id must be in the vocabulary', { value: id });
      return column;
    });
    const space = this.#labelSpace();
    const short = (value: number) => Math.round(1e4 * value) / 1e4;
    return {
      labels: columns.map((column) => ({ id: vocabulary.label(column).id, name: vocabulary.name(column) })),
      matrix: columns.map((a) => columns.map((b) => (a === b ? 1 : short(space.similarity(a, b))))),
    };
  }

  #labelSpace(): LabelSpace {
    this.#space ??= this.#classifier.labelSpace();
    return this.#space;
  }

  #matches(search: string): number[] {
    const wanted = words(search);
    const beginnings = wanted
      .split(' ')
      .filter(Boolean)
      .map((word) => ` ${word}`);
    const id = search.toLowerCase();
    const groups: number[][] = [[], [], []];
    for (const column of this.#byFrequency) {
      const names = this.#names[column];
      const named = beginnings.length > 0 && beginnings.every((word) => names.includes(word));
      if (!named && !this.#ids[column].startsWith(id)) continue;
      const exact = this.#ids[column] === id || names.startsWith(` ${wanted} |`) || names === ` ${wanted} `;
      groups[exact ? 0 : names.startsWith(` ${wanted}`) ? 1 : 2].push(column);
    }
    return groups.flat();
  }

  #label(column: number): Label {
    const { vocabulary, counts } = this.#classifier;
    const { id, altNames } = vocabulary.label(column);
    const excluded = vocabulary.isExcluded(column);
    return { id, name: vocabulary.name(column), altNames, samples: counts[column] ?? 0, excluded };
  }

  #childrenOf(id: string): number[] | undefined {
    if (!this.#children) {
      this.#children = new Map();
      let column = 0;
      for (const { parents = [] } of this.#classifier.vocabulary) {
        for (const parent of parents) {
          const siblings = this.#children.get(parent);
          if (siblings) siblings.push(column);
          else this.#children.set(parent, [column]);
        }
        column++;
      }
    }
    return this.#children.get(id);
  }
}

/** In lower case, with one space between words and nothing else. */
const words = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}]+/gu, ' ')
    .trim();
