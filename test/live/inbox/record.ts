import type { LogEvent, Span } from './observed.ts';
import type { Answered, Asked, World } from './world.ts';

interface Recorded {
  readonly __typename: 'Message' | 'ParticipantStateChanged' | 'Retraction' | 'SystemEvent';
  readonly id: string;
  readonly seq: number;
  readonly at: string;
  readonly content?: string;
  readonly sender?: { readonly handle: string };
  readonly participant?: { readonly handle: string };
  readonly to?: 'ACTIVE' | 'REMOVED';
  readonly message?: { readonly id: string; readonly seq: number };
}

const RECORD = `query ($id: ID!, $after: Cursor) { thread(id: $id) { timeline { events(first: 200, after: $after) {
  nodes { __typename id seq at
    ... on Message { content sender { handle } }
    ... on ParticipantStateChanged { participant { handle } to }
    ... on Retraction { message { id seq } } }
  pageInfo { hasNextPage endCursor } } } } }`;

interface Page {
  readonly thread: {
    readonly timeline: {
      readonly events: {
        readonly nodes: readonly Recorded[];
        readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string };
      };
    };
  };
}

export interface RecordedEvent {
  readonly thread: string;
  readonly event: LogEvent;
  readonly span: Span;
  readonly answers: Asked['answers'];
}

/** Everything that a thread's record holds, with when it was asked for. What nobody asked for, or was answered otherwise, fails. */
export const readRecord = async (world: World, thread: string): Promise<readonly RecordedEvent[]> => {
  const nodes: Recorded[] = [];
  let after: string | null = null;
  for (let more = true; more; ) {
    const { data, code }: Answered<Page> = await world.call(null, 0, RECORD, {
      id: world.threadId(thread),
      after,
    });
    if (data === null) throw new Error(`The record cannot be read: ${code}`);
    const events: Page['thread']['timeline']['events'] = data.thread.timeline.events;
    nodes.push(...events.nodes);
    after = events.pageInfo.endCursor;
    more = events.pageInfo.hasNextPage;
  }
  const asked = world.asked.filter((one) => one.thread === thread);
  const known = asked.filter(({ seq }) => seq !== null);
  for (const one of known)
    if (!nodes.some((node) => node.seq === one.seq && isOf(one, node)))
      throw new Error(`What was answered is not recorded: ${JSON.stringify(one)}`);
  return nodes.map((node) => {
    const mine = asked.filter((one) => isOf(one, node));
    const told = mine.find(({ seq }) => seq === node.seq);
    const lost = mine.filter(({ seq }) => seq === null);
    const [first] = lost;
    if (node.seq > 1 && told === undefined && first === undefined)
      throw new Error(`Nobody asked for ${JSON.stringify(node)} in ${thread}.`);
    const span = told?.span ?? {
      from: Math.min(...lost.map((one) => one.span.from), Number.POSITIVE_INFINITY),
      to: Math.max(...lost.map((one) => one.span.to), Number.NEGATIVE_INFINITY),
    };
    return {
      thread,
      event: eventOf(node),
      span: node.seq === 1 ? { from: Number.NEGATIVE_INFINITY, to: Number.NEGATIVE_INFINITY } : span,
      answers: (told ?? first)?.answers ?? null,
    };
  });
};

const isOf = ({ kind, what }: Asked, node: Recorded): boolean => {
  switch (kind) {
    case 'MESSAGE':
      return node.__typename === 'Message' && node.content?.replace(/\.+$/, '') === what;
    case 'RETRACTION':
      return node.__typename === 'Retraction' && node.message?.id === what;
    case 'CHANGE':
      return node.__typename === 'ParticipantStateChanged' && node.participant?.handle === what;
    default:
      return kind satisfies never;
  }
};

const eventOf = ({ __typename, seq, at, sender, participant, to, message }: Recorded): LogEvent => {
  switch (__typename) {
    case 'Message':
      return { kind: 'MESSAGE', seq, at, sender: sender?.handle ?? '' };
    case 'Retraction':
      return { kind: 'RETRACTION', seq, message: message?.seq ?? 0 };
    case 'ParticipantStateChanged':
      return { kind: 'CHANGE', seq, subject: participant?.handle ?? '', isActive: to === 'ACTIVE' };
    case 'SystemEvent':
      return { kind: 'OTHER', seq };
    default:
      return __typename satisfies never;
  }
};
