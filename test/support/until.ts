import { setTimeout as delay } from 'node:timers/promises';

/** Waits until a condition of the running system holds; fails after ten seconds. For what tells no event. */
export const until = async (holds: () => boolean | Promise<boolean>, everyMs = 5): Promise<void> => {
  const deadline = Date.now() + 10_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`Still not so: ${holds}`);
    await delay(everyMs);
  }
};
