// Reverse-mode differentiation: the gradients of a scalar are values of the same kind as any other, so they can be
// written down, run, and differentiated again.
import { ancestors, badShapes, sizeOf, type Value } from './graph.ts';
import { add, fill } from './ops.ts';

/** How `loss` changes with each value in `of`; zeros where it does not depend on one. */
export function gradients(loss: Value, of: readonly Value[]): Value[] {
  if (sizeOf(loss.shape) !== 1) throw badShapes('gradients', 'the loss must be one number', loss.shape);
  const program = ancestors([loss]);
  const depends = new Set(of);
  for (const value of program) if (value.inputs.some((from) => depends.has(from))) depends.add(value);
  const found = new Map<Value, Value>([[loss, fill(1, loss.shape)]]);
  for (const value of program.reverse()) {
    const gradient = found.get(value);
    if (!gradient || !value.backward || !depends.has(value)) continue;
    value.backward(gradient).forEach((part, i) => {
      const from = value.inputs[i];
      if (!part || !depends.has(from)) return;
      const before = found.get(from);
      found.set(from, before ? add(before, part) : part);
    });
  }
  return of.map((value) => found.get(value) ?? fill(0, value.shape));
}
