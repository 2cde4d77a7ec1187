import fc from 'fast-check';
import { isEnumType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSchema } from '../../src/graphql/schema.ts';
import { keysetCursor, timelineCursor } from '../../src/shared/cursors.ts';
import { ERROR_STATUS } from '../../src/shared/errors.ts';
import { newId } from '../../src/shared/ids.ts';
import { startApp } from '../support/app.ts';
import { ask, bearerOf, type Caller, type Reply } from '../support/asking.ts';
import { ADMIN_TOKEN } from '../support/identity.ts';
import { type Leaf, type RootField, rootFields, type Variables } from '../support/operations.ts';
import { referencesIn, refersTo, workingCall } from '../support/samples.ts';
import { countRows, createWorld, cursorOf, rowsOf, type World } from '../support/world.ts';

const FIELDS = rootFields(createSchema(), 2);

let server: Awaited<ReturnType<typeof startApp>>;
let world: World;
let foreign: World;
let key: Caller;
const admin = bearerOf('admin', ADMIN_TOKEN);
/** Whom an operation is for. */
const callerOf = ({ name }: RootField): Caller =>
  ['users', 'createUser', 'issueApiKey'].includes(name) ? admin : key;
beforeAll(async () => {
  server = await startApp({ MAX_QUERY_COST: '100000000' });
  world = await createWorld(server.services, 'ourmark');
  foreign = await createWorld(server.services, 'theirmark');
  key = bearerOf('key', world.apiKey);
});
afterAll(() => server.close());

const CODES = new Set([
  'OK',
  'GRAPHQL_VALIDATION_FAILED',
  ...Object.keys(ERROR_STATUS).filter((code) => code !== 'INTERNAL' && code !== 'UNAVAILABLE'),
]);

/** A clear answer with a code that is one of the catalogue's and says whose fault it is. */
const expectClear = ({ code, text }: Reply, where: string): void => {
  const isClear = CODES.has(code);
  expect(`${where}: ${isClear ? '' : text}`).toBe(`${where}: `);
};

const leavesOf = (type: string): [RootField, Leaf][] =>
  FIELDS.flatMap((field) =>
    field.leaves.filter((leaf) => leaf.type.name === type).map((leaf) => [field, leaf] as [RootField, Leaf]),
  );

/** Where zero means something. */
const MAY_BE_ZERO = new Set(['ttlSeconds', 'seconds', 'waitSeconds', 'offset']);

const labelOf = ({ name }: RootField, { path }: Leaf): string => `${name}(${path.join('.')})`;
const inList = (leaf: Leaf, value: unknown): unknown => (leaf.isList ? [value] : value);

/** Asks with one value replaced; what is refused must not have written anything. */
const refused = async (
  field: RootField,
  leaf: Leaf,
  value: unknown,
  expected: readonly string[],
): Promise<void> => {
  const before = field.root === 'mutation' ? await countRows(server.services) : null;
  const reply = await ask(
    server,
    callerOf(field),
    field,
    workingCall(field, world, new Map([[leaf, value]])),
  );
  const where = `${labelOf(field, leaf)} ${JSON.stringify(value)?.slice(0, 80)}`;
  expectClear(reply, where);
  expect([where, reply.code]).toEqual([
    where,
    expect.stringMatching(new RegExp(`^(${expected.join('|')})$`)),
  ]);
  if (before !== null) expect([where, await countRows(server.services)]).toEqual([where, before]);
};

describe('every text', () => {
  test.for(leavesOf('String').map(([field, leaf]) => [labelOf(field, leaf), field, leaf] as const))(
    '%s takes no NUL and no half a character',
    async ([, field, leaf]) => {
      for (const text of ['a\u0000b', '\u0000', 'a\ud800', '\udc00b', '\udc00\ud800'])
        await refused(field, leaf, inList(leaf, text), ['BAD_USER_INPUT', 'NOT_FOUND', 'UNAUTHENTICATED']);
      for (const wrong of [1, true, {}, { a: 'b' }, [['a']]])
        await refused(field, leaf, wrong, ['GRAPHQL_VALIDATION_FAILED']);
    },
  );
});

describe('every number, flag and choice', () => {
  const others = [
    'Int',
    'Boolean',
    ...new Set(
      FIELDS.flatMap(({ leaves }) =>
        leaves.filter(({ type }) => isEnumType(type)).map(({ type }) => type.name),
      ),
    ),
  ];
  test.for(others.flatMap(leavesOf).map(([field, leaf]) => [labelOf(field, leaf), field, leaf] as const))(
    '%s takes nothing of another type',
    async ([, field, leaf]) => {
      for (const wrong of ['1', 'x', {}, 1.5, 2 ** 31, -(2 ** 40), [[1]]])
        await refused(field, leaf, wrong, ['GRAPHQL_VALIDATION_FAILED']);
      if (leaf.type.name !== 'Int') return;
      for (const number of [-1, 0, -(2 ** 31), 2 ** 31 - 1])
        if (number !== 0 || !MAY_BE_ZERO.has(leaf.name))
          await refused(field, leaf, number, ['BAD_USER_INPUT']);
    },
  );
});

describe('every JSON value', () => {
  const nested = (levels: number): unknown => {
    let value: unknown = {};
    for (let level = 1; level < levels; level += 1) value = { a: value };
    return value;
  };
  const hostile = (): [string, unknown][] => [
    ['__proto__', JSON.parse('{"__proto__":{"admin":true}}')],
    ['__proto__ inside', JSON.parse('{"type":"x","a":[{"__proto__":1}]}')],
    ['constructor', { type: 'x', constructor: 1 }],
    ['prototype', { type: 'x', a: { prototype: 1 } }],
    ['a NUL', { type: 'x', a: 'b\u0000' }],
    ['a NUL in a key', { type: 'x', 'a\u0000': 1 }],
    ['half a character', { type: 'x', a: ['\ud83d'] }],
    ['half a character in a key', { type: 'x', '\ude00': 1 }],
    ['too deep', nested(33)],
    ['far too deep', nested(2_000)],
  ];
  test.for(leavesOf('JSON').map(([field, leaf]) => [labelOf(field, leaf), field, leaf] as const))(
    '%s is refused where it could do harm',
    async ([, field, leaf]) => {
      for (const [, value] of hostile())
        await refused(field, leaf, inList(leaf, value), ['BAD_USER_INPUT', 'GRAPHQL_VALIDATION_FAILED']);
      expect(({} as Record<string, unknown>).admin).toBeUndefined();
    },
  );

  test('may be 32 levels deep, also as a literal', async () => {
    const update = FIELDS.find(({ name }) => name === 'updateThread');
    const leaf = update?.leaves.find(({ name }) => name === 'metaData');
    if (update === undefined || leaf === undefined) throw new Error('updateThread is gone.');
    const { code } = await ask(
      server,
      key,
      update,
      workingCall(update, world, new Map([[leaf, nested(32)]])),
    );
    expect(code).toBe('OK');
    const literal = (value: string) => ({
      root: 'mutation' as const,
      document: `mutation($id: ID!) { updateThread(input: { threadId: $id, metaData: ${value} }) { thread { metaData } } }`,
    });
    const id = world.threadId;
    const deep = (levels: number) => `${'{a:'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
    for (const [value, expected] of [
      ['{__proto__: {admin: true}}', 'BAD_USER_INPUT'],
      ['{a: {constructor: 1}}', 'BAD_USER_INPUT'],
      ['{a: "\\u0000"}', 'BAD_USER_INPUT'],
      ['[1]', 'BAD_USER_INPUT'],
      ['{a: [1e400]}', 'BAD_USER_INPUT'],
      ['{a: -1e400}', 'BAD_USER_INPUT'],
      ['{a: 1e308}', 'OK'],
      ['"text"', 'BAD_USER_INPUT'],
      ['null', 'GRAPHQL_VALIDATION_FAILED'],
      [deep(33), 'BAD_USER_INPUT'],
      [deep(32), 'OK'],
      ['{a: {b: [1, 2.5, true, null, ENUM, "text"]}}', 'OK'],
    ] as const)
      expect([value, (await ask(server, key, literal(value), { id })).code]).toEqual([value, expected]);
  });
});

describe('every id', () => {
  test.for(leavesOf('ID').map(([field, leaf]) => [labelOf(field, leaf), field, leaf] as const))(
    '%s may be anything, and names nothing',
    async ([, field, leaf]) => {
      const kinds = refersTo(leaf) as readonly string[];
      const others = Object.entries(referencesIn(world)).flatMap(([other, ids]) =>
        kinds.includes(other) || other === 'Position' || other.startsWith('List')
          ? []
          : (ids ?? []).slice(0, 1),
      );
      const malformed = [
        '',
        ' ',
        'x',
        'thread_',
        'thread_0',
        `${newId('Thread')}x`,
        newId('Thread').toUpperCase(),
        '\u0000',
        `part_\u0000${'0'.repeat(25)}`,
        '\ud800',
        "'; DROP TABLE users; --",
        '__proto__',
        'x'.repeat(100_000),
        ...others,
        newId('Audit'),
      ];
      const before = await rowsOf(server.services, world.userId);
      for (const value of malformed) {
        const reply = await ask(
          server,
          callerOf(field),
          field,
          workingCall(field, world, new Map([[leaf, inList(leaf, value)]])),
        );
        expectClear(reply, `${labelOf(field, leaf)} ${JSON.stringify(value).slice(0, 60)}`);
        // A hint is kept as it is; whatever else is named must be there.
        if (field.root === 'mutation' && leaf.name !== 'originatingMessageId')
          expect(['NOT_FOUND', 'BAD_USER_INPUT', 'PAYLOAD_TOO_LARGE']).toContain(reply.code);
      }
      if (leaf.name !== 'originatingMessageId')
        expect(await rowsOf(server.services, world.userId)).toEqual(before);
      for (const wrong of [1.5, true, {}, [[]]])
        await refused(field, leaf, wrong, ['GRAPHQL_VALIDATION_FAILED']);
    },
  );
});

describe('every cursor', () => {
  const base64 = (text: string): string => Buffer.from(text).toString('base64url');
  const forged = (): string[] => {
    const [one, other] = [world.threadId.slice(7), '0'.repeat(26)];
    return [
      '',
      ' ',
      'x',
      '\u0000',
      '\ud800',
      '=',
      'x'.repeat(10_000),
      base64('t1'),
      base64(`t1 ${one} -1 000000`),
      base64(`t1 ${one} 2147483648 000000`),
      base64(`t1 ${one} 99999999999 000000`),
      base64(`t1 ${one} 1 '; -- `),
      base64(`t1 ${one} 2 aaaaaa`),
      base64(`t1 ${other} 1 aaaaaa`),
      base64(`t2 ${one} 1 aaaaaa`),
      ...[
        'threads',
        'engagements',
        'scratchpads',
        'recall',
        'found',
        'memory',
        'part',
        'cred',
        'user',
        'no-such-list',
        '',
      ].flatMap((list) => [
        keysetCursor(list, []),
        keysetCursor(list, ['']),
        keysetCursor(list, ['', '']),
        keysetCursor(list, ['x']),
        keysetCursor(list, ['x', 'y']),
        keysetCursor(list, ['9223372036854775808', newId('Thread')]),
        keysetCursor(list, ['1e3', newId('Thread')]),
        keysetCursor(list, ['1', "'"]),
        keysetCursor(list, ['1', '\u0000']),
        keysetCursor(list, ['\u0000', '1']),
        keysetCursor(list, ['\u0000']),
        keysetCursor(list, ['1', newId('Participant'), '2']),
      ]),
      timelineCursor(newId('Thread'), 0, null),
      timelineCursor(world.threadId, 99, newId('Event')),
      cursorOf(foreign.message),
    ];
  };
  /** What belongs to another list or log than this argument's. */
  test.for(leavesOf('Cursor').map(([field, leaf]) => [labelOf(field, leaf), field, leaf] as const))(
    '%s is one that was given out, or INVALID_CURSOR',
    async ([, field, leaf]) => {
      const [kind = ''] = refersTo(leaf);
      const foreignLists = Object.entries(referencesIn(world)).flatMap(([other, cursors]) =>
        other !== kind && (other === 'Position' || other.startsWith('List:')) ? (cursors ?? []) : [],
      );
      for (const cursor of [...forged(), ...foreignLists])
        await refused(field, leaf, cursor, ['INVALID_CURSOR']);
      for (const wrong of [1, true, {}]) await refused(field, leaf, wrong, ['GRAPHQL_VALIDATION_FAILED']);
    },
  );
});

describe('anything at all', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.constantFrom(
      '',
      '\u0000',
      '\ud800',
      '__proto__',
      'a'.repeat(129),
      'ä'.repeat(300),
      'x'.repeat(300_000),
    ),
  );
  const anyOf = (leaf: Leaf): fc.Arbitrary<unknown> => {
    const references = referencesIn(world);
    // Whoever asks must not end its own credential.
    const known = Object.values(references).flatMap((ids) =>
      (ids ?? []).filter((id) => id !== world.owner.credentialId),
    );
    const single = (): fc.Arbitrary<unknown> => {
      if (isEnumType(leaf.type))
        return fc.constantFrom(...leaf.type.getValues().map(({ name }) => name), 'NONE');
      switch (leaf.type.name) {
        case 'Int':
          return fc.oneof(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), fc.integer({ min: -1, max: 3 }));
        case 'Boolean':
          return fc.boolean();
        case 'JSON':
          return fc.oneof(fc.jsonValue({ maxDepth: 5 }), fc.constant(JSON.parse('{"__proto__":1}')));
        case 'ID':
        case 'Cursor':
          return fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...known) }, text);
        default:
          return text;
      }
    };
    const value = leaf.isList ? fc.array(single(), { maxLength: 4 }) : single();
    return fc.oneof(
      { weight: 40, arbitrary: value },
      { weight: 1, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.anything({ maxDepth: 1 }) },
    );
  };

  test('gets a clear answer, and writes nothing unless it says so', async () => {
    const fuzzed = FIELDS.filter(
      ({ name, leaves }) =>
        leaves.length > 0 &&
        // An inbox that has nothing to say says nothing.
        !['deleteUser', 'deleteThread', 'deleteScratchpad', 'inbox'].includes(name),
    );
    const call = fc
      .constantFrom(...fuzzed)
      .chain((field) =>
        fc
          .tuple(...field.leaves.map((leaf) => fc.option(anyOf(leaf), { nil: undefined, freq: 2 })))
          .map((values): [RootField, Variables] => [
            field,
            workingCall(
              field,
              world,
              new Map(
                field.leaves.flatMap((leaf, index) =>
                  values[index] === undefined ? [] : [[leaf, values[index]] as const],
                ),
              ),
            ),
          ]),
      );
    const codes = new Map<string, number>();
    let known = await countRows(server.services);
    await fc.assert(
      fc.asyncProperty(call, async ([field, variables]) => {
        const reply = await ask(server, callerOf(field), field, variables);
        codes.set(reply.code, (codes.get(reply.code) ?? 0) + 1);
        expect(reply.status).not.toBe(401);
        expectClear(reply, `${field.name} ${JSON.stringify(variables)}`);
        if (field.root !== 'mutation') return;
        const now = await countRows(server.services);
        if (reply.code !== 'OK') expect(now).toEqual(known);
        known = now;
      }),
      // Slower than that is a failure too, which tells its seed.
      { numRuns: 400, interruptAfterTimeLimit: 100_000, markInterruptAsFailure: true, endOnFailure: true },
    );
    // It went through to what the operations do, not only to their doors.
    for (const code of ['OK', 'NOT_FOUND', 'BAD_USER_INPUT', 'INVALID_CURSOR'])
      expect(codes.get(code)).toBeGreaterThan(5);
  }, 120_000);
});
