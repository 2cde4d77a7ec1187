import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSchema } from '../../src/graphql/schema.ts';
import { newId } from '../../src/shared/ids.ts';
import { startApp } from '../support/app.ts';
import { ask, bearerOf, type Caller, type Reply } from '../support/asking.ts';
import { ADMIN_TOKEN } from '../support/identity.ts';
import { rootFields } from '../support/operations.ts';
import { workingCall } from '../support/samples.ts';
import { countRows, createWorld, type World } from '../support/world.ts';

const FIELDS = rootFields(createSchema(), 1);
const KIB = 1_024;

let server: Awaited<ReturnType<typeof startApp>>;
let world: World;
let key: Caller;
/** 257 participants beside the world's own. */
let crowd: string[];
beforeAll(async () => {
  server = await startApp({ MAX_QUERY_COST: '1000000' });
  world = await createWorld(server.services, 'ourmark');
  key = bearerOf('key', world.apiKey);
  crowd = Array.from({ length: 257 }, () => newId('Participant'));
  await server.services.database.prisma.participant.createMany({
    data: crowd.map((id) => ({ id, ownerId: world.userId, kind: 'AGENT', handle: id, displayName: id })),
  });
});
afterAll(() => server.close());

/** One operation that does its work, but for the values at these dotted paths. */
const call = (name: string, values: Readonly<Record<string, unknown>>, caller = key): Promise<Reply> => {
  const field = FIELDS.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`${name} is gone.`);
  const replaced = Object.entries(values).map(([path, value]) => {
    const leaf = field.leaves.find((candidate) => candidate.path.join('.') === path);
    if (leaf === undefined) throw new Error(`${name} has no ${path}.`);
    return [leaf, value] as const;
  });
  return ask(server, caller, field, workingCall(field, world, new Map(replaced)));
};

const factsOf = ({ text }: Reply): Record<string, unknown> =>
  (JSON.parse(text) as { errors?: { extensions: Record<string, unknown> }[] }).errors?.[0]?.extensions ?? {};

let count = 0;
const fresh = (): string => `h${++count}`;
/** A JSON object whose canonical form has so many bytes. */
const object = (bytes: number): object => ({ text: 'x'.repeat(bytes - '{"text":""}'.length) });
const tools = (bytes: number): object[] => [
  { type: 'x', text: 'x'.repeat(bytes - '[{"text":"","type":"x"}]'.length) },
];
/** Bytes of text that is not ASCII; characters of which JavaScript counts two each. */
const wide = (bytes: number): string => 'ä'.repeat(Math.floor(bytes / 2)) + 'x'.repeat(bytes % 2);
const faces = (characters: number): string => '😀'.repeat(characters);
/** Its canonical form: three texts of escaped characters, then plain ones. */
const context = (bytes: number): Record<string, unknown> => {
  const empty = '{"kind":"","originatingMessageId":"","task":""}'.length;
  const [kind, task] = ['\u0001'.repeat(128), '\u0001'.repeat(128)];
  const left = bytes - empty - 2 * 768;
  return {
    'input.context.kind': kind,
    'input.context.task': task,
    'input.context.originatingMessageId': '\u0001'.repeat(Math.floor(left / 6)) + 'x'.repeat(left % 6),
  };
};
const at = (path: string, make: (size: number) => unknown) => (size: number) => ({ [path]: make(size) });

type Limit = readonly [
  operation: string,
  field: string,
  limit: number,
  values: (size: number) => Readonly<Record<string, unknown>>,
];

const TOO_LARGE: readonly Limit[] = [
  ['postMessage', 'content', 256 * KIB, at('input.content', (size) => 'x'.repeat(size))],
  ['postMessage', 'content', 256 * KIB, at('input.content', wide)],
  ['postMessage', 'data', 256 * KIB, at('input.data', object)],
  ['postMessage', 'data', 256 * KIB, at('input.data', (size) => wide(size - 2))],
  ['postMessage', 'context', 2 * KIB, context],
  ['postMessage', 'context.kind', 128, at('input.context.kind', faces)],
  ['postMessage', 'context.task', 128, at('input.context.task', faces)],
  ['retractMessage', 'reason', 2 * KIB, at('input.reason', wide)],
  [
    'openThread',
    'metaData',
    16 * KIB,
    (size) => ({ 'input.metaData': object(size), 'input.participantIds': crowd.slice(0, 5) }),
  ],
  ['updateThread', 'metaData', 16 * KIB, at('input.metaData', object)],
  ['createParticipant', 'metaData', 16 * KIB, at('input.metaData', object)],
  ['updateParticipant', 'metaData', 16 * KIB, at('input.metaData', object)],
  ['createParticipant', 'tools', 256 * KIB, at('input.tools', tools)],
  ['updateParticipant', 'tools', 256 * KIB, at('input.tools', tools)],
  ['createParticipant', 'handle', 128, at('input.handle', (size) => fresh().padEnd(size, 'x'))],
  ['cloneParticipant', 'handle', 128, at('input.handle', (size) => fresh().padEnd(size, 'x'))],
  ['createParticipant', 'displayName', 256, at('input.displayName', faces)],
  ['updateParticipant', 'displayName', 256, at('input.displayName', faces)],
  ['cloneParticipant', 'displayName', 256, at('input.displayName', faces)],
  ['createApiKey', 'label', 128, at('input.label', faces)],
  ['createParticipantToken', 'label', 128, at('input.label', faces)],
];

const BAD: readonly Limit[] = [
  ['postMessage', 'idempotencyKey', 128, at('input.idempotencyKey', (size) => faces(size))],
  ['openThread', 'idempotencyKey', 128, at('input.idempotencyKey', (size) => 'k'.repeat(size))],
  ['extendThread', 'idempotencyKey', 128, at('input.idempotencyKey', (size) => 'ä'.repeat(size))],
  ['openThread', 'participantIds', 256, at('input.participantIds', (size) => crowd.slice(0, size))],
  ['nodes', 'ids', 200, at('ids', (size) => crowd.slice(0, size))],
  ['createApiKey', 'expiresInSeconds', 315_360_000, at('input.expiresInSeconds', Number)],
  ['createParticipantToken', 'expiresInSeconds', 315_360_000, at('input.expiresInSeconds', Number)],
  ...['participants', 'credentials', 'threads', 'engagements'].flatMap((name) =>
    ['first', 'last'].map((argument): Limit => [name, argument, 200, at(argument, Number)]),
  ),
];

const check = async (
  [operation, field, limit, values]: Limit,
  code: string,
  caller: Caller = key,
): Promise<void> => {
  const allowed = await call(operation, values(limit), caller);
  expect([operation, field, allowed.code, allowed.code === 'OK' ? '' : allowed.text]).toEqual([
    operation,
    field,
    'OK',
    '',
  ]);
  const before = await countRows(server.services);
  const reply = await call(operation, values(limit + 1), caller);
  expect(factsOf(reply)).toEqual({ code, field, limit });
  expect(reply.text).not.toContain('x'.repeat(50));
  expect(await countRows(server.services)).toEqual(before);
};

describe('a limit', () => {
  test.for(
    TOO_LARGE.filter(([operation]) => operation !== 'retractMessage').map(
      (limit) => [`${limit[0]}.${limit[1]}`, limit] as const,
    ),
  )('%s: exactly at it is well, one over PAYLOAD_TOO_LARGE', ([, limit]) =>
    check(limit, 'PAYLOAD_TOO_LARGE'),
  );
  test.for(BAD.map((limit) => [`${limit[0]}.${limit[1]}`, limit] as const))(
    '%s: exactly at it is well, one over BAD_USER_INPUT',
    ([, limit]) => check(limit, 'BAD_USER_INPUT'),
  );

  test('retractMessage.reason: one over writes nothing, so that exactly at it still goes', async () => {
    const limit = 2 * KIB;
    const reply = await call('retractMessage', { 'input.reason': wide(limit + 1) });
    expect(factsOf(reply)).toEqual({ code: 'PAYLOAD_TOO_LARGE', field: 'reason', limit });
    expect((await call('retractMessage', { 'input.reason': wide(limit) })).code).toBe('OK');
    expect((await call('retractMessage', { 'input.reason': '' })).code).toBe('ALREADY_RETRACTED');
  });

  test('of the administrator’s', async () => {
    const admin = bearerOf('admin', ADMIN_TOKEN);
    await check(['createUser', 'name', 256, at('input.name', faces)], 'PAYLOAD_TOO_LARGE', admin);
    await check(
      ['createUser', 'idempotencyKey', 128, at('input.idempotencyKey', faces)],
      'BAD_USER_INPUT',
      admin,
    );
    await check(['issueApiKey', 'label', 128, at('input.label', faces)], 'PAYLOAD_TOO_LARGE', admin);
    await check(['users', 'first', 200, at('first', Number)], 'BAD_USER_INPUT', admin);
  });

  test('of a timeline’s page, and of what is within reach of one', async () => {
    const page = (argument: string, size: number) =>
      server.graphql(
        world.apiKey,
        `query($id: ID!, $size: Int!) { thread(id: $id) { timeline { events(${argument}: $size) { nodes { id } } } } }`,
        { id: world.threadId, size },
      );
    for (const argument of ['first', 'last'])
      for (const [size, code] of [
        [200, undefined],
        [201, 'BAD_USER_INPUT'],
        [0, 'BAD_USER_INPUT'],
        [-1, 'BAD_USER_INPUT'],
        [2_147_483_647, 'BAD_USER_INPUT'],
      ] as const)
        expect([argument, size, (await page(argument, size)).errors?.[0]?.extensions?.code]).toEqual([
          argument,
          size,
          code,
        ]);
  });

  test('of sources and mentions counts each once', async () => {
    const before = await countRows(server.services);
    const events: string[] = [];
    for (let index = 0; index < 51; index += 1) {
      const { event } = await server.services.timeline.post(world.owner, {
        threadId: world.threadId,
        as: world.people.ada.id,
        content: `${index}`,
      });
      events.push(event.id);
    }
    const sources = (ids: readonly string[]) => call('postMessage', { 'input.sourceIds': ids });
    expect((await sources([...events.slice(0, 50), ...events.slice(0, 50)])).code).toBe('OK');
    const reply = await sources(events);
    expect(factsOf(reply)).toEqual({ code: 'BAD_USER_INPUT', field: 'sourceIds', limit: 50 });
    const { ada, scout } = world.people;
    const mentioned = await call('postMessage', { 'input.mentionIds': [ada.id, scout.id, ada.id, scout.id] });
    expect(mentioned.code).toBe('OK');
    expect((await call('postMessage', { 'input.mentionIds': crowd })).code).toBe('BAD_USER_INPUT');
    const after = await countRows(server.services);
    expect((after.events ?? 0) - (before.events ?? 0)).toBe(53);
  });
});

describe('what is empty, doubled or of a wrong form', () => {
  test.for([
    ['postMessage', { 'input.content': '' }, 'BAD_USER_INPUT'],
    ['postMessage', { 'input.content': '', 'input.data': null }, 'BAD_USER_INPUT'],
    ['postMessage', { 'input.content': '', 'input.data': {} }, 'OK'],
    ['postMessage', { 'input.content': ' ' }, 'OK'],
    ['postMessage', { 'input.idempotencyKey': '' }, 'BAD_USER_INPUT'],
    ['postMessage', { 'input.idempotencyKey': ' ' }, 'OK'],
    ['postMessage', { 'input.context.kind': '' }, 'BAD_USER_INPUT'],
    ['postMessage', { 'input.mentionIds': [], 'input.sourceIds': [] }, 'OK'],
    ['openThread', { 'input.participantIds': [] }, 'BAD_USER_INPUT'],
    ['extendThread', { 'input.participantIds': [] }, 'BAD_USER_INPUT'],
    ['createApiKey', { 'input.label': '' }, 'OK'],
    ['createApiKey', { 'input.expiresInSeconds': 0 }, 'BAD_USER_INPUT'],
    ['createParticipant', { 'input.handle': '' }, 'BAD_USER_INPUT'],
    ['createParticipant', { 'input.displayName': ' ' }, 'BAD_USER_INPUT'],
    ['createParticipant', { 'input.tools': [{}] }, 'BAD_USER_INPUT'],
    ['createParticipant', { 'input.tools': [{ type: '' }] }, 'BAD_USER_INPUT'],
    ['createParticipant', { 'input.tools': ['scratchpad'] }, 'BAD_USER_INPUT'],
    ['createParticipant', { 'input.metaData': [] }, 'BAD_USER_INPUT'],
    ['createConnectionTicket', { 'input.query': '' }, 'BAD_USER_INPUT'],
    ['createConnectionTicket', { 'input.variables': [] }, 'BAD_USER_INPUT'],
    ['threads', { first: 1, last: 1 }, 'BAD_USER_INPUT'],
    ['engagement', { id: null, threadId: null }, 'BAD_USER_INPUT'],
    ['participant', { id: null, handle: null }, 'BAD_USER_INPUT'],
  ] as const)('%s %o', async ([operation, values, code]) => {
    const before = await countRows(server.services);
    const reply = await call(operation, values);
    expect([reply.code, reply.code === code ? '' : reply.text]).toEqual([code, '']);
    if (code !== 'OK') expect(await countRows(server.services)).toEqual(before);
  });

  test.for(['Ada', 'a.b-c_d', '0', '9.'])('the handle %s is one, folded', async (handle) => {
    const name = `${handle}${fresh()}`;
    const { text } = await call('createParticipant', { 'input.handle': name });
    expect(text).toContain('__typename');
    const found = await server.graphql(
      world.apiKey,
      'query($h: String!) { participant(handle: $h) { handle } }',
      {
        h: name.toUpperCase(),
      },
    );
    expect(found).toEqual({ data: { participant: { handle: name.toLowerCase() } } });
    const taken = await call('createParticipant', { 'input.handle': name.toUpperCase() });
    expect(factsOf(taken)).toEqual({
      code: 'CONFLICT',
      field: 'handle',
      existingId: expect.stringMatching(/^part_/),
    });
  });

  test.for(['.a', '-a', '_a', 'a b', 'ä', 'a/b', 'a\n', 'a@b', 'İ', 'ſ', '\u212a', '😀'])(
    'the handle %j is none',
    async (handle) => {
      expect(factsOf(await call('createParticipant', { 'input.handle': handle }))).toEqual({
        code: 'BAD_USER_INPUT',
        field: 'handle',
      });
    },
  );

  test('a set is a set: order and repeats do not matter, and one alone is none', async () => {
    const [one = '', other = ''] = crowd;
    const opened = await call('openThread', { 'input.participantIds': [one, other] });
    expect(opened.text).toContain('"created":true');
    const again = await call('openThread', { 'input.participantIds': [other, one, other, one] });
    expect(again.text).toContain('"created":false');
    expect((await call('openThread', { 'input.participantIds': [one, one] })).code).toBe('BAD_USER_INPUT');
  });

  test('a thread is not extended beyond 256', async () => {
    const { threadId } = await server.services.threads.open(world.owner, {
      participantIds: crowd.slice(0, 255),
    });
    const extend = (ids: readonly string[]) =>
      call('extendThread', { 'input.threadId': threadId, 'input.participantIds': ids, 'input.as': null });
    expect((await extend(crowd.slice(255, 257))).code).toBe('BAD_USER_INPUT');
    expect((await extend(crowd)).code).toBe('BAD_USER_INPUT');
    expect((await extend(crowd.slice(0, 255))).code).toBe('BAD_USER_INPUT');
    expect((await extend(crowd.slice(0, 256))).code).toBe('OK');
  });
});
