import { type Api, Refused } from '../../scripts/replay/api.ts';
import { followThread } from '../../scripts/replay/follow.ts';
import type { Member } from '../../scripts/replay/members.ts';
import { startOf } from '../../scripts/replay/start.ts';

/** A long thread, and how to ask about it. Its last member has many windows, the others one. */
export interface Askable {
  readonly api: Api;
  readonly url: string;
  readonly port: number;
  readonly apiKey: string;
  readonly threadId: string;
  readonly members: readonly Member[];
  /** Somebody of another tenant, in very many threads with a scratchpad. */
  readonly reader: Member;
  readonly length: number;
  cursorAt(seq: number): string;
  /** The id of its last message at or before a position. */
  messageBy(participantId: string, from: number): string;
}

const EVENT = `__typename id seq at
  ... on Message { content sender { handle } mentions { handle } isRetracted retraction { id } context { originatingMessage { id } } sources { id } }
  ... on Retraction { message { id } reason actor { handle } }
  ... on ParticipantStateChanged { participant { handle } member { state since } }
  ... on SystemEvent { kind relatedThread { id } }`;
const PAGE = `query Page($threadId: ID!, $first: Int, $after: Cursor, $last: Int, $before: Cursor, $types: [TimelineEventType!]) {
  thread(id: $threadId) { viewerState unreadCount updatedAt acknowledged lastEvent { id } lastMessage { id }
    participants { state since participant { handle } }
    timeline { end windows { from until after end }
      events(first: $first, after: $after, last: $last, before: $before, types: $types) { nodes { ${EVENT} } pageInfo { hasNextPage hasPreviousPage } } } }
}`;
const POST =
  'mutation Post($input: PostMessageInput!) { postMessage(input: $input) { cursor message { id } } }';
const LISTS = `query Lists { threads(first: 50) { nodes { id unreadCount lastMessage { id content sender { handle } } lastEvent { id } } }
  engagements(first: 50) { nodes { id title unreadCount threads { id } } }
  participants(first: 50) { nodes { id handle } } }`;

/** Asks everything that the product can be asked, once or a few times, as the owner and as members. */
export const exerciseAll = async (askable: Askable): Promise<void> => {
  await read(askable);
  await listPads(askable);
  await follow(askable);
  await write(askable);
};

const read = async ({
  api,
  apiKey,
  threadId,
  members,
  length,
  cursorAt,
  messageBy,
}: Askable): Promise<void> => {
  const [one, many] = [members[0], members.at(-1)];
  if (!one || !many) throw new Error('Nobody is there.');
  const places = [10, Math.floor(length / 2), length].map(cursorAt);
  for (const token of [apiKey, one.token, many.token]) {
    await api.ask(token, PAGE, { threadId });
    for (const cursor of places)
      for (const types of [null, ['RETRACTION'], ['MESSAGE', 'PARTICIPANT_STATE_CHANGED']])
        for (const page of [
          { last: 50, before: cursor },
          { first: 50, after: cursor },
        ])
          await api.ask(token, PAGE, { threadId, types, ...page });
    await api.ask(token, LISTS);
    const ids = [messageBy(one.id, 20), messageBy(one.id, length)];
    await api.ask(token, `query Nodes($ids: [ID!]!) { nodes(ids: $ids) { ... on Message { id content } } }`, {
      ids,
    });
    await api.ask(
      token,
      'query Event($threadId: ID!, $id: ID!) { thread(id: $threadId) { timeline { event(id: $id) { id seq } } } }',
      { threadId, id: ids[0] },
    );
    await api.ask(
      token,
      'query Engagement($id: ID!) { engagement(threadId: $id) { id lastMessage { id } } }',
      {
        id: threadId,
      },
    );
    await api.ask(
      token,
      'query Credentials { credentials(first: 50) { nodes { id participant { handle } } } }',
    );
  }
};

/** Pages of scratchpads from both ends and from their middle, at both doors. */
const listPads = async ({ api, url, reader: { token } }: Askable): Promise<void> => {
  const LIST = `query Pads($first: Int, $after: Cursor, $last: Int, $before: Cursor) {
    scratchpads(first: $first, after: $after, last: $last, before: $before) { nodes { id metaData } pageInfo { startCursor endCursor } } }`;
  const page = async (range: Readonly<Record<string, unknown>>) => {
    const { scratchpads } = await api.ask<{
      scratchpads: { pageInfo: { startCursor: string; endCursor: string } };
    }>(token, LIST, range);
    return scratchpads.pageInfo;
  };
  const { endCursor } = await page({ first: 50 });
  await page({ first: 50, after: endCursor });
  const { startCursor } = await page({ last: 50 });
  await page({ last: 50, before: startCursor });
  const answer = await fetch(new URL('/v1/scratchpads', url), {
    headers: { authorization: `Bearer ${token}` },
  });
  if (!answer.ok) throw new Error(`REST answered ${answer.status}.`);
  await answer.text();
};

/** From the beginning for a while, and from the end. */
const follow = async ({ api, apiKey, url, threadId, members, cursorAt, length }: Askable): Promise<void> => {
  for (const after of [await startOf(api, apiKey, threadId), cursorAt(length - 10)])
    for (const member of [members[0], members.at(-1)]) {
      if (member === undefined) continue;
      const socketUrl = url.replace(/^http/, 'ws');
      const following = followThread({ socketUrl, threadId, member, after });
      await following.received(5);
      await following.stop();
    }
};

/** What an agent is asked to do, and does. */
const fromInbox = async ({ api, apiKey, members }: Askable, threadId: string, as: string): Promise<void> => {
  const ask = <Data>(query: string, input: object): Promise<Data> => api.ask<Data>(apiKey, query, { input });
  for (const content of ['One thing', 'Another'])
    await ask(POST, { threadId, as: members[0]?.id, content, mentionIds: [as] });
  await api.ask(
    apiKey,
    'query Peek($threadId: ID!, $as: ID!) { peekPending(threadId: $threadId, as: $as) { count messages { content } } }',
    { threadId, as },
  );
  for (const onlyMentions of [false, true]) {
    const { takePending } = await ask<{ takePending: { deliveries: { deliveryId: string | null }[] } }>(
      'mutation Take($input: TakePendingInput!) { takePending(input: $input) { deliveries { deliveryId } } }',
      { as, max: 5, waitSeconds: 1, onlyMentions },
    );
    const deliveryId = takePending.deliveries.at(-1)?.deliveryId;
    await ask(
      'mutation Extend($input: ExtendLeaseInput!) { extendLease(input: $input) { leaseExpiresAt } }',
      { as, deliveryId, seconds: 60 },
    );
    await ask('mutation Done($input: AcknowledgeInput!) { acknowledge(input: $input) { pendingCount } }', {
      as,
      threadId,
      deliveryId,
    });
  }
};

const write = async (askable: Askable): Promise<void> => {
  const { api, apiKey, threadId, members, length, cursorAt, messageBy } = askable;
  const [one, two] = members;
  const many = members.at(-1);
  if (!one || !two || !many) throw new Error('Nobody is there.');
  const post = (member: Member, more: object): Promise<unknown> =>
    api.ask(member.token, POST, { input: { threadId, content: 'Hello', ...more } });
  await post(one, {});
  await post(one, { idempotencyKey: 'again' });
  await post(one, { idempotencyKey: 'again' });
  await post(two, {
    mentionIds: [one.id],
    sourceIds: [messageBy(one.id, 50)],
    context: { originatingMessageId: messageBy(one.id, length) },
  });
  await post(two, { acknowledgeUpTo: cursorAt(length) });
  await refusedWith('STALE_VIEW', () => post(one, { ifNothingAfter: cursorAt(10) }));
  await refusedWith('STALE_VIEW', () => post(many, { ifNothingAfter: cursorAt(10) }));
  for (const upTo of [20, length / 2, length].map((seq) => cursorAt(Math.floor(seq))))
    for (const { token } of [one, many])
      await api.ask(
        token,
        'mutation Acknowledge($input: AcknowledgeInput!) { acknowledge(input: $input) { pendingCount } }',
        { input: { threadId, upTo } },
      );
  for (const from of [30, length])
    await api.ask(
      one.token,
      'mutation Retract($input: RetractMessageInput!) { retractMessage(input: $input) { cursor retraction { message { id isRetracted } } } }',
      { input: { messageId: messageBy(one.id, from) } },
    );
  for (const member of [one, many])
    for (const change of ['removeParticipant', 'readdParticipant'])
      await api.ask(
        apiKey,
        `mutation Change($input: ParticipantStateInput!) { ${change}(input: $input) { cursor thread { participants { state since } } } }`,
        { input: { threadId, participantId: member.id } },
      );
  const { createParticipant } = await api.ask<{ createParticipant: { participant: { id: string } } }>(
    apiKey,
    'mutation { createParticipant(input: { kind: AGENT, handle: "newcomer" }) { participant { id } } }',
  );
  const participantIds = [createParticipant.participant.id];
  const { extendThread } = await api.ask<{ extendThread: { thread: { id: string } } }>(
    apiKey,
    'mutation Extend($input: ExtendThreadInput!) { extendThread(input: $input) { created thread { id } } }',
    { input: { threadId, participantIds } },
  );
  await fromInbox(askable, extendThread.thread.id, createParticipant.participant.id);
  await api.ask(apiKey, LISTS);
  await api.ask(apiKey, PAGE, { threadId });
};

const refusedWith = async (code: string, act: () => Promise<unknown>): Promise<void> => {
  const outcome = await act().catch((error: unknown) => error);
  if (!(outcome instanceof Refused) || outcome.code !== code)
    throw new Error(`${code} was meant: ${outcome}`);
};
