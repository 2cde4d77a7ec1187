import type { Redis } from 'ioredis';
import type { Bus, Logger, Unsubscribe } from './bus.ts';

/** As much of a connection (or a cluster) as publishing needs. */
interface Publisher {
  readonly status: string;
  publish(channel: string, message: string): Promise<number>;
}

interface Listener {
  readonly message: (message: string) => void;
  readonly listening: (() => void) | undefined;
}

const CHANNELS_PER_COMMAND = 1_000;
const RETRY_MS = 1_000;

/**
 * A bus over Redis pub/sub. `subscriber` is used for nothing else and its opener notices when it hangs; the
 * subscriptions are renewed here and not by the driver, which would not tell when they hold, would send again what
 * nobody wants any more, and would leave a rejection unhandled.
 */
export const createRedisBus = (connections: { commands: Publisher; subscriber: Redis; log: Logger }): Bus => {
  const { commands, subscriber, log } = connections;
  subscriber.options.autoResubscribe = false;
  subscriber.options.autoResendUnfulfilledCommands = false;

  const wanted = new Map<string, Set<Listener>>();
  /** Channels that the present connection was asked for, and those of them that it has confirmed. */
  const asked = new Set<string>();
  const confirmed = new Set<string>();
  const changed = new Set<string>();
  let connection = 0;
  let isClosed = false;
  let flushing = false;
  let retry: NodeJS.Timeout | undefined;

  const guarded = (call: () => void): void => {
    try {
      call();
    } catch (error) {
      log.warn({ err: error }, 'A bus listener failed.');
    }
  };

  const confirm = (channels: readonly string[], of: number): void => {
    if (of !== connection) return;
    for (const channel of channels) {
      if (!asked.has(channel)) continue;
      confirmed.add(channel);
      for (const { listening } of wanted.get(channel) ?? []) if (listening) guarded(listening);
    }
  };

  /** A refusal by a living connection is tried again; a dead one starts from nothing when it is back. */
  const refused = (channels: readonly string[], of: number, error: unknown): void => {
    if (of !== connection || subscriber.status !== 'ready') return;
    log.warn(
      { err: error, channels: channels.length },
      'Redis refused to change subscriptions; trying again.',
    );
    for (const channel of channels) {
      if (wanted.has(channel)) asked.delete(channel);
      else asked.add(channel);
      changed.add(channel);
    }
    retry ??= setTimeout(() => {
      retry = undefined;
      flush();
    }, RETRY_MS).unref();
  };

  const flush = (): void => {
    flushing = false;
    if (subscriber.status !== 'ready') return;
    const add: string[] = [];
    const drop: string[] = [];
    for (const channel of changed) {
      if (wanted.has(channel) && !asked.has(channel)) add.push(channel);
      if (!wanted.has(channel) && asked.has(channel)) drop.push(channel);
    }
    changed.clear();
    const of = connection;
    for (const channels of chunks(drop)) {
      for (const channel of channels) {
        asked.delete(channel);
        confirmed.delete(channel);
      }
      subscriber.unsubscribe(...channels).catch((error: unknown) => refused(channels, of, error));
    }
    for (const channels of chunks(add)) {
      for (const channel of channels) asked.add(channel);
      subscriber.subscribe(...channels).then(
        () => confirm(channels, of),
        (error: unknown) => refused(channels, of, error),
      );
    }
  };

  /** Changes of one turn leave together, and what is undone within it never leaves. */
  const change = (channel: string): void => {
    changed.add(channel);
    if (flushing) return;
    flushing = true;
    queueMicrotask(flush);
  };

  const onReady = (): void => {
    onClose();
    for (const channel of wanted.keys()) changed.add(channel);
    flush();
  };
  const onClose = (): void => {
    connection += 1;
    asked.clear();
    confirmed.clear();
    changed.clear();
  };
  const onMessage = (channel: string, message: string): void => {
    for (const listener of wanted.get(channel) ?? []) guarded(() => listener.message(message));
  };

  subscriber.on('ready', onReady);
  subscriber.on('close', onClose);
  subscriber.on('message', onMessage);

  const subscribe = (channel: string, message: Listener['message'], listening?: () => void): Unsubscribe => {
    const listener: Listener = { message, listening };
    const listeners = wanted.get(channel) ?? new Set();
    listeners.add(listener);
    wanted.set(channel, listeners);
    change(channel);
    if (listening !== undefined && confirmed.has(channel)) queueMicrotask(() => guarded(listening));
    return () => {
      if (!listeners.delete(listener) || listeners.size > 0) return;
      wanted.delete(channel);
      change(channel);
    };
  };

  return {
    async publish(channel, message) {
      if (isClosed || commands.status !== 'ready') return false;
      try {
        await commands.publish(channel, message);
        return true;
      } catch (error) {
        // Whoever closes it closes Redis next.
        if (!isClosed)
          log.warn({ err: error }, 'A wake-up was not published; its readers find out by reading.');
        return false;
      }
    },
    subscribe,
    get connected() {
      return subscriber.status === 'ready';
    },
    get channels() {
      return wanted.size;
    },
    close() {
      isClosed = true;
      subscriber.off('ready', onReady);
      subscriber.off('close', onClose);
      subscriber.off('message', onMessage);
      clearTimeout(retry);
      wanted.clear();
    },
  };
};

const chunks = (channels: readonly string[]): string[][] => {
  const parts: string[][] = [];
  for (let start = 0; start < channels.length; start += CHANNELS_PER_COMMAND)
    parts.push(channels.slice(start, start + CHANNELS_PER_COMMAND));
  return parts;
};
