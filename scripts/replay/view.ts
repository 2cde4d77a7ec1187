import type { Api } from './api.ts';
import type { Recorded } from './visible.ts';

export interface SeenEvent extends Recorded {
  readonly id: string;
  /** Of a message. */
  readonly content?: string | undefined;
  readonly senderId?: string | undefined;
}

/** A thread as one viewer reads it, page by page, from its beginning. */
export interface View {
  readonly events: readonly SeenEvent[];
  readonly windows: number;
  readonly unread: number;
  readonly state: string | null;
}

const READ = /* GraphQL */ `
  query Read($threadId: ID!, $after: Cursor, $first: Int!) {
    thread(id: $threadId) {
      viewerState
      unreadCount
      timeline {
        windows { after }
        events(first: $first, after: $after) {
          nodes {
            __typename
            id
            seq
            ... on Message { content sender { id } }
            ... on ParticipantStateChanged { participant { id } to }
          }
          pageInfo { hasNextPage endCursor }
        }
      }
    }
  }
`;

interface Answer {
  readonly thread: {
    readonly viewerState: string | null;
    readonly unreadCount: number;
    readonly timeline: {
      readonly windows: readonly unknown[];
      readonly events: {
        readonly nodes: readonly {
          readonly __typename: string;
          readonly id: string;
          readonly seq: number;
          readonly content?: string;
          readonly sender?: { readonly id: string };
          readonly participant?: { readonly id: string };
          readonly to?: string;
        }[];
        readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
      };
    };
  };
}

/** With an API key: the full record. With a participant's token: what it sees. */
export const readView = async (api: Api, token: string, threadId: string, pageSize = 200): Promise<View> => {
  const events: SeenEvent[] = [];
  let after: string | null = null;
  for (;;) {
    const answer: Answer = await api.ask(token, READ, { threadId, after, first: pageSize });
    const { thread } = answer;
    const { nodes, pageInfo } = thread.timeline.events;
    for (const { __typename: type, id, seq, content, sender, participant, to } of nodes)
      events.push({ id, seq, type, content, senderId: sender?.id, participantId: participant?.id, to });
    if (!pageInfo.hasNextPage)
      return {
        events,
        windows: thread.timeline.windows.length,
        unread: thread.unreadCount,
        state: thread.viewerState,
      };
    after = pageInfo.endCursor;
  }
};
