import type { Actor, RunScope } from './actor.ts';

/** Which thread is looked at, and as whom; `viewerId` null is the owner. */
interface Sight {
  readonly threadId: string;
  readonly viewerId: string | null;
}

/** What confines an actor; null where nothing does. */
export const runOf = (actor: Actor): RunScope | null => (actor.kind === 'RUN_TOKEN' ? actor : null);

/** Whether somebody else than its worker holds the token of a run that asks. */
export const isDelegators = (actor: Actor): boolean => runOf(actor)?.isDelegators === true;

/**
 * How a thread may be looked at; null where it may not. A run reaches its conversation, as its worker, and no other
 * thread. This and the two below are the only places that say so: loaders, services and doors look through them.
 */
export const atThread = (run: RunScope | null, sight: Sight): Sight | null => {
  if (run === null) return sight;
  const { participantId: viewerId, conversationThreadId: threadId } = run;
  return sight.threadId === threadId ? { threadId, viewerId } : null;
};

/** Where an agent's memory is looked at (null: nowhere in particular), and as whom. */
export interface MemorySight {
  readonly threadId: string | null;
  readonly viewerId: string | null;
  /** Only what is recalled in that thread alone; else also what is recalled everywhere. */
  readonly isHereOnly?: boolean;
}

/**
 * How memory may be looked at: a run as its worker, in its conversation, whatever is asked and through whose windows. Whoever
 * holds the worker's token without being it learns nothing that the worker stored elsewhere.
 */
export const atMemory = <Sight extends MemorySight>(
  run: RunScope | null,
  sight: Sight,
): Sight & MemorySight => {
  if (run === null) return sight;
  const { participantId: viewerId, conversationThreadId: threadId, isDelegators: isHereOnly } = run;
  return { ...sight, threadId, viewerId, isHereOnly };
};

/** How a scratchpad's thread is looked at for the scratchpad alone: a run sees its own, through `padViewerId`. */
export const atPad = (
  run: RunScope | null,
  pad: { readonly scratchpadId: string; readonly threadId: string },
  viewerId: string | null,
): Sight | null => {
  const { threadId } = pad;
  if (run === null) return { threadId, viewerId };
  return run.scratchpadId === pad.scratchpadId ? { threadId, viewerId: run.padViewerId } : null;
};
