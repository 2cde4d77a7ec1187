import { type EventStore, isJSONRPCRequest, type JSONRPCMessage } from '@modelcontextprotocol/server';
import type { Cluster, Redis } from 'ioredis';
import { DomainError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import { redisScript, runScript } from '../../storage/redisScripts.ts';
import { answered, DAY_SECONDS, type McpSession, sessionKey } from './sessions.ts';

/** What is kept of a session, newest first to stay: so many messages, of so many bytes together, for so long after the last. */
export const KEPT = { messages: 256, bytes: 262_144, seconds: 600 } as const;
/** The stream of notifications, as the SDK names it. */
export const NOTIFICATIONS = '_GET_stream';

const EVENT_ID = /^([\w-]{1,64})\.(\d{1,15}-\d{1,10})$/;

/** Where in a session's log an event stands. */
export interface EventPlace {
  readonly streamId: string;
  readonly position: string;
}

export interface LocatedEvent extends EventPlace {
  /** How long ago it happened, by the clock that stamped it. */
  readonly ageMs: number;
}

export interface KeptEvent extends EventPlace {
  readonly message: JSONRPCMessage;
  /** The requests that are answered on this stream, as its first event says. */
  readonly asks: readonly unknown[];
}

/**
 * The messages of a session's streams, so that a lost stream is resumed with `Last-Event-ID` from any process: in one Redis
 * stream, whose positions order them.
 */
export interface EventLog {
  /** The event's id; '' for one that is not kept, since the session is over, a store is away or it alone is too large. */
  add(streamId: string, message: JSONRPCMessage): Promise<string>;
  /** Errors: INVALID_CURSOR for what is not (or no longer) kept, UNAVAILABLE. */
  locate(lastEventId: string): Promise<LocatedEvent>;
  /** All that is kept, of every stream, after a position; null where the session is over. Errors: UNAVAILABLE. */
  after(position: string): Promise<KeptEvent[] | null>;
}

/** `sum` is of all that was ever added: a difference of two is what is kept between them. KEYS: events, session, noted. */
const ADD = redisScript(`
if redis.call('EXISTS', KEYS[2]) == 0 then return false end
local size, most, mostBytes, seconds = #ARGV[2] + #ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if size > mostBytes then return false end
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local sum = size + (last and tonumber(last[2][8]) or 0)
local id = redis.call('XADD', KEYS[1], '*', 'stream', ARGV[1], 'message', ARGV[2], 'asks', ARGV[3], 'sum', string.format('%.0f', sum))
local count = redis.call('XLEN', KEYS[1])
while true do
  local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  local bytes = sum - tonumber(first[2][8]) + #first[2][4] + #first[2][6]
  if count <= most and bytes <= mostBytes then break end
  redis.call('XDEL', KEYS[1], first[1])
  count = count - 1
end
redis.call('EXPIRE', KEYS[1], seconds)
if KEYS[3] then redis.call('SET', KEYS[3], id, 'EX', ARGV[7]) end
return id
`);

/** Of the server where the session lies. KEYS: events. */
const CLOCK = redisScript(`
local time = redis.call('TIME')
return time[1] * 1000 + math.floor(time[2] / 1000)
`);

export const createEventLog = (
  redis: Redis | Cluster,
  session: Pick<McpSession, 'ownerId' | 'id'>,
  log: Logger,
  /** Of the requests that are answered on a new stream. */
  asks: readonly unknown[] = [],
): EventLog => {
  const key = sessionKey(session, 'events');
  const noted = sessionKey(session, 'noted');
  let toSay = asks;

  return {
    async add(streamId, message) {
      const said = JSON.stringify(toSay);
      toSay = [];
      const keys = [key, sessionKey(session, 'session'), ...(streamId === NOTIFICATIONS ? [noted] : [])];
      const limits = [KEPT.messages, KEPT.bytes, KEPT.seconds, DAY_SECONDS];
      const args = [streamId, JSON.stringify(message), said, ...limits];
      try {
        const position = await runScript(redis, { script: ADD, keys, args });
        return typeof position === 'string' ? `${streamId}.${position}` : '';
      } catch (error) {
        log.warn({ err: error }, 'A message of an MCP session could not be kept; it is sent all the same.');
        return '';
      }
    },
    locate: (lastEventId) =>
      answered(async () => {
        const [, streamId, position] = EVENT_ID.exec(lastEventId) ?? [];
        if (streamId === undefined || position === undefined) throw notKept();
        const [[found], now] = await Promise.all([
          redis.xrange(key, position, position, 'COUNT', 1),
          runScript(redis, { script: CLOCK, keys: [key], args: [] }),
        ]);
        const place = { streamId, position, ageMs: Number(now) - Number(position.split('-')[0]) };
        if (found?.[1][1] === streamId) return place;
        // Whoever was told all has lost nothing, however long ago that was.
        if (streamId === NOTIFICATIONS && (await redis.get(noted)) === position) return place;
        throw notKept();
      }),
    after: (position) =>
      answered(async () => {
        const [entries, isThere] = await Promise.all([
          redis.xrange(key, `(${position}`, '+'),
          redis.exists(sessionKey(session, 'session')),
        ]);
        if (isThere === 0) return null;
        return entries.map(([at, [, streamId = '', , text = '{}', , asked = '[]']]) => ({
          streamId,
          position: at,
          message: JSON.parse(text) as JSONRPCMessage,
          asks: JSON.parse(asked) as unknown[],
        }));
      }),
  };
};

const notKept = (): DomainError =>
  new DomainError(
    'INVALID_CURSOR',
    'This Last-Event-ID is none of what this session keeps: it is unknown, or what followed it fell out. Open the stream without it, and read again what you follow; a call whose answer is lost is made again, with the same threadpad/toolCallId.',
    { field: 'Last-Event-ID' },
  );

export const idOf = ({ streamId, position }: EventPlace): string => `${streamId}.${position}`;

/** The first event of a stream only says where it begins. */
export const PRIMING = {} as JSONRPCMessage;
export const isPriming = (message: JSONRPCMessage): boolean => Object.keys(message).length === 0;

/** The ids of a body's requests. */
export const asksIn = (body: unknown): unknown[] =>
  [body].flat().flatMap((message) => (isJSONRPCRequest(message) ? [message.id] : []));

/** As the SDK takes it; it resumes the stream of notifications alone. */
export const eventStoreOf = (
  log: EventLog,
  /** Told of each message that is sent. */
  kept: (message: JSONRPCMessage) => void,
): EventStore => ({
  storeEvent: async (streamId, message) => {
    const eventId = await log.add(streamId, message);
    kept(message);
    return eventId;
  },
  getStreamIdForEventId: async (eventId) => EVENT_ID.exec(eventId)?.[1],
  replayEventsAfter: async (lastEventId, { send }) => {
    const { streamId, position } = await log.locate(lastEventId);
    for (const event of (await log.after(position)) ?? [])
      if (event.streamId === streamId && !isPriming(event.message)) await send(idOf(event), event.message);
    return streamId;
  },
});
