import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { resumable, type StreamSink, steady } from '../../src/client/index.ts';
import type { Member } from './members.ts';

export interface LiveEvent {
  readonly __typename: string;
  readonly id: string;
  readonly seq: number;
  readonly content?: string;
  readonly sender?: { readonly handle: string };
  readonly transition?: string;
  readonly participant?: { readonly handle: string };
  readonly kind?: string;
}

/** From the beginning of the thread, so that nothing depends on who came first. */
export interface Following {
  readonly seqs: readonly number[];
  /** How often the connection was lost and taken up again. */
  readonly retries: () => number;
  /** Why it ended before it was told to. */
  readonly problem: () => unknown;
  /** Resolves when so many events have arrived, or none will any more. */
  received(count: number): Promise<void>;
  stop(): Promise<void>;
}

const FOLLOW = /* GraphQL */ `
  subscription Follow($threadId: ID!, $after: Cursor) {
    timeline(threadId: $threadId, after: $after) {
      cursor
      event {
        __typename
        id
        seq
        ... on Message { content sender { handle } }
        ... on ParticipantStateChanged { transition participant { handle } }
        ... on SystemEvent { kind }
      }
      ended
    }
  }
`;

interface FollowOptions {
  /** `ws://…/graphql` */
  readonly socketUrl: string;
  readonly threadId: string;
  readonly member: Member;
  readonly after: string;
  readonly onEvent?: ((event: LiveEvent) => void) | undefined;
}

/** Follows the thread live as one participant, over a connection of its own. */
export const followThread = ({ socketUrl, threadId, member, after, onEvent }: FollowOptions): Following => {
  const seqs: number[] = [];
  let retries = 0;
  let problem: unknown;
  let isOver = false;
  const waiting = new Set<() => void>();
  const happened = (): void => {
    for (const look of [...waiting]) look();
  };
  const client = resumable(
    createClient({
      url: socketUrl,
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${member.token}` },
      ...steady,
    }),
    {
      onRetry: () => {
        retries += 1;
      },
    },
  );
  const sink: StreamSink = {
    next({ data, errors }) {
      if (errors !== undefined) problem = errors;
      const event = (data as { timeline?: { event?: LiveEvent | null } } | null | undefined)?.timeline?.event;
      if (event) {
        seqs.push(event.seq);
        onEvent?.(event);
        happened();
      }
    },
    error(reason) {
      problem = reason;
      isOver = true;
      happened();
    },
    complete() {
      isOver = true;
      happened();
    },
  };
  client.subscribe({ query: FOLLOW, variables: { threadId, after } }, sink);
  return {
    seqs,
    retries: () => retries,
    problem: () => problem,
    received: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (seqs.length < count && !isOver) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    stop: async () => {
      await client.dispose();
    },
  };
};

/** One line for a person. */
export const asLine = (event: LiveEvent): string => {
  const seq = String(event.seq).padStart(5);
  switch (event.__typename) {
    case 'Message':
      return `${seq}  ${event.sender?.handle}: ${event.content}`;
    case 'ParticipantStateChanged':
      return `${seq}  · ${event.participant?.handle} ${event.transition?.toLowerCase()}`;
    default:
      return `${seq}  · ${event.kind ?? event.__typename}`;
  }
};
