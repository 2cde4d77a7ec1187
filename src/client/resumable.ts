import { followedDocument } from './document.ts';
import { type Credentials, type FollowOptions, follow } from './follow.ts';
import { iterate } from './iterate.ts';
import type { StreamClient, StreamRequest, StreamResult, StreamSink } from './stream.ts';

export interface ResumeOptions {
  /** The wait before the first new attempt; it doubles with each that brings nothing new. Default 300. */
  readonly firstWaitMs?: number;
  /** No wait is longer, however long the outage. Default 30,000. */
  readonly longestWaitMs?: number;
  /**
   * Asked when the server takes the credential for dead (4403, 401, `UNAUTHENTICATED`, `CREDENTIAL_ENDED`), once
   * for all subscriptions of the client. True: try again, and let the client's `connectionParams` or `headers`
   * give the fresh one. False: the subscriptions end with what the server said. Without it they try again.
   */
  readonly freshCredential?: (problem: unknown) => boolean | Promise<boolean>;
  /** Told of each interruption and of the wait until the next attempt. For a "reconnecting …" in a user interface. */
  readonly onRetry?: (problem: unknown, waitMs: number) => void;
}

export interface Resumable {
  subscribe(request: StreamRequest, sink: StreamSink): () => void;
  iterate(request: StreamRequest): AsyncIterableIterator<StreamResult>;
  /** Completes every subscription and disposes of the client. Never rejects: a connection that fails meanwhile is gone too. */
  dispose(): void | Promise<void>;
}

/** A pong that does not come within this time means a socket that is dead without saying so. */
const PONG_WITHIN_MS = 10_000;

const wrapped = new WeakSet<object>();

/**
 * A graphql-ws or graphql-sse client whose subscriptions go on where they were, whatever happens in between:
 * every event once and in order, at any number of lost connections, for as long as it takes. In all else it is
 * the client that was given. Make that client with `...steady`, so that the waits are decided in one place.
 *
 * Subscriptions end with an error only for what would come again at every attempt (a refused or invalid
 * operation, a cursor of another log), and with completion when the log is over.
 * Queries and mutations are passed on as they are: none is ever sent twice.
 */
export const resumable = <Client extends StreamClient>(
  client: Client,
  options: ResumeOptions = {},
): Client & Resumable => {
  if (wrapped.has(client)) return client as Client & Resumable;
  const open = new Set<() => void>();
  const followOptions: FollowOptions = {
    firstWaitMs: options.firstWaitMs ?? 300,
    longestWaitMs: options.longestWaitMs ?? 30_000,
    credentials: sharedCredentials(options.freshCredential),
    onRetry: options.onRetry ?? (() => {}),
  };
  const stopWatching = watchPongs(client);

  const subscribe = (request: StreamRequest, sink: StreamSink): (() => void) => {
    if (!followedDocument(request.query, request.operationName).isSubscription)
      return client.subscribe(request, sink);
    let stop: (() => void) | undefined;
    let ended = false;
    const dispose = () => stop?.();
    const forget = () => {
      ended = true;
      open.delete(dispose);
    };
    stop = follow(client, request, endingWith(sink, forget), followOptions);
    if (!ended) open.add(dispose);
    return dispose;
  };

  const result: Client & Resumable = Object.assign({}, client, {
    subscribe,
    iterate: (request: StreamRequest) => iterate<StreamResult>((sink) => subscribe(request, sink)),
    async dispose() {
      for (const dispose of [...open]) dispose();
      stopWatching();
      // graphql-ws waits for the connection that it is making, and rejects with its failure.
      await Promise.resolve(client.dispose()).catch(() => {});
    },
  });
  wrapped.add(result);
  return result;
};

const endingWith = (sink: StreamSink, ended: () => void): StreamSink => ({
  next: (result) => sink.next(result),
  error(problem) {
    ended();
    sink.error(problem);
  },
  complete() {
    ended();
    sink.complete();
  },
});

/** A hundred subscriptions lose their credential together, one after the other: its owner is asked once. */
const sharedCredentials = (ask: ResumeOptions['freshCredential']): Credentials => {
  let version = 0;
  let answer: Promise<boolean> = Promise.resolve(true);
  let pending = false;
  return {
    version: () => version,
    fresh(problem, lost) {
      if (ask === undefined || pending || lost < version) return answer;
      pending = true;
      answer = (async () => ask(problem))().finally(() => {
        pending = false;
        version++;
      });
      return answer;
    },
  };
};

/** Where the client sends pings (`keepAlive`), a missing pong ends the socket: graphql-ws leaves that to its user. */
const watchPongs = (client: StreamClient): (() => void) => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const disarm = () => clearTimeout(timer);
  const unlisten = [
    client.on?.('ping', (received) => {
      if (received) return;
      disarm();
      timer = setTimeout(() => client.terminate?.(), PONG_WITHIN_MS);
    }),
    client.on?.('pong', (received) => {
      if (received) disarm();
    }),
    client.on?.('closed', disarm),
  ];
  return () => {
    disarm();
    for (const stop of unlisten) stop?.();
  };
};
