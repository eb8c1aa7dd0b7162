// What tells the pieces of one training run from those of another.

/** Sixteen hexadecimal digits that change with the settings and with every byte of the arrays. */
export function fingerprint(settings: unknown, arrays: readonly ArrayBufferView[]): string {
  const views = [new TextEncoder().encode(JSON.stringify(settings)), ...arrays];
  return [0x811c9dc5, 0x2f0b4c47]
    .map((start) => {
      let hash = start;
      for (const { buffer, byteOffset, byteLength } of views) {
        const bytes = new Uint8Array(buffer, byteOffset, byteLength);
        for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
      }
      return (hash >>> 0).toString(16).padStart(8, '0');
    })
    .join('');
}
