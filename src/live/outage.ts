import type { Logger } from './bus.ts';

/** Says once that something fails, and once that it works again, however often either is seen. */
export interface Outage {
  failed(error: unknown): void;
  over(): void;
}

export const createOutage = (log: Logger, source: string): Outage => {
  let isFailing = false;
  return {
    failed(error) {
      if (!isFailing) log.warn({ err: error, source }, 'Reading a log fails; its followers wait.');
      isFailing = true;
    },
    over() {
      if (isFailing) log.info({ source }, 'Reading a log works again.');
      isFailing = false;
    },
  };
};
