import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hashSecret, newSecret } from '../../src/auth/secrets.ts';
import { pathsOf, type RestRoute } from '../../src/rest/route.ts';
import { ROUTES } from '../../src/rest/routes.ts';
import { keysetCursor, padCursor, timelineCursor } from '../../src/shared/cursors.ts';
import { newId } from '../../src/shared/ids.ts';
import { startApp } from '../support/app.ts';
import { bearerOf, type Caller, NOBODY } from '../support/asking.ts';
import { ADMIN_TOKEN } from '../support/identity.ts';
import { type RestReply, restAt } from '../support/rest.ts';
import { createPlace, type Place, SAMPLES, type Sample } from '../support/restPlaces.ts';
import { cursorOf, rowsOf } from '../support/world.ts';

/** Every route of the table, so that a new one cannot be forgotten. */
let server: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  server = await startApp();
});
afterAll(() => server.close());

const newPlace = (mark = `w${randomUUID().slice(0, 8)}`): Promise<Place> =>
  createPlace(server.services, mark);

const sampleOf = ({ operationId }: RestRoute, place: Place): Sample => {
  const sample = SAMPLES[operationId];
  if (sample === undefined) throw new Error(`${operationId} is new: say in restPlaces.ts how it is called.`);
  return sample(place);
};

const call = (
  route: RestRoute,
  { headers }: Caller,
  { params = {}, query = {}, body }: Sample,
  path = route.path,
): Promise<RestReply> => {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
  const search = Object.keys(query).length === 0 ? '' : `?${new URLSearchParams(query)}`;
  return restAt(new URL(server.url).origin)(
    headers,
    route.method,
    filled + search,
    body === undefined ? {} : { body },
  );
};

type Kind = 'Thread' | 'Scratchpad' | 'Participant' | 'Event' | 'Position' | 'PadPosition' | 'ListPosition';

/** What each field, parameter or part of a path names. */
const REFERS: Readonly<Record<string, Kind | null>> = {
  thread_id: 'Thread',
  scratchpad_id: 'Scratchpad',
  participant_id: 'Participant',
  message_id: 'Event',
  as: 'Participant',
  participant_ids: 'Participant',
  mention_ids: 'Participant',
  source_ids: 'Event',
  context: 'Event',
  if_nothing_after: 'Position',
  acknowledge_up_to: 'Position',
  'listThreadEvents after': 'Position',
  'listThreadEvents before': 'Position',
  'listScratchpads after': 'ListPosition',
  'listScratchpadEntries after': 'PadPosition',
  content: null,
  data: null,
  meta_data: null,
  reason: null,
  note: null,
  limit: null,
  idempotency_key: null,
};

interface Slot {
  readonly place: 'params' | 'query' | 'body';
  readonly name: string;
  readonly kind: Kind;
}

const namesIn = (schema: z.ZodType | undefined): string[] => {
  const inner = schema instanceof z.ZodOptional ? schema.unwrap() : schema;
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : [];
};

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

const referencesIn = ({ world, padId, bareThreadId, entryCursor }: Place): Record<Kind, string[]> => ({
  Thread: [world.threadId, world.laterThreadId, bareThreadId],
  Scratchpad: [padId],
  Participant: [world.people.ada.id, world.people.nora.id],
  Event: [world.message.id, world.late.id, world.removal.id],
  Position: [cursorOf(world.late)],
  PadPosition: [entryCursor],
  ListPosition: [keysetCursor('scratchpads', [1_700_000_000_000, padId])],
});

/** What never was. */
const unknown = (kind: Kind): string => {
  switch (kind) {
    case 'Position':
      return timelineCursor(newId('Thread'), 3, newId('Event'));
    case 'PadPosition':
      return padCursor(newId('Scratchpad'), NO_POSITION);
    case 'ListPosition':
      return keysetCursor('scratchpads', [1_700_000_000_000, newId('Scratchpad')]);
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
    expect(theirs.text).toContain('[2] theirmark late note');
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
});

const WHO = ['key', 'acting', 'token', 'removed', 'run', 'admin'] as const;
type Who = (typeof WHO)[number];

/** `OK` for whoever is not named; what a run may read is confined by the run, of which there are none yet. */
const OTHERWISE: Readonly<Record<string, Partial<Record<Who, string>>>> = {
  createThread: { run: 'FORBIDDEN' },
  retrieveThread: {},
  deleteThread: { token: 'FORBIDDEN', removed: 'FORBIDDEN', run: 'FORBIDDEN' },
  listThreadEvents: {},
  postMessage: { removed: 'PARTICIPANT_NOT_ACTIVE' },
  retractMessage: { removed: 'NOT_FOUND' },
  removeParticipant: { token: 'FORBIDDEN', removed: 'FORBIDDEN', run: 'FORBIDDEN' },
  readdParticipant: { token: 'FORBIDDEN', removed: 'FORBIDDEN', run: 'FORBIDDEN' },
  leaveThread: { removed: 'INVALID_TRANSITION', run: 'FORBIDDEN' },
  createScratchpad: { removed: 'PARTICIPANT_NOT_ACTIVE', run: 'FORBIDDEN' },
  listScratchpads: {},
  retrieveScratchpad: {},
  retrieveScratchpadByThread: {},
  updateScratchpad: { token: 'FORBIDDEN', removed: 'FORBIDDEN', run: 'FORBIDDEN' },
  deleteScratchpad: { token: 'FORBIDDEN', removed: 'FORBIDDEN', run: 'FORBIDDEN' },
  retrieveScratchpadContent: { removed: 'PARTICIPANT_NOT_ACTIVE' },
  setScratchpadContent: { removed: 'PARTICIPANT_NOT_ACTIVE' },
  clearScratchpadContent: { removed: 'PARTICIPANT_NOT_ACTIVE', run: 'FORBIDDEN' },
  appendScratchpadEntry: { removed: 'PARTICIPANT_NOT_ACTIVE' },
  listScratchpadEntries: {},
  clearScratchpadEntries: { removed: 'PARTICIPANT_NOT_ACTIVE', run: 'FORBIDDEN' },
  clearScratchpad: { removed: 'PARTICIPANT_NOT_ACTIVE', run: 'FORBIDDEN' },
  readScratchpadTool: { removed: 'PARTICIPANT_NOT_ACTIVE' },
  updateScratchpadTool: { removed: 'PARTICIPANT_NOT_ACTIVE' },
  appendScratchpadTool: { removed: 'PARTICIPANT_NOT_ACTIVE' },
};

/** After these the others could not do their work any more. */
const ENDS = new Set([
  'deleteThread',
  'removeParticipant',
  'leaveThread',
  'deleteScratchpad',
  'retractMessage',
]);

const tokenOfRun = async ({ userId, people }: Place['world']): Promise<string> => {
  const { secret, hash, prefix } = newSecret('RUN_TOKEN');
  const whose = { ownerId: userId, participantId: people.ada.id, runId: newId('Run') };
  await server.services.database.prisma.credential.create({
    data: { id: newId('Credential'), kind: 'RUN_TOKEN', prefix, hash, ...whose },
  });
  return secret;
};

const callerOf = async (who: Who, { world }: Place): Promise<Caller> => {
  const { ada, rex } = world.people;
  switch (who) {
    case 'key':
      return bearerOf(who, world.apiKey);
    case 'acting':
      return bearerOf(who, world.apiKey, ada.id);
    case 'token':
      return bearerOf(who, ada.token);
    case 'removed':
      return bearerOf(who, rex.token);
    case 'run':
      return bearerOf(who, await tokenOfRun(world));
    case 'admin':
      return bearerOf(who, ADMIN_TOKEN);
    default:
      return who satisfies never;
  }
};

/** Whoever acts by itself names nobody else. */
const asked = (route: RestRoute, who: Who, place: Place): Sample => {
  const sample = sampleOf(route, place);
  if (who !== 'removed' || sample.body?.as === undefined) return sample;
  return { ...sample, body: { ...sample.body, as: place.world.people.rex.id } };
};

describe('authority', () => {
  test('is laid down for every route there is', () => {
    expect(ROUTES.map(({ operationId }) => operationId).sort()).toEqual(Object.keys(OTHERWISE).sort());
  });

  test.for(WHO)('of: %s', async (who) => {
    let place = await newPlace();
    let caller = await callerOf(who, place);
    const ordered = [...ROUTES].sort(
      (one, other) => Number(ENDS.has(one.operationId)) - Number(ENDS.has(other.operationId)),
    );
    for (const route of ordered) {
      const { operationId } = route;
      const expected = who === 'admin' ? 'FORBIDDEN' : (OTHERWISE[operationId]?.[who] ?? 'OK');
      if (who === 'run' && expected === 'OK') continue;
      const before = await rowsOf(server.services, place.world.userId);
      const reply = await call(route, caller, asked(route, who, place));
      expect([who, operationId, reply.code ?? 'OK', expected === 'OK' ? '' : reply.text]).toEqual([
        who,
        operationId,
        expected,
        expect.not.stringContaining(place.world.mark),
      ]);
      if (expected !== 'OK') expect(await rowsOf(server.services, place.world.userId)).toEqual(before);
      if (expected !== 'OK' || !ENDS.has(operationId)) continue;
      place = await newPlace();
      caller = await callerOf(who, place);
    }
  });

  test('speaks as nobody but oneself', async () => {
    const { world, ...rest } = await newPlace();
    const { ada, scout } = world.people;
    for (const route of ROUTES.filter(({ body }) => namesIn(body).includes('as')))
      for (const caller of [bearerOf('token', ada.token), bearerOf('acting', world.apiKey, ada.id)]) {
        const sample = sampleOf(route, { world, ...rest });
        const reply = await call(route, caller, { ...sample, body: { ...sample.body, as: scout.id } });
        expect([route.operationId, reply.status, reply.code]).toEqual([route.operationId, 403, 'FORBIDDEN']);
      }
  });
});

test('a credential that is none, or none any more, answers alike at every address and reaches nothing', async () => {
  const place = await newPlace();
  const gone = await newPlace();
  const { services } = server;
  const { owner, people, apiKey, userId } = place.world;
  const make = () => services.credentials.createParticipantToken(owner, { participantId: people.ada.id });
  const [revoked, expired, revokedKey] = [
    await make(),
    await make(),
    await services.credentials.createApiKey(owner, {}),
  ];
  await services.credentials.revoke(owner, { credentialId: revoked.credential.id });
  await services.credentials.revoke(owner, { credentialId: revokedKey.credential.id });
  await services.database.prisma.credential.update({
    where: { id: expired.credential.id },
    data: { expiresAt: new Date(Date.now() - 1_000) },
  });
  await services.users.remove(gone.world.owner, { confirmName: `${gone.world.mark} company` });
  const callers = [
    NOBODY,
    bearerOf('revoked', revoked.secret),
    bearerOf('revoked, acting', revokedKey.secret, people.ada.id),
    bearerOf('expired', expired.secret),
    bearerOf('of a deleted user', gone.world.apiKey),
    bearerOf('of a deleted user’s participant', gone.world.people.ada.token),
    bearerOf('a hash', hashSecret(apiKey)),
  ];
  const before = await rowsOf(services, userId);
  const answers = new Set<string>();
  for (const route of ROUTES)
    for (const path of pathsOf(route))
      for (const caller of callers) {
        const { status, text, code, headers } = await call(route, caller, sampleOf(route, place), path);
        answers.add(`${status} ${text} ${code} ${headers.get('www-authenticate')}`);
      }
  expect([...answers]).toEqual([
    '401 {"detail":"A valid credential is required: send it as Authorization: Bearer … or as X-API-Key: …."} UNAUTHENTICATED APIKey',
  ]);
  expect(await rowsOf(services, userId)).toEqual(before);
});

test('every address of a route answers alike', async () => {
  const place = await newPlace();
  const caller = bearerOf('key', place.world.apiKey);
  for (const route of ROUTES.filter(({ method, tag }) => method === 'GET' || tag === 'tools')) {
    const replies = [];
    for (const path of pathsOf(route)) replies.push(await call(route, caller, sampleOf(route, place), path));
    expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(replies[0]?.status).toBe(200);
  }
});
