import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RestRoute } from '../../src/rest/route.ts';
import { ROUTES } from '../../src/rest/routes.ts';
import { keysetCursor, listOf, padCursor, timelineCursor } from '../../src/shared/cursors.ts';
import { newId } from '../../src/shared/ids.ts';
import { startApp } from '../support/app.ts';
import { bearerOf, type Caller } from '../support/asking.ts';
import type { RestReply } from '../support/rest.ts';
import { callRoute, createPlace, namesIn, type Place, type Sample, sampleOf } from '../support/restPlaces.ts';
import { cursorOf, rowsOf } from '../support/world.ts';

/** Every route of the table, so that a new one cannot be forgotten. */
let server: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  server = await startApp();
});
afterAll(() => server.close());

const newPlace = (mark = `w${randomUUID().slice(0, 8)}`): Promise<Place> =>
  createPlace(server.services, mark);

const call = (route: RestRoute, caller: Caller, sample: Sample, path?: string) =>
  callRoute(server, route, caller, sample, path);

type Kind =
  | 'Thread'
  | 'Scratchpad'
  | 'Participant'
  | 'Event'
  | 'Source'
  | 'Run'
  | 'Delivery'
  | 'Position'
  | 'PadPosition'
  | 'ViewPosition'
  | 'ListPosition';

/** What each field, parameter or part of a path names. */
const REFERS: Readonly<Record<string, Kind | null>> = {
  thread_id: 'Thread',
  scratchpad_id: 'Scratchpad',
  participant_id: 'Participant',
  message_id: 'Event',
  as: 'Participant',
  participant_ids: 'Participant',
  mention_ids: 'Participant',
  source_ids: 'Source',
  context: 'Event',
  if_nothing_after: 'Position',
  acknowledge_up_to: 'Position',
  delivery_id: 'Delivery',
  'listThreadEvents after': 'Position',
  'listThreadEvents before': 'Position',
  'listScratchpads after': 'ListPosition',
  'listScratchpadEntries after': 'PadPosition',
  'readScratchpadTool cursor': 'ViewPosition',
  content: null,
  data: null,
  meta_data: null,
  reason: null,
  note: null,
  limit: null,
  idempotency_key: null,
  run_id: 'Run',
  tools: null,
  name: null,
  arguments: null,
  tool_call_id: null,
};

interface Slot {
  readonly place: 'params' | 'query' | 'body';
  readonly name: string;
  readonly kind: Kind;
}

/** Where a route can be given what is another's. */
const slotsOf = (route: RestRoute): Slot[] =>
  (
    [
      ['params', [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')],
      ['query', namesIn(route.query)],
      ['body', namesIn(route.body)],
    ] as const
  ).flatMap(([place, names]) =>
    names.flatMap((name) => {
      const kind = REFERS[`${route.operationId} ${name}`] ?? REFERS[name];
      if (kind === undefined)
        throw new Error(`${route.operationId} takes ${name}: say in REFERS what it names.`);
      return kind === null ? [] : [{ place, name, kind }];
    }),
  );

/** Beside somebody who is there, so that it alone decides. */
const valueFor = ({ name }: Slot, value: string, self: string): unknown => {
  if (name === 'context') return { originating_message_id: value };
  if (name === 'source_ids') return [value];
  return name.endsWith('_ids') ? [self, value] : value;
};

const withValue = (sample: Sample, slot: Slot, value: string, self: string): Sample => ({
  ...sample,
  [slot.place]: { ...sample[slot.place], [slot.name]: valueFor(slot, value, self) },
});

const NO_POSITION = { epoch: 'e'.repeat(10), rev: 9, seq: 9, tag: 'x' };

/** Where a model reads on in a scratchpad. */
const viewCursor = (padId: string): string =>
  keysetCursor(listOf('view', [padId]), ['e'.repeat(10), 1, 0, 1, 0]);

const referencesIn = ({ world, padId, bareThreadId, entryCursor }: Place): Record<Kind, string[]> => ({
  Thread: [world.threadId, world.laterThreadId, bareThreadId],
  Scratchpad: [padId],
  Participant: [world.people.ada.id, world.people.nora.id],
  Event: [world.message.id, world.late.id, world.removal.id],
  Source: [world.late.id, world.note.id, world.lateNote.id, world.memory.id, world.known.id],
  Run: [world.runId],
  Delivery: [world.deliveryId],
  Position: [cursorOf(world.late)],
  PadPosition: [entryCursor],
  ViewPosition: [viewCursor(padId)],
  ListPosition: [keysetCursor('scratchpads', [1_700_000_000_000, padId])],
});

/** What never was. */
const unknown = (kind: Kind): string => {
  switch (kind) {
    case 'Position':
      return timelineCursor(newId('Thread'), 3, newId('Event'));
    case 'PadPosition':
      return padCursor(newId('Scratchpad'), NO_POSITION);
    case 'ViewPosition':
      return viewCursor(newId('Scratchpad'));
    case 'ListPosition':
      return keysetCursor('scratchpads', [1_700_000_000_000, newId('Scratchpad')]);
    case 'Source':
      return newId('Event');
    default:
      return newId(kind);
  }
};

/** What a new object has of its own. */
const alike = ({ status, text, code }: RestReply): string =>
  `${status} ${code} ${text}`
    .replace(/\b(event|thread|part|sp)_[0-9a-z]{26}/g, '<$1>')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replace(/"(cursor|after|end|start_cursor|end_cursor)":"[\w-]+"/g, '"$1":"<cursor>"')
    .replace(/"(seq|created_at|agent_hops)":\d+/g, '"$1":0');

describe('what may not be seen answers as what never existed', () => {
  test.for([
    ['another tenant’s, with an API key', 'theirs', (place: Place) => bearerOf('key', place.world.apiKey)],
    [
      'another tenant’s, acting as a participant',
      'theirs',
      ({ world }: Place) => bearerOf('acting', world.apiKey, world.people.ada.id),
    ],
    [
      'another tenant’s, with a participant’s token',
      'theirs',
      ({ world }: Place) => bearerOf('ada', world.people.ada.token),
    ],
    ['a thread one is no member of', 'ours', ({ world }: Place) => bearerOf('nora', world.people.nora.token)],
    [
      'a thread that whom one acts as is no member of',
      'ours',
      ({ world }: Place) => bearerOf('acting', world.apiKey, world.people.nora.id),
    ],
  ] as const)('%s', async ([, whose, callerIn]) => {
    const ours = await newPlace('ourmark');
    const foreign = await newPlace('theirmark');
    const caller = callerIn(ours);
    const isStranger = whose === 'ours';
    const hidden = referencesIn(isStranger ? ours : foreign);
    const self = isStranger ? ours.world.people.nora.id : ours.world.people.ada.id;
    const before = await rowsOf(server.services, foreign.world.userId);
    let compared = 0;
    for (const route of ROUTES)
      for (const slot of slotsOf(route)) {
        // An API key that acts may name whom it likes; whom it may see is another matter.
        if (isStranger && slot.kind === 'Participant') continue;
        const sample = sampleOf(route, ours);
        for (const value of hidden[slot.kind]) {
          const reference = await call(route, caller, withValue(sample, slot, unknown(slot.kind), self));
          const reply = await call(route, caller, withValue(sample, slot, value, self));
          const where = `${route.operationId} ${slot.name} ${value}`;
          expect(`${where} ${alike(reply)}`).toBe(`${where} ${alike(reference)}`);
          if (!isStranger) expect(`${where} ${reply.text}`).not.toContain('theirmark');
          else expect(`${where} ${reply.text}`).not.toMatch(/ourmark (early|late|plan|I am|Is)/);
          compared += 1;
        }
      }
    expect(compared).toBeGreaterThan(30);
    expect(await rowsOf(server.services, foreign.world.userId)).toEqual(before);
    const theirs = await call(
      ROUTES.find(({ operationId }) => operationId === 'readScratchpadTool') as RestRoute,
      bearerOf('key', foreign.world.apiKey),
      { body: { thread_id: foreign.world.threadId } },
    );
    expect(theirs.text).toContain('theirmark plan');
    expect(theirs.text).toMatch(/\[\d+\] theirmark late note/);
  });

  test('what was said and noted while one was removed', async () => {
    const place = await newPlace();
    const { mark, people, late } = place.world;
    const rex = bearerOf('rex', people.rex.token);
    const seen: string[] = [];
    for (const route of ROUTES) {
      const { text, headers } = await call(route, rex, sampleOf(route, place));
      const where = `${route.operationId} ${text}`;
      expect(where).not.toMatch(new RegExp(`${mark} (late note|plan|Rex is gone)`));
      expect(where).not.toContain(late.id);
      expect([route.operationId, headers.has('x-expires-at'), headers.has('etag')]).toEqual([
        route.operationId,
        false,
        false,
      ]);
      seen.push(text);
    }
    expect(seen.join('\n')).toContain(`${mark} early note`);
  });

  test('what a run does not reach', async () => {
    const ours = await newPlace('ourmark');
    const foreign = await newPlace('theirmark');
    const { world, bareThreadId } = ours;
    const { pad } = await server.services.scratchpads.create(world.owner, { threadId: bareThreadId });
    const caller = bearerOf('run', world.runToken);
    const theirs = referencesIn(foreign);
    const hidden: Record<Kind, string[]> = {
      ...theirs,
      Thread: [world.laterThreadId, bareThreadId, foreign.world.threadId],
      Scratchpad: [pad.scratchpadId, foreign.padId],
      Participant: [world.people.nora.id, foreign.world.people.ada.id],
      Source: [world.known.id, ...theirs.Source],
    };
    const secrets = [world.laterThreadId, bareThreadId, pad.scratchpadId, world.people.nora.id, 'theirmark'];
    const secretsIn = ({ text }: RestReply): string[] => secrets.filter((secret) => text.includes(secret));
    const before = await rowsOf(server.services, foreign.world.userId);
    for (const route of ROUTES) {
      const sample = sampleOf(route, ours);
      const working = await call(route, caller, sample);
      expect([route.operationId, secretsIn(working)]).toEqual([route.operationId, []]);
      for (const slot of slotsOf(route)) {
        const asked = (value: string) =>
          call(route, caller, withValue(sample, slot, value, world.people.ada.id));
        const reference = await asked(unknown(slot.kind));
        for (const value of hidden[slot.kind]) {
          const reply = await asked(value);
          const where = `${route.operationId} ${slot.name} ${value}`;
          expect(`${where} ${alike(reply)}`).toBe(`${where} ${alike(reference)}`);
          expect([where, secretsIn(reply)]).toEqual([where, []]);
        }
      }
    }
    expect(await rowsOf(server.services, foreign.world.userId)).toEqual(before);
  });
});
