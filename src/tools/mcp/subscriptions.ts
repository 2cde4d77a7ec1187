import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Server } from '@modelcontextprotocol/server';
import type { Services } from '../../services.ts';
import type { Logger } from '../../shared/log.ts';
import type { McpCaller } from './caller.ts';
import { AGAIN_MS, notifyOf, notifyOfList } from './notifying.ts';
import type { McpSession } from './sessions.ts';

/**
 * Tells a session's one stream of notifications of what its client subscribed to, wherever and whenever it did. `leave` is
 * called when another stream takes over, or the session is ended. Resolves when it is over.
 */
export const followSubscriptions = async (
  {
    services,
    caller,
    log,
    server,
    session,
  }: {
    readonly services: Services;
    readonly caller: McpCaller;
    readonly log: Logger;
    readonly server: Server;
    readonly session: McpSession;
  },
  leave: () => void,
  over: AbortSignal,
): Promise<void> => {
  const { mcpSessions: sessions } = services;
  const stream = randomUUID();
  const followed = new Map<string, { readonly stop: AbortController; readonly done: Promise<void> }>();
  const deps = {
    services,
    caller,
    log,
    tell: async (uri: string, position: string): Promise<void> => {
      await server.sendResourceUpdated({ uri });
      await sessions.told(session, uri, position);
    },
  };

  const begin = (uri: string, after: string): void => {
    const stop = new AbortController();
    const end = (): void => stop.abort();
    over.addEventListener('abort', end, { once: true });
    const done = notifyOf(uri, after, deps, stop.signal)
      .catch((error: unknown) => log.error({ err: error, uri }, 'A resource is not followed any more.'))
      .finally(() => over.removeEventListener('abort', end));
    followed.set(uri, { stop, done });
  };

  let isFirst = true;
  const compare = async (): Promise<void> => {
    const [isHeld, wanted] = await Promise.all([
      sessions.isHeldBy(session, stream),
      sessions.subscriptions(session),
    ]);
    if (!isHeld) leave();
    if (over.aborted) return;
    for (const [uri, { stop }] of followed)
      if (!wanted.has(uri)) {
        stop.abort();
        followed.delete(uri);
      }
    for (const [uri, after] of wanted) if (!followed.has(uri)) begin(uri, isFirst ? sinceThen(after) : after);
    isFirst = false;
  };

  const compareUntilDone = async (): Promise<void> => {
    for (let isAgain = false; !over.aborted; isAgain = true)
      try {
        await compare();
        return;
      } catch (error) {
        if (!isAgain)
          log.warn({ err: error }, 'The subscriptions of an MCP session cannot be read; it is tried again.');
        await delay(AGAIN_MS, undefined, { signal: over }).catch(() => undefined);
      }
  };

  // One comparison at a time; what changes meanwhile is compared once more.
  let comparing: Promise<void> = Promise.resolve();
  const changed = (): void => {
    comparing = comparing.then(compareUntilDone);
  };

  const listing = notifyOfList({ ...deps, tell: () => server.sendResourceListChanged() }, over).catch(
    (error: unknown) => log.error({ err: error }, 'What is listed is not followed any more.'),
  );
  let release = (): void => undefined;
  try {
    await sessions.hold(session, stream);
    // Listening begins with a comparison, whatever the bus does.
    release = sessions.listen(session, changed);
    changed();
    await new Promise<void>((resolve) => {
      if (over.aborted) resolve();
      over.addEventListener('abort', () => resolve(), { once: true });
    });
  } catch (error) {
    log.warn({ err: error }, 'The stream of an MCP session could not begin; its client comes back.');
    leave();
  } finally {
    release();
    await comparing;
    for (const { stop } of followed.values()) stop.abort();
    await Promise.all([listing, ...[...followed.values()].map(({ done }) => done)]);
  }
};

/** What was subscribed to before this stream was there, and not told of yet: something may have changed since. */
const sinceThen = (after: string): string => (after.endsWith(' ') ? `${after}?` : after);
