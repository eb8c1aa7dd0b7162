// The parameters of a network: inputs by name and shape, and how each is drawn at the start.
import { Random } from '../math/random.ts';
import { input, type Shape, sizeOf, type Value } from './graph.ts';
import { layerNorm, linear } from './layers.ts';

/** All of one number, or normal with this deviation. */
export type Start = { all: number } | { deviation: number };

export class Parameters {
  readonly #starts = new Map<Value, Start>();

  get values(): Value[] {
    return [...this.#starts.keys()];
  }

  make(name: string, shape: Shape, start: Start): Value {
    const value = input(name, shape);
    this.#starts.set(value, start);
    return value;
  }

  /** x times weights of this name, plus a bias, for every row; `scale` is that of the weights at the start. */
  linear(name: string, from: number, to: number, scale = 1): (x: Value) => Value {
    const deviation = scale / Math.sqrt(from);
    const weights = this.make(`${name}.weights`, [from, to], { deviation });
    const bias = this.make(`${name}.bias`, [to], { all: 0 });
    return (x) => linear(x, weights, bias);
  }

  layerNorm(name: string, width: number, epsilon?: number): (x: Value) => Value {
    const scale = this.make(`${name}.scale`, [width], { all: 1 });
    const bias = this.make(`${name}.bias`, [width], { all: 0 });
    return (x) => layerNorm(x, scale, bias, epsilon);
  }

  /** Numbers to start from; they depend on the seed and the name of a parameter alone. */
  draw(seed: number): Map<Value, Float32Array> {
    const fill = ([value, start]: [Value, Start]): [Value, Float32Array] => {
      const numbers = new Float32Array(sizeOf(value.shape));
      if ('all' in start) return [value, numbers.fill(start.all)];
      const random = new Random(seed, 'parameter', value.name ?? '');
      return [value, numbers.map(() => start.deviation * random.normal())];
    };
    return new Map(Array.from(this.#starts, fill));
  }
}

/** Biases and the scales of layer norms do not decay: they are what has one axis. */
export const decays = ({ shape }: Value): boolean => shape.length > 1;
