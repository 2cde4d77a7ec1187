import type { Session } from '../auth/session.ts';
import { unavailable } from '../shared/errors.ts';

/** Milliseconds that an operation waits until it is known that its credential has not ended. */
const CLEARED_WITHIN = 1_500;

/** An open socket is no proof: what this process knows of endings must be fresh for each operation. */
export const clearedInTime = async (session: Session | null): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(unavailable('The credential cannot be checked now. Try again.')),
      CLEARED_WITHIN,
    );
  });
  try {
    await Promise.race([session?.cleared(), late]);
  } finally {
    clearTimeout(timer);
  }
};
