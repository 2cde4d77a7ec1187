import type { Member } from './members.ts';
import { openStream } from './stream.ts';

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
  const request = { query: FOLLOW, variables: { threadId, after } };
  const { until, ...stream } = openStream<{ timeline: { event: LiveEvent | null } | null }>(
    socketUrl,
    member.token,
    request,
    ({ timeline }) => {
      const event = timeline?.event;
      if (!event) return;
      seqs.push(event.seq);
      onEvent?.(event);
    },
  );
  return { ...stream, seqs, received: (count) => until(() => seqs.length >= count) };
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
