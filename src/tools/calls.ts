import { isDelegators } from '../auth/sight.ts';
import { newId } from '../shared/ids.ts';
import { cut } from '../shared/text.ts';
import { type Database, required, statement } from '../storage/database.ts';
import { eventFromRow, type TimelineRow } from '../timeline/events.ts';
import type { Announce } from '../timeline/timeline.ts';
import { failed, type ToolOutput } from './answers.ts';
import { findTool } from './catalogue.ts';
import type { Hand } from './hand.ts';
import type { Operating } from './operating.ts';

/** One call, as its runtime names it. */
export interface ToolCall {
  readonly name: string;
  /** Null: the runtime names none, and the call is not remembered. */
  readonly callId: string | null;
  /** What the call is known by in the conversation. */
  readonly shownId: string | null;
  /** Of name and arguments. */
  readonly hash: string;
}

/** What a call acts on: as its first attempt found it, however often it is repeated and whatever happens meanwhile. */
export interface Begun {
  /** Null: no message was in hand that would say where. */
  readonly threadId: string | null;
  /** The message in hand, of the thread. */
  readonly hand: Hand | null;
  /** As what it is delivered, if it takes a message. */
  readonly deliveryId: string;
  /** Of the event that it appends, if it takes a message back. */
  readonly eventId: string;
}

/** As it is kept. */
interface KeptOutput extends ToolOutput {
  /** Whoever held the worker's token without being it made the call: it was told no more than it may know. */
  readonly isDelegators?: boolean;
}

export const BEGIN = statement<{ begun: KeptOutput | (Partial<Begun> & Names) }>(
  'begin_tool_call',
  'SELECT begin_tool_call($1, $2, $3, $4, $5, $6, $7::jsonb, $8) AS begun',
);
type Names = Pick<Begun, 'deliveryId' | 'eventId'>;

const FINISH_TAKING = statement<{ is_first: boolean }>(
  'finish_taking',
  'SELECT finish_taking($1, $2, $3, $4, $5::jsonb) AS is_first',
);
const FINISH = statement<TimelineRow>(
  'finish_tool_call',
  'SELECT * FROM finish_tool_call($1, $2, $3, $4, $5, $6::jsonb, $7, $8::jsonb)',
);

const PRIVATE = statement<{ is_private: boolean }>(
  'private_conversation',
  `SELECT NOT EXISTS (
     SELECT 1 FROM thread_members m JOIN participants p ON p.owner_id = m.owner_id AND p.id = m.participant_id
     WHERE m.owner_id = $1 AND m.thread_id = $2 AND m.participant_id <> $3
       AND NOT (p.kind = 'UNIT' AND p.handle = 'run-' || split_part($4, '_', 2)))
     AND ($5 OR NOT tp_is_open_to_delegator($1, $4)) AS is_private`,
);

/** Who begins a call; with no thread, where the message in hand is. */
type Beginning = Pick<Operating, 'actor' | 'ownerId' | 'participantId' | 'run'> & {
  readonly threadId: string | null;
};

type Beginnable = Pick<ToolCall, 'name' | 'callId' | 'hash'>;

/** UTF-16 units of an output that stand in the conversation; the rest was the model's to read. */
const SHOWN = 4_000;

/** What is kept of tool calls: that they were counted, and what they answered. */
export const createToolCalls = ({ database, announce }: { database: Database; announce: Announce }) => {
  const begin = async (at: Beginning, call: Beginnable, takes = false): Promise<ToolOutput | Begun> => {
    const names: Names = { deliveryId: newId('Delivery'), eventId: newId('Event') };
    const [row] = await database.query(BEGIN, [
      at.ownerId,
      at.threadId,
      at.participantId,
      at.run?.id ?? null,
      call.callId,
      call.hash,
      JSON.stringify(names),
      takes,
    ]);
    const { begun } = required(row);
    return 'output' in begun ? againTo(at, call, begun) : { threadId: null, hand: null, ...begun };
  };

  /** Two attempts of one call at once: both answer what the first one did. */
  const firstOr = async (result: ToolOutput, ...call: Parameters<typeof begin>): Promise<ToolOutput> => {
    const first = await begin(...call);
    return 'output' in first ? first : result;
  };

  return {
    /**
     * Counts a call of a run, and starts a queued one. Answers the first result of a call that is repeated, or what it acts
     * on. Without a thread that is the one of the message in hand; a call that `takes` one acts nowhere until then.
     * Errors: NOT_FOUND, IDEMPOTENCY_KEY_REUSED, INVALID_TRANSITION (the run is over), LOOP_LIMIT.
     */
    begin,

    /**
     * Whether whoever asks is told no more than all who read the conversation, or may come to: it was opened for this run, with
     * its worker and the unit that stands for the run, and no delegator speaks there as the worker.
     */
    async isPrivate(at: Operating): Promise<boolean> {
      if (at.run === null) return false;
      const [row] = await database.query(PRIVATE, [
        at.ownerId,
        at.threadId,
        at.participantId,
        at.run.id,
        isDelegators(at.actor),
      ]);
      return row?.is_private === true;
    },

    /**
     * Keeps the result of a call, and appends it to the worker's conversation as a `TOOL_RESULT` of which at most
     * 4,000 characters are shown. `shown` null: it is not told there. Errors: NOT_FOUND.
     */
    async finish(
      at: Operating,
      call: ToolCall,
      result: ToolOutput,
      shown: string | null,
    ): Promise<ToolOutput> {
      const id = newId('Event');
      const data = shown === null ? null : dataOf(at, call, { ...result, output: shown });
      const rows = await database.query(FINISH, [
        at.ownerId,
        at.threadId,
        at.participantId,
        at.run?.id ?? null,
        call.callId,
        JSON.stringify(isDelegators(at.actor) ? { ...result, isDelegators: true } : result),
        id,
        data === null ? null : JSON.stringify(data),
      ]);
      const [row] = rows;
      if (row !== undefined) announce.event(eventFromRow(row));
      return row === undefined && call.callId !== null ? firstOr(result, at, call) : result;
    },

    /** Keeps the result of a call that took a message, in the message's thread, or that found none. Errors: NOT_FOUND. */
    async finishTaking(
      at: Beginning,
      call: Beginnable,
      result: ToolOutput,
      threadId: string | null,
    ): Promise<ToolOutput> {
      if (call.callId === null) return result;
      const values = [at.ownerId, at.participantId, call.callId, threadId, JSON.stringify(result)];
      const [row] = await database.query(FINISH_TAKING, values);
      return required(row).is_first ? result : firstOr(result, at, call, true);
    },
  };
};

/** What a delegator's token is told again: what such a token was told, and never what the worker itself read. */
const againTo = (
  { actor }: Beginning,
  { name }: Beginnable,
  { isDelegators: isFromDelegators = false, ...first }: KeptOutput,
): ToolOutput =>
  isDelegators(actor) && !isFromDelegators && !first.isError && findTool(name)?.isForWorkerAlone === true
    ? failed('The worker itself has made this call, and what it read is its own. Call again with another id.')
    : first;

const dataOf = (at: Operating, { name, shownId }: ToolCall, { output, isError }: ToolOutput) => ({
  name,
  toolCallId: shownId,
  isError,
  output: output.length > SHOWN ? `${cut(output, SHOWN)}…` : output,
  ...(at.run === null ? {} : { runId: at.run.id }),
});
