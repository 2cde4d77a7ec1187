import {
  isMember,
  isRetracted,
  type OracleEvent,
  type OraclePageInput,
  type OracleThread,
  pageOf,
  retraction,
  sees,
  since,
  stateNow,
  type Viewer,
} from './rules.ts';

export const TYPENAME = {
  MESSAGE: 'Message',
  PARTICIPANT_STATE_CHANGED: 'ParticipantStateChanged',
  RETRACTION: 'Retraction',
  SYSTEM: 'SystemEvent',
} as const satisfies Record<OracleEvent['type'], string>;

const STATIC = /* GraphQL */ `
  __typename id seq at cursor
  ... on Message {
    sender { handle } content clientKey agentHops mentions { handle } sources { id } isErased
    context { kind originatingMessage { id } }
  }
  ... on ParticipantStateChanged { participant { handle } transition from to by: actor { handle } }
  ... on Retraction { message { id } reason actor { handle } }
  ... on SystemEvent { systemKind: kind relatedThread { id } }`;

/** What a viewer reads of an event and can never change, and with it what can. */
export const EVENT = /* GraphQL */ `
  fragment Event on TimelineEvent { ${STATIC} thread { id }
    ... on Message { isRetracted retraction { id } }
    ... on ParticipantStateChanged { member { state since } }
  }`;
/** What a viewer reads of an event whenever it reads it. */
export const LASTING_EVENT = `fragment Event on TimelineEvent { ${STATIC} }`;

export const named = (handle: Viewer) => (handle === null ? null : { handle });
export const shown = (viewer: Viewer, event: OracleEvent | null) =>
  event !== null && sees(viewer, event) ? { id: event.id } : null;

export const lasting = (viewer: Viewer, event: OracleEvent): Record<string, unknown> => {
  const { id, seq, at, cursor } = event;
  const base = { __typename: TYPENAME[event.type], id, seq, at, cursor };
  switch (event.type) {
    case 'MESSAGE': {
      const { content, clientKey, agentHops, originating } = event;
      return {
        ...base,
        sender: named(event.sender),
        content,
        clientKey,
        agentHops,
        mentions: event.mentions.map(named),
        sources: event.sources.filter((source) => sees(viewer, source)).map((source) => ({ id: source.id })),
        isErased: false,
        context:
          originating === null
            ? null
            : {
                kind: null,
                originatingMessage: originating.type === 'MESSAGE' ? shown(viewer, originating) : null,
              },
      };
    }
    case 'PARTICIPANT_STATE_CHANGED': {
      const { subject, to, actor } = event;
      return {
        ...base,
        participant: named(subject),
        transition: to === 'ACTIVE' ? 'READDED' : 'REMOVED',
        from: to === 'ACTIVE' ? 'REMOVED' : 'ACTIVE',
        to,
        by: named(actor),
      };
    }
    case 'RETRACTION': {
      const message = shown(viewer, event.message);
      return { ...base, message, reason: message && event.reason, actor: named(event.actor) };
    }
    case 'SYSTEM':
      return {
        ...base,
        systemKind: event.kind,
        relatedThread: event.related && isMember(viewer, event.related) ? { id: event.related.id } : null,
      };
    default:
      return event satisfies never;
  }
};

export const whole = (viewer: Viewer, event: OracleEvent): Record<string, unknown> => {
  const told = { ...lasting(viewer, event), thread: { id: event.thread.id } };
  if (event.type === 'MESSAGE') {
    const found = retraction(viewer, event);
    return { ...told, isRetracted: isRetracted(viewer, event), retraction: found && { id: found.id } };
  }
  if (event.type === 'PARTICIPANT_STATE_CHANGED') {
    const { thread, subject } = event;
    return { ...told, member: { state: stateNow(thread, subject), since: since(viewer, thread, subject) } };
  }
  return told;
};

export const nullable = <T>(value: T | null | undefined, show: (value: T) => unknown): unknown =>
  value === null || value === undefined ? null : show(value);

export const connection = (
  viewer: Viewer,
  thread: OracleThread,
  input: OraclePageInput,
  show: (viewer: Viewer, event: OracleEvent) => unknown,
) => {
  const { events, ...flags } = pageOf(viewer, thread, input);
  return {
    edges: events.map((event) => ({ cursor: event.cursor, node: show(viewer, event) })),
    pageInfo: {
      ...flags,
      startCursor: events[0]?.cursor ?? null,
      endCursor: events.at(-1)?.cursor ?? null,
    },
  };
};
