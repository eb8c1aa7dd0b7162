// What networks are made of, put together from the operations of ops.ts.
import { badUsage } from '../errors.ts';
import { axisOf, badShapes, input, makeValue, sameShape, type Value } from './graph.ts';
import {
  abs,
  add,
  clip,
  div,
  erf,
  exp,
  expand,
  log,
  matmul,
  max,
  mean,
  mul,
  neg,
  relu,
  reshape,
  sigmoid,
  sqrt,
  stopGradient,
  sub,
  sum,
  sumTo,
  withGradient,
  withRows,
} from './ops.ts';

/** x times the weights, plus the bias, for every row (the last axis) of x. */
export const linear = (x: Value, weights: Value, bias: Value): Value =>
  withRows(x, (rows) => add(matmul(rows, weights), bias));

/** With this chance a number becomes 0, else it grows so that the mean stays; the trainer draws what is fed as `name`. */
export function dropout(x: Value, rate: number, name: string): Value {
  if (!(rate >= 0 && rate < 1)) throw badUsage('dropout: rate must be from 0 to below 1', { value: rate });
  return rate === 0 ? x : mul(x, input(name, x.shape, 'float32', { draw: 'mask', rate }));
}

/** log(1 + exp(x)); made of parts, because ONNX's own operator keeps to one thread. */
export function softplus(x: Value): Value {
  const value = add(relu(x), log(add(exp(neg(abs(x))), 1)));
  return withGradient(value, [x], (gradient) => [mul(gradient, sigmoid(x))]);
}

/** x times the chance that a standard normal number is below x. */
export function gelu(x: Value): Value {
  const scaled = mul(x, Math.SQRT1_2);
  const chance = mul(add(erf(scaled), 1), 0.5);
  // x times the normal density, in as few passes over the numbers as it takes.
  const tilt = () => mul(scaled, exp(sub(-0.5 * Math.log(Math.PI), mul(scaled, scaled))));
  const backward = (gradient: Value) => [mul(gradient, add(chance, tilt()))];
  return withGradient(mul(x, chance), [x], backward);
}

/** x above 0, `slope` times x below. */
export const leakyRelu = (x: Value, slope: number): Value =>
  makeValue('LeakyRelu', [x], x.shape, {
    attributes: { alpha: slope },
    // Clipped, what is far above 0 or below it is a step: in two passes over the numbers.
    backward: (gradient) => [mul(gradient, clip(mul(x, 1e30), slope, 1))],
  });

/** Rows (the last axis) of length one; rows of zeros stay what they are. */
export function unit(x: Value): Value {
  const last = [x.shape.length - 1];
  const length = sqrt(add(sum(mul(x, x), last, true), 1e-12));
  const y: Value = withGradient(div(x, length), [x], (gradient) => [
    div(sub(gradient, mul(y, sum(mul(gradient, y), last, true))), length),
  ]);
  return y;
}

export function softmax(x: Value, axis = -1): Value {
  const along = axisOf('softmax', x.shape, axis);
  const y: Value = makeValue('Softmax', [x], x.shape, {
    attributes: { axis: along },
    backward: (gradient) => [mul(y, sub(gradient, sum(mul(gradient, y), [along], true)))],
  });
  return y;
}

export function logSoftmax(x: Value, axis = -1): Value {
  const along = axisOf('logSoftmax', x.shape, axis);
  const y: Value = makeValue('LogSoftmax', [x], x.shape, {
    attributes: { axis: along },
    backward: (gradient) => [sub(gradient, mul(exp(y), sum(gradient, [along], true)))],
  });
  return y;
}

/** log of the sum of exponentials over these axes, without overflow. */
export function logSumExp(x: Value, axes: readonly number[], keep = false): Value {
  const top = stopGradient(max(x, axes, true));
  const total = add(log(sum(exp(sub(x, top)), axes, true)), top);
  return keep ? total : reshape(total, sum(x, axes).shape);
}

/** Rows (the last axis) brought to mean 0 and variance 1, then scaled and shifted. */
export function layerNorm(x: Value, scale: Value, bias: Value, epsilon = 1e-5): Value {
  const width = x.shape.slice(-1);
  if (x.shape.length === 0 || !sameShape(scale.shape, width) || !sameShape(bias.shape, width))
    throw badShapes('layerNorm', 'scale and bias must be as long as a row', x.shape, scale.shape, bias.shape);
  const last = [x.shape.length - 1];
  const normal = (): Value => mul(sub(x, average), spread);
  const y: Value = makeValue('LayerNormalization', [x, scale, bias], x.shape, {
    attributes: { axis: -1, epsilon },
    backward: (gradient) => {
      const unit = normal();
      const scaled = mul(gradient, scale);
      const along = mul(unit, mean(mul(scaled, unit), last, true));
      const forX = mul(spread, sub(sub(scaled, mean(scaled, last, true)), along));
      return [forX, sumTo(mul(gradient, unit), width), sumTo(gradient, width)];
    },
  });
  const statistic = (index: number, backward: (gradient: Value) => Value): Value =>
    makeValue('Output', [y, x], x.shape.with(-1, 1), {
      attributes: { index },
      backward: (gradient) => [undefined, backward(gradient)],
    });
  const average = statistic(1, (gradient) => expand(mul(gradient, 1 / width[0]), x.shape));
  const spread: Value = statistic(2, (gradient) =>
    mul(mul(gradient, mul(spread, spread)), mul(normal(), -1 / width[0])),
  );
  return y;
}
