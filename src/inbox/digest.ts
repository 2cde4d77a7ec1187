import { type Database, statement } from '../storage/database.ts';
import type { TimelineEvent, TimelineRow } from '../timeline/events.ts';
import { fittingBytes, type Handing, handedEvent } from './handOut.ts';
import type { Inbox } from './inboxes.ts';

/** Events and changes that one digest has at most. */
export const MOST_OBSERVED = 200;
/** Events of a digest take so much of an answer, and changes beside them. */
export const observedBytes = (answerBytes: number): number => Math.floor(fittingBytes(answerBytes) / 2);

type Raw =
  | { readonly threadId: string; readonly seq: number; readonly events: TimelineRow[] }
  | { readonly threadId?: undefined; readonly seen: string | null; readonly isCut: boolean };

const DIGEST = statement<{ told: Raw }>(
  'inbox_digest',
  'SELECT d AS told FROM inbox_digest($1, $2, $3, $4, $5::bigint, $6, $7, $8::text[], $9::int[], $10) d',
);

const SETTLE = statement<never>('inbox_observed', 'SELECT settle_digest($1, $2, $3, $4::text[], $5::int[])');

/**
 * The rest of what an inbox's participant may see: others' changes of state, system events, retractions it was not told at once and,
 * where only mentions are delivered, the other messages. Of each thread in order, and at least once: a thread's position is
 * moved by the reading after the one that was handed on.
 */
export class Digest {
  readonly #database: Database;
  readonly #bytes: number;
  readonly #inbox: Inbox;
  readonly #onlyMentions: boolean;
  #told: ReadonlyMap<string, number> = new Map();
  /** What was given last, and came once the next is asked for. */
  #given: ReadonlyMap<string, number> = new Map();
  #since: string | null = null;
  #isCut = false;

  constructor(
    { database, answerBytes }: Pick<Handing, 'database' | 'answerBytes'>,
    inbox: Inbox,
    onlyMentions: boolean,
  ) {
    this.#database = database;
    this.#bytes = observedBytes(answerBytes);
    this.#inbox = inbox;
    this.#onlyMentions = onlyMentions;
  }

  /** Nothing up to this activity (microseconds since 1970) has to be looked at again. */
  get since(): string {
    return this.#since ?? '0';
  }

  /** What was read last was not all: the rest comes with the next. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** What was read last has come. */
  came(): void {
    this.#told = this.#given;
  }

  /** Nobody asks for another: what came is remembered now. */
  async settle(): Promise<void> {
    if (this.#told.size === 0) return;
    const { ownerId, participantId } = this.#inbox;
    await this.#database.query(SETTLE, [
      ownerId,
      participantId,
      this.#onlyMentions,
      [...this.#told.keys()],
      [...this.#told.values()],
    ]);
    this.#told = new Map();
  }

  /** At most 200 events of all threads, and no more than fit into an answer. */
  async read(): Promise<readonly TimelineEvent[]> {
    const { ownerId, participantId, runId, threadId } = this.#inbox;
    const told = this.#told;
    const rows = await this.#database.query(DIGEST, [
      ownerId,
      participantId,
      runId,
      threadId,
      this.#since,
      this.#onlyMentions,
      MOST_OBSERVED,
      [...told.keys()],
      [...told.values()],
      this.#bytes,
    ]);
    this.#told = new Map();
    const given = new Map<string, number>();
    const events: TimelineEvent[] = [];
    for (const { told: raw } of rows) {
      if (raw.threadId === undefined) {
        this.#isCut = raw.isCut;
        this.#since = raw.seen;
        continue;
      }
      given.set(raw.threadId, raw.seq);
      events.push(...raw.events.map(handedEvent));
    }
    this.#given = given;
    return events;
  }
}
