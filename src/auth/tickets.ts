import { canonicalJson, type Json, sha256 } from '../shared/canonical.ts';
import { readStreamCursor } from '../shared/cursors.ts';
import { type Database, statement } from '../storage/database.ts';
import {
  CREDENTIAL_COLUMNS,
  CREDENTIAL_IS_ALIVE,
  CREDENTIALS,
  type CredentialRow,
  identifiedBy,
} from './credentialRow.ts';
import { noCredential } from './presented.ts';
import type { RevocationLog, Wakeups } from './revocations.ts';
import { hashSecret, looksLikeTicket } from './secrets.ts';
import type { Operation, Session } from './session.ts';
import type { OpenSession, Sessions } from './sessions.ts';

/** How long a ticket may wait for its first use, and a broken stream for its reconnection. */
export const TICKET_LIFETIME = `interval '60 s'`;
const RECONNECT_WITHIN = `interval '60 s'`;

/**
 * The holder of a stream renews it this often, and this far ahead: a stream whose process was killed may be
 * taken up for up to that much longer than one whose end was noted.
 */
const RENEW_EVERY_MS = 10_000;
const ALIVE_AHEAD = `interval '15 s'`;

const TICKETS_CHANNEL = 'threadpad:tickets';

/** What "the same operation" means: the text as it stands, the variables whatever their order, the name. */
export const operationHash = ({ query, variables, operationName }: Operation): string =>
  sha256(
    canonicalJson({ query, variables: (variables ?? {}) as Json, operationName: operationName ?? null }),
  );

/** First use: $3 null. Reconnection: $3 and $4 are the log and position of its Last-Event-ID. */
const OPEN = statement<CredentialRow & { opened: number; act_as: string | null }>(
  'ticket_open',
  `UPDATE tickets t SET opened = t.opened + 1, alive_at = clock_timestamp() + ${ALIVE_AHEAD}
   FROM ${CREDENTIALS}
   WHERE t.hash = $1 AND t.operation_hash = $2 AND c.owner_id = t.owner_id AND c.id = t.credential_id
     AND ${CREDENTIAL_IS_ALIVE}
     AND CASE WHEN $3::text IS NULL THEN t.opened = 0 AND t.expires_at > clock_timestamp()
         ELSE t.opened > 0 AND t.alive_at > clock_timestamp() - ${RECONNECT_WITHIN}
           AND t.start_thread_id = $3 AND t.start_seq <= $4::int END
   RETURNING t.opened, t.act_as, ${CREDENTIAL_COLUMNS}`,
);

const RENEW = statement<{ hash: string }>(
  'tickets_renew',
  `UPDATE tickets t SET alive_at = clock_timestamp() + ${ALIVE_AHEAD}
   FROM unnest($1::text[], $2::int[]) AS held (hash, opened)
   WHERE t.hash = held.hash AND t.opened = held.opened RETURNING t.hash`,
);

const BREAK = statement<never>(
  'ticket_break',
  'UPDATE tickets SET alive_at = clock_timestamp() WHERE hash = $1 AND opened = $2',
);

/** Where the stream began in the log that it is in now: a scratchpad's goes on in another when its state is lost. */
const START = statement<never>(
  'ticket_start',
  'UPDATE tickets SET start_thread_id = $2, start_seq = $3 WHERE hash = $1 AND start_thread_id IS DISTINCT FROM $2',
);

export interface Tickets {
  open(ticket: string, operation: Operation, lastEventId: string | null): Promise<Session>;
  close(): Promise<void>;
}

interface Stream {
  readonly opened: number;
  readonly session: OpenSession;
}

interface TicketOptions {
  readonly database: Database;
  readonly bus?: Wakeups | undefined;
  readonly log: RevocationLog;
  readonly sessions: Sessions;
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * Streams opened with tickets. A ticket opens one stream; its reconnection, within a minute of the break,
 * takes over: what is still thought open (nobody has noticed that the connection is gone) ends.
 */
export const openTickets = ({ database, bus, log, sessions, onError }: TicketOptions): Tickets => {
  const streams = new Map<string, Stream>();
  const writes = new Set<Promise<unknown>>();
  let timer: NodeJS.Timeout | null = null;

  /** Never rejects: what is not written costs a reconnection, nothing else. */
  const write = (result: Promise<unknown>): Promise<void> => {
    const settled = result
      .then(
        () => undefined,
        (error: unknown) => onError?.(error),
      )
      .finally(() => writes.delete(settled));
    writes.add(settled);
    return settled;
  };

  const endOlder = (hash: string, opened: number): void => {
    const stream = streams.get(hash);
    if (stream !== undefined && stream.opened < opened) stream.session.end();
  };

  /** A channel of the bus, only while a stream is held. */
  let unsubscribe: (() => void) | undefined;
  const listen = (): void => {
    unsubscribe ??= bus?.subscribe(TICKETS_CHANNEL, (message) => {
      const [hash = '', opened] = message.split(' ');
      endOlder(hash, Number(opened));
    });
  };
  const deafen = (): void => {
    unsubscribe?.();
    unsubscribe = undefined;
  };

  const renew = async (): Promise<void> => {
    const held = [...streams].sort(([one], [other]) => (one < other ? -1 : 1));
    const rows = await database.query(RENEW, [
      held.map(([hash]) => hash),
      held.map(([, { opened }]) => opened),
    ]);
    const still = new Set(rows.map((row) => row.hash));
    for (const [hash, stream] of held) if (!still.has(hash)) endOlder(hash, stream.opened + 1);
  };

  const renewLater = (): void => {
    timer ??= setTimeout(() => {
      timer = null;
      if (streams.size === 0) return;
      void write(renew());
      renewLater();
    }, RENEW_EVERY_MS).unref();
  };

  const hold = (hash: string, opened: number, open: () => OpenSession): OpenSession => {
    endOlder(hash, opened);
    if (streams.has(hash)) throw noCredential();
    const session = open();
    streams.set(hash, { opened, session });
    listen();
    renewLater();
    return session;
  };

  return {
    open: async (ticket, operation, lastEventId) => {
      if (!looksLikeTicket(ticket)) throw noCredential();
      const last = lastEventId === null ? null : readStreamCursor(lastEventId);
      if (last === undefined) throw noCredential();
      const hash = hashSecret(ticket);
      const witness = log.witness();
      try {
        const values = [hash, operationHash(operation), last?.log ?? null, last?.position ?? null];
        const [row] = await database.query(OPEN, values);
        if (row === undefined || witness.hasEnded(row.id)) throw noCredential();
        witness.saw(row);
        const { opened } = row;
        let known = last?.log;
        const hooks = {
          issued: (cursor: string): Promise<void> | undefined => {
            const start = readStreamCursor(cursor);
            if (start === undefined || start.log === known) return undefined;
            known = start.log;
            return write(database.query(START, [hash, start.log, start.position]));
          },
          closed: (): void => {
            if (streams.get(hash)?.opened === opened) streams.delete(hash);
            if (streams.size === 0) deafen();
            void write(database.query(BREAK, [hash, opened]));
          },
        };
        const session = hold(hash, opened, () => sessions.open(identifiedBy(row, row.act_as), hooks));
        if (opened > 1) void bus?.publish(TICKETS_CHANNEL, `${hash} ${opened}`);
        return session;
      } finally {
        witness.done();
      }
    },
    close: async () => {
      if (timer !== null) clearTimeout(timer);
      deafen();
      await Promise.all(writes);
    },
  };
};
