import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeTensors, encodeTensors } from './safetensors.ts';

describe('safetensors', () => {
  it('gives back every tensor it was given', () => {
    const data = fc.oneof(
      fc.float32Array({ noNaN: true }),
      fc.float64Array({ noNaN: true }),
      fc.uint8Array(),
      fc.int8Array(),
      fc.uint16Array(),
      fc.uint32Array(),
      fc.int32Array(),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), data), (given) => {
        const tensors = Object.fromEntries(
          Object.entries(given).map(([name, values]) => [name, { shape: [values.length], data: values }]),
        );
        const bytes = Buffer.concat(encodeTensors(tensors));
        expect(decodeTensors(bytes)).toEqual(tensors);
      }),
    );
  });

  it('refuses random bytes and random damage with a clear error, never a crash', () => {
    const good = Buffer.concat(encodeTensors({ a: { shape: [4], data: new Float32Array(4) } }));
    const damaged = fc
      .tuple(fc.nat(good.length - 9), fc.nat(255))
      .map(([at, byte]) => Buffer.from(good.with(at, byte)));
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), damaged), (bytes) => {
        try {
          decodeTensors(bytes);
        } catch (error) {
          expect((error as Error).message).toMatch(/^safetensors: /);
        }
      }),
    );
  });

  it('reads tensors wherever the header ends, as other programs do not always fill it up', () => {
    const numbers = Float32Array.of(1.5, -2);
    for (let filling = 0; filling < 8; filling++) {
      const header = JSON.stringify({ a: { dtype: 'F32', shape: [2], data_offsets: [0, 8] } });
      const head = Buffer.from(`12345678${header}${' '.repeat(filling)}`);
      head.writeBigUInt64LE(BigInt(head.length - 8));
      const { a } = decodeTensors(Buffer.concat([head, new Uint8Array(numbers.buffer)]));
      expect(a.data).toEqual(numbers);
    }
  });

  it('reads the shorter floats and longer integers of others as what we have', () => {
    const given: [string, string, Uint8Array][] = [
      ['half', 'F16', new Uint8Array(Uint16Array.of(0x3c00, 0xc100, 0x0001, 0x7c00, 0x0000).buffer)],
      ['brain', 'BF16', new Uint8Array(Uint16Array.of(0x3f80, 0xc020, 0x7f80).buffer)],
      ['long', 'I64', new Uint8Array(BigInt64Array.of(3n, -7n).buffer)],
    ];
    let at = 0;
    const entries = given.map(([name, dtype, bytes]) => {
      const size = dtype === 'I64' ? 8 : 2;
      at += bytes.length;
      return [name, { dtype, shape: [bytes.length / size], data_offsets: [at - bytes.length, at] }];
    });
    const header = new TextEncoder().encode(JSON.stringify(Object.fromEntries(entries)));
    const length = new Uint8Array(BigUint64Array.of(BigInt(header.length)).buffer);
    const tensors = decodeTensors(Buffer.concat([length, header, ...given.map(([, , bytes]) => bytes)]));
    const numbers = (name: string) => [...tensors[name].data];
    expect(numbers('half')).toEqual([1, -2.5, 2 ** -24, Number.POSITIVE_INFINITY, 0]);
    expect(numbers('brain')).toEqual([1, -2.5, Number.POSITIVE_INFINITY]);
    expect(numbers('long')).toEqual([3, -7]);
  });
});
