import type { RunScope } from '../auth/actor.ts';
import { DomainError } from '../shared/errors.ts';
import type { Database } from '../storage/database.ts';
import { readEventsById } from './reads.ts';

/**
 * A source that is neither an event nor `seen` refuses the append, unless it is a replay: so where it could not be told
 * which are seen, what was posted before is answered, and all else fails as the look did.
 */
export const appendSeeing = async <T>(
  append: (seen: readonly string[]) => Promise<T>,
  looking: Promise<readonly string[]>,
): Promise<T> => {
  let seen: readonly string[] = [];
  let failure: unknown = null;
  try {
    seen = await looking;
  } catch (error) {
    failure = error;
  }
  try {
    return await append(seen);
  } catch (error) {
    const isUnseen =
      error instanceof DomainError && error.code === 'NOT_FOUND' && error.facts.field === 'sourceIds';
    throw isUnseen && failure !== null ? failure : error;
  }
};

/** No id at all: as a source it is refused like one that never existed. */
const NO_SOURCE = '';

/** A run derives from what it reaches: an event of another thread is none to it, whoever may see that. */
export const inReach = async (
  database: Database,
  ownerId: string,
  { conversationThreadId }: RunScope,
  ids: readonly string[],
): Promise<readonly string[]> => {
  if (ids.length === 0) return ids;
  const events = await readEventsById(database, ownerId, ids);
  return ids.map((id, index) => {
    const event = events[index] ?? null;
    return event === null || event.threadId === conversationThreadId ? id : NO_SOURCE;
  });
};
