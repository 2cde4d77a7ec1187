import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Server, startApp } from '../support/app.ts';
import { openEventStream, type StreamEvent } from '../support/eventStream.ts';
import { createPadWorld, FOLLOW, type PadPayload, type PadWorld, told } from '../support/padApi.ts';

let server: Server;
beforeAll(async () => {
  server = await startApp();
});
afterAll(() => server.close());

const wordOf = (event: StreamEvent | null): string => {
  if (!event?.data?.data) throw new Error(`No payload: ${JSON.stringify(event)}`);
  return told(event.data.data as unknown as PadPayload);
};
const take = async (stream: { next(): Promise<StreamEvent | null> }, count: number) => {
  const events: StreamEvent[] = [];
  for (let taken = 0; taken < count; taken += 1) {
    const event = await stream.next();
    if (event) events.push(event);
  }
  return { words: events.map(wordOf), last: events.at(-1)?.id ?? '' };
};

const post = (world: PadWorld, headers: Record<string, string> = {}) =>
  openEventStream(server.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${world.token('ben')}`,
      ...headers,
    },
    body: JSON.stringify({ query: FOLLOW, variables: { scratchpadId: world.scratchpadId } }),
  });

test('over an event stream each event’s id is its cursor, and Last-Event-ID is where it goes on', async () => {
  const world = await createPadWorld(server);
  const stream = await post(world);
  expect((await take(stream, 1)).words).toEqual(['start']);
  await world.append(world.token('ada'), 'one');
  await world.setContent(world.token('ada'), 'plan');
  const { words, last } = await take(stream, 2);
  expect(words).toEqual(['+one', '=plan']);
  stream.abort();
  await world.append(world.token('ada'), 'two');
  const resumed = await post(world, { 'last-event-id': last });
  expect((await take(resumed, 2)).words).toEqual(['start', '+two']);
  resumed.abort();
});

test('an EventSource’s ticket goes on after a break, also where the state was lost meanwhile, and never from before its start', async () => {
  const world = await createPadWorld(server, { ttlSeconds: 1 });
  const { cursor: before } = await world.append(world.token('ada'), 'before');
  const variables = { scratchpadId: world.scratchpadId };
  const { createConnectionTicket } = await world.must<{ createConnectionTicket: { ticket: string } }>(
    world.token('ben'),
    'mutation ($query: String!, $variables: JSON) { createConnectionTicket(input: { query: $query, variables: $variables }) { ticket } }',
    { query: FOLLOW, variables },
  );
  await world.append(world.token('ada'), 'also before');
  const url = new URL(server.url);
  url.search = new URLSearchParams({
    query: FOLLOW,
    variables: JSON.stringify(variables),
    ticket: createConnectionTicket.ticket,
  }).toString();
  const open = (lastEventId?: string) =>
    openEventStream(url.href, { headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId } });
  const first = await open();
  const start = await take(first, 1);
  first.abort();
  expect((await open(before)).response.status).toBe(401);
  const second = await open(start.last);
  // The state expires while it follows, and begins anew.
  expect((await take(second, 2)).words).toEqual(['start', 'reset']);
  await world.append(world.token('ada'), 'anew');
  const anew = await take(second, 1);
  expect(anew.words).toEqual(['+anew']);
  second.abort();
  const third = await open(anew.last);
  expect((await take(third, 1)).words).toEqual(['start']);
  third.abort();
});
