import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hashSecret } from '../../src/auth/secrets.ts';
import { pathsOf, type RestRoute } from '../../src/rest/route.ts';
import { ROUTES } from '../../src/rest/routes.ts';
import { startApp } from '../support/app.ts';
import { bearerOf, type Caller, NOBODY } from '../support/asking.ts';
import { ADMIN_TOKEN } from '../support/identity.ts';
import { answered } from '../support/rest.ts';
import { callRoute, createPlace, namesIn, type Place, type Sample, sampleOf } from '../support/restPlaces.ts';
import { rowsOf } from '../support/world.ts';

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

const WHO = ['key', 'acting', 'token', 'removed', 'run', 'admin'] as const;
type Who = (typeof WHO)[number];

/** `OK` for whoever is not named. */
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
  hydrateTools: {},
  // What may not be done is told to the model.
  executeTool: {},
};

/** After these the others could not do their work any more. */
const ENDS = new Set([
  'deleteThread',
  'removeParticipant',
  'leaveThread',
  'deleteScratchpad',
  'retractMessage',
]);

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
      return bearerOf(who, world.runToken);
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

test('every route has answered, and as its document says', () => {
  expect(ROUTES.map(({ operationId }) => operationId).filter((name) => !answered.has(name))).toEqual([]);
});
