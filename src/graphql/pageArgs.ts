import { builder } from './builder.ts';

/** The arguments of every keyset connection. */
export const pageArgs = builder.args((t) => ({
  first: t.int({
    description: 'At most so many from the beginning, or after `after`: 1 to 200, default 50.',
  }),
  after: t.field({ type: 'Cursor', description: 'Only what comes after this edge.' }),
  last: t.int({ description: 'At most so many from the end, or before `before`: 1 to 200.' }),
  before: t.field({ type: 'Cursor', description: 'Only what comes before this edge.' }),
}));

export const AS = 'Look as this participant. Absent: the nearest enclosing one; a token, always its own.';
export const ACT_AS =
  'Act as this participant. A token acts as its own; an API key names one, here or with X-Act-As.';
export const KEY =
  'A retry with the same key and the same input gives the first result again; 1 to 128 characters. Another input: IDEMPOTENCY_KEY_REUSED.';
