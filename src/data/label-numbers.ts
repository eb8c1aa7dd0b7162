// The numbers labels have in formats that know labels only by number (XMC text, NumPy matrices).
import { badInput } from '../errors.ts';
import { AtomicFile } from './file.ts';
import type { Vocabulary } from './vocabulary.ts';

/** More than a vocabulary can index. */
export const labelLimit = 2 ** 24;

/**
 * The number a label has in the file: its id where ids are numbers, so that files written apart agree; its column
 * where they are not, and then `name.labels.txt` beside the file lists the ids.
 */
export class LabelNumbers {
  readonly #vocabulary: Vocabulary;
  readonly #numbers: number[] = [];
  #byId: boolean | undefined;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  of(column: number): number {
    this.#catchUp();
    return this.#numbers[column];
  }

  get count(): number {
    this.#catchUp();
    return this.#numbers.reduce((count, number) => Math.max(count, number + 1), 0);
  }

  /** The vocabulary may have grown. Whether its ids are numbers is decided by the labels of the first batch. */
  #catchUp(): void {
    const ids = () => Array.from(this.#vocabulary, ({ id }) => id);
    if (this.#vocabulary.size > 0) this.#byId ??= ids().every(isLabelNumber);
    for (let column = this.#numbers.length; column < this.#vocabulary.size; column++) {
      const { id } = this.#vocabulary.label(column);
      if (this.#byId && !isLabelNumber(id))
        throw badInput(`label ids must all be whole numbers below ${labelLimit}, as the first ones are`, {
          value: id,
          hint: 'this format cannot hold the mixture: write svmlight or jsonl',
        });
      this.#numbers.push(this.#byId ? Number(id) : column);
    }
  }

  async save(path: string): Promise<void> {
    if (this.#byId !== false) return;
    const file = await AtomicFile.create(path.replace(/(\.\w+)?(\.gz)?$/i, '.labels.txt'));
    await file.write(Array.from(this.#vocabulary, ({ id }) => `${id}\n`).join(''));
    await file.close();
  }
}

const isLabelNumber = (id: string) => /^(0|[1-9]\d{0,7})$/.test(id) && Number(id) < labelLimit;
