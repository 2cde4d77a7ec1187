import type { Server, Tenant } from '../app.ts';
import { answered } from './callers.ts';
import type { OracleEvent, OracleThread, State } from './rules.ts';
import { LASTING_EVENT } from './shown.ts';

interface RecordedEvent {
  readonly __typename: 'Message' | 'ParticipantStateChanged' | 'Retraction' | 'SystemEvent';
  readonly id: string;
  readonly seq: number;
  readonly at: string;
  readonly cursor: string;
  readonly sender: { readonly handle: string };
  readonly content: string;
  readonly clientKey: string | null;
  readonly agentHops: number;
  readonly participant: { readonly handle: string };
  readonly to: State;
  readonly by: { readonly handle: string } | null;
  readonly actor: { readonly handle: string };
  readonly message: { readonly id: string };
  readonly reason: string;
}

interface Answered {
  readonly thread: {
    readonly participants: readonly { readonly participant: { readonly handle: string } }[];
    readonly timeline: {
      readonly events: {
        readonly nodes: readonly RecordedEvent[];
        readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string };
      };
    };
  };
}

const RECORD = /* GraphQL */ `
  query ($id: ID!, $after: Cursor) {
    thread(id: $id) {
      participants { participant { handle } }
      timeline { events(first: 200, after: $after) { nodes { ...Event } pageInfo { hasNextPage endCursor } } }
    }
  } ${LASTING_EVENT}`;

/**
 * The full record of a thread that others wrote at the same time, as the owner reads it. (Threads of one set, written
 * to by posts, retractions and changes of state; mentions, sources and links are not read.)
 */
export const readRecord = async (
  server: Pick<Server, 'graphql'>,
  tenant: Tenant,
  threadId: string,
  into?: OracleThread,
): Promise<OracleThread> => {
  const members: string[] = [];
  const thread: OracleThread = into ?? { id: threadId, members, events: [], acknowledged: new Map() };
  const events: OracleEvent[] = [];
  let after: string | undefined;
  for (let more = true; more; ) {
    const answer = await server.graphql<Answered>(tenant.apiKey, RECORD, { id: threadId, after });
    const { participants, timeline } = answered(answer).thread;
    if (members.length === 0) members.push(...participants.map(({ participant }) => participant.handle));
    events.push(...timeline.events.nodes.map((event) => recorded(thread, events, event)));
    after = timeline.events.pageInfo.endCursor;
    more = timeline.events.pageInfo.hasNextPage;
  }
  thread.events.splice(0, thread.events.length, ...events);
  return thread;
};

const recorded = (
  thread: OracleThread,
  before: readonly OracleEvent[],
  event: RecordedEvent,
): OracleEvent => {
  const { id, seq, at, cursor } = event;
  const base = { thread, id, seq, at, cursor };
  switch (event.__typename) {
    case 'Message': {
      const { content, clientKey, agentHops } = event;
      const sender = event.sender.handle;
      return {
        ...base,
        type: 'MESSAGE',
        sender,
        content,
        clientKey,
        agentHops,
        mentions: [],
        sources: [],
        originating: null,
      };
    }
    case 'ParticipantStateChanged': {
      const subject = event.participant.handle;
      return {
        ...base,
        type: 'PARTICIPANT_STATE_CHANGED',
        subject,
        to: event.to,
        actor: event.by?.handle ?? null,
      };
    }
    case 'Retraction': {
      const message = before.find((earlier) => earlier.id === event.message.id);
      if (message?.type !== 'MESSAGE') throw new Error('A retraction of what is no message.');
      return { ...base, type: 'RETRACTION', actor: event.actor.handle, message, reason: event.reason };
    }
    case 'SystemEvent':
      return { ...base, type: 'SYSTEM', kind: 'THREAD_OPENED', related: null };
    default:
      return event.__typename satisfies never;
  }
};
