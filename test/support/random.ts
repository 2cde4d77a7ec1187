import { randomInt } from 'node:crypto';

/**
 * Numbers from 0 up to 1, drawn from a seed that is printed, so that a run can be had again: `TEST_SEED=…` sets it.
 * Marsaglia's xorshift of 32 bits.
 */
export const createRandom = (name: string): (() => number) => {
  const seed = Number(process.env.TEST_SEED ?? randomInt(1, 2 ** 31));
  process.stdout.write(`${name}: TEST_SEED=${seed}\n`);
  let state = seed | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
};
