// Random numbers inside the kernels: fast, and the same for the same seed. Not for callers, who have math/random.ts.

/** The next state of a xorshift generator; never zero. */
export function draw(state: u32): u32 {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^ (state << 5);
}

/** A number below n, made from a random one. */
export function below(random: u32, n: u32): u32 {
  return <u32>((<u64>random * <u64>n) >> 32);
}
