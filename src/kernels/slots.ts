// Areas of a shared memory that threads take in turns: whoever marks a slot has it until it is given back.

/** How many may be at work at once in a memory that threads share. */
const sharedSlots = 16;

/** One mark per slot; a memory of one thread needs only one. */
export const slotFlags = (shared: boolean): Int32Array =>
  shared ? new Int32Array(new SharedArrayBuffer(sharedSlots * 4)) : new Int32Array(1);

/** A free slot, marked as taken; nothing done in a slot takes long, so neither does this. */
export function claimSlot(flags: Int32Array): number {
  for (;;) {
    for (let slot = 0; slot < flags.length; slot++) {
      if (Atomics.compareExchange(flags, slot, 0, 1) === 0) return slot;
    }
  }
}

export function releaseSlot(flags: Int32Array, slot: number): void {
  Atomics.store(flags, slot, 0);
}
