import { randomBytes } from 'node:crypto';
import type { RequestId } from '@modelcontextprotocol/server';
import type { Cluster, Redis } from 'ioredis';
import type { TenantActor } from '../../auth/actor.ts';
import type { Bus, Unsubscribe } from '../../live/bus.ts';
import { notFound } from '../../shared/errors.ts';
import { domainErrorOf } from '../../storage/conflict.ts';
import { redisScript, runScript } from '../../storage/redisScripts.ts';

/** What a session keeps between two requests. It lies in Redis alone, so that any process may answer the next one. */
export interface McpSession {
  readonly ownerId: string;
  /** The credential, and whom it acts as. */
  readonly callerId: string;
  readonly id: string;
  /** Of the path; null on the plain one. */
  readonly threadId: string | null;
}

export interface McpSessions {
  /** One that is not there yet. */
  fresh(actor: TenantActor, threadId: string | null): McpSession;
  /** From now on it is there, for this credential alone. Of too many of one caller the one used longest ago ends. */
  open(session: McpSession): Promise<void>;
  /**
   * Null for one that never was, is over, or is another's or another path's. It lives on for a day, with all it subscribed to.
   */
  find(id: string, actor: TenantActor, threadId: string | null): Promise<McpSession | null>;
  end(session: McpSession): Promise<void>;
  /** The resources that the client wants to hear of, each with the position it was told of last. */
  subscriptions(session: McpSession): Promise<ReadonlyMap<string, string>>;
  /** From `position` on; one that is there already stays as it is. Errors: NOT_FOUND (the session is over). */
  subscribe(session: McpSession, uri: string, position: string): Promise<void>;
  unsubscribe(session: McpSession, uri: string): Promise<void>;
  /** The client was told of the resource at this position. Nothing, where it does not want to hear of it any more. */
  told(session: McpSession, uri: string, position: string): Promise<void>;
  /** From now on this is the session's one stream of notifications; not where the session is over. Others are told. */
  hold(session: McpSession, stream: string): Promise<void>;
  /** Whether it still is: no newer one took its place, and the session is not over. */
  isHeldBy(session: McpSession, stream: string): Promise<boolean>;
  /**
   * The client does not want this request answered any more. Whoever works on it is told, wherever that is, if it listens by now:
   * best effort, as the protocol has it.
   */
  cancel(session: McpSession, request: RequestId): Promise<void>;
  listenForCancels(session: McpSession, cancelled: (request: RequestId) => void): Unsubscribe;
  /** `changed` is called when another request may have subscribed, taken the stream's place or ended the session. */
  listen(session: McpSession, changed: () => void): Unsubscribe;
}

/** A session lives so long after its last request. */
export const DAY_SECONDS = 86_400;

/** Of one caller at once: what each keeps lies in the store of everybody's scratchpads. */
export const MOST_SESSIONS = 100;

type SessionKey = Pick<McpSession, 'ownerId' | 'id'>;

/** The braces are a Cluster's hash tag: all that belongs to a session lies in one slot. */
export const sessionKey = ({ ownerId, id }: SessionKey, name: (typeof PARTS)[number]): string =>
  `mcp:${ownerId}:{${id}}:${name}`;
const PARTS = ['session', 'subscriptions', 'events', 'noted', 'stream'] as const;
const channelOf = ({ id }: McpSession): string => `mcp:${id}`;
const cancelsOf = ({ id }: McpSession): string => `mcp:${id}:cancels`;

/** KEYS: session, subscriptions, stream. */
const FIND = redisScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[2]) end
return 1
`);

/** KEYS: session, stream. */
const HOLD = redisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[2])
return 1
`);

/** KEYS: session, subscriptions. */
const SUBSCRIBE = redisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[3])
return 1
`);

/** KEYS: subscriptions. */
const TOLD = redisScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 0
`);

export const createMcpSessions = ({ redis, bus }: { redis: Redis | Cluster; bus: Bus }): McpSessions => {
  const callerOf = (actor: TenantActor): string =>
    `${actor.credentialId}:${actor.kind === 'API_KEY' ? (actor.actAs ?? '') : actor.participantId}`;
  const whose = ({ ownerId, callerId, threadId }: McpSession): string =>
    `${ownerId} ${callerId} ${threadId ?? ''}`;

  /** A caller's sessions, by when they were used last. */
  const listKey = ({ ownerId, callerId }: McpSession): string => `mcp:${ownerId}:sessions:${callerId}`;

  const end: McpSessions['end'] = (session) =>
    answered(async () => {
      await redis.del(...PARTS.map((part) => sessionKey(session, part)));
      await redis.zrem(listKey(session), session.id);
      await bus.publish(channelOf(session), 'ended');
    });

  return {
    fresh: (actor, threadId) => ({
      ownerId: actor.userId,
      callerId: callerOf(actor),
      id: randomBytes(32).toString('base64url'),
      threadId,
    }),
    open: (session) =>
      answered(async () => {
        await redis.set(sessionKey(session, 'session'), whose(session), 'EX', DAY_SECONDS);
        const list = listKey(session);
        await redis.zadd(list, Date.now(), session.id);
        await redis.expire(list, DAY_SECONDS);
        const tooMany = await redis.zrange(list, 0, `${-1 - MOST_SESSIONS}`);
        for (const id of tooMany) await end({ ...session, id });
      }),
    find: (id, actor, threadId) =>
      answered(async () => {
        if (!/^[\w-]{43}$/.test(id)) return null;
        const session = { ownerId: actor.userId, callerId: callerOf(actor), id, threadId };
        const keys = (['session', 'subscriptions', 'stream'] as const).map((part) =>
          sessionKey(session, part),
        );
        const args = [whose(session), DAY_SECONDS];
        const list = listKey(session);
        const [isThere] = await Promise.all([
          runScript(redis, { script: FIND, keys, args }),
          redis.zadd(list, 'XX', Date.now(), id),
          redis.expire(list, DAY_SECONDS),
        ]);
        return isThere === 1 ? session : null;
      }),
    end,
    subscriptions: (session) =>
      answered(
        async () => new Map(Object.entries(await redis.hgetall(sessionKey(session, 'subscriptions')))),
      ),
    subscribe: (session, uri, position) =>
      answered(async () => {
        const keys = [sessionKey(session, 'session'), sessionKey(session, 'subscriptions')];
        const args = [uri, position, DAY_SECONDS];
        if ((await runScript(redis, { script: SUBSCRIBE, keys, args })) !== 1) throw notFound('Session');
        await bus.publish(channelOf(session), 'changed');
      }),
    unsubscribe: (session, uri) =>
      answered(async () => {
        await redis.hdel(sessionKey(session, 'subscriptions'), uri);
        await bus.publish(channelOf(session), 'changed');
      }),
    told: (session, uri, position) =>
      answered(async () => {
        const keys = [sessionKey(session, 'subscriptions')];
        await runScript(redis, { script: TOLD, keys, args: [uri, position] });
      }),
    hold: (session, stream) =>
      answered(async () => {
        const keys = [sessionKey(session, 'session'), sessionKey(session, 'stream')];
        await runScript(redis, { script: HOLD, keys, args: [stream, DAY_SECONDS] });
        await bus.publish(channelOf(session), 'held');
      }),
    isHeldBy: (session, stream) =>
      answered(async () => (await redis.get(sessionKey(session, 'stream'))) === stream),
    async cancel(session, request) {
      await bus.publish(cancelsOf(session), JSON.stringify(request));
    },
    listenForCancels: (session, cancelled) =>
      bus.subscribe(cancelsOf(session), (request) => cancelled(JSON.parse(request) as RequestId)),
    listen: (session, changed) => bus.subscribe(channelOf(session), changed, changed),
  };
};

/** A store that is away is `UNAVAILABLE`. */
export const answered = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw domainErrorOf(error) ?? error;
  }
};
