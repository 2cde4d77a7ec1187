import { describe, expect, test } from 'vitest';
import type { Actor } from '../../src/auth/actor.ts';
import type { Json } from '../../src/shared/canonical.ts';
import { newId } from '../../src/shared/ids.ts';
import { parametersOf, TOOLS } from '../../src/tools/catalogue.ts';
import { hydrate } from '../../src/tools/hydration.ts';

const somebody: Actor = {
  kind: 'API_KEY',
  userId: newId('User'),
  credentialId: newId('Credential'),
  actAs: null,
};

const hydrated = (tools: Json[]): Json[] => hydrate(somebody, tools);
const namesOf = (tools: Json[]): (string | undefined)[] =>
  hydrated(tools).map((entry) => (entry as { function?: { name: string } }).function?.name);

const SCRATCHPAD = ['read_scratchpad', 'update_scratchpad', 'append_scratchpad'];
const MEMORY = ['store', 'recall'];
const THREAD = [
  'send_message',
  'read_messages',
  'message_retract',
  'peek_pending',
  'next_message',
  'acknowledge_message',
];

describe('hydration', () => {
  test('makes of each capability exactly its functions', () => {
    expect(namesOf([{ type: 'scratchpad' }])).toEqual(SCRATCHPAD);
    expect(namesOf([{ type: 'scratch_pad' }])).toEqual(SCRATCHPAD);
    expect(namesOf([{ type: 'memory' }])).toEqual(MEMORY);
    expect(namesOf([{ type: 'thread' }])).toEqual(THREAD);
  });

  test('puts the platform’s first, in the order of the capabilities, each name once', () => {
    const search = { type: 'web_search' };
    const own = { type: 'function', function: { name: 'mine', parameters: { type: 'object' } } };
    expect(
      hydrated([
        search,
        { type: 'memory' },
        own,
        { type: 'scratch_pad' },
        { type: 'scratchpad' },
        { type: 'memory' },
      ]).slice(5),
    ).toEqual([search, own]);
    expect(
      namesOf([search, { type: 'memory' }, own, { type: 'scratch_pad' }, { type: 'scratchpad' }]).slice(0, 5),
    ).toEqual([...MEMORY, ...SCRATCHPAD]);
  });

  test('passes through what is hydrated already, and what it does not know', () => {
    const others: Json[] = [
      { type: 'scratchpad', function: { name: 'something_else' } },
      { type: 'file_search', file_search: { a: [1, { b: null }] } },
      { type: 'Scratchpad' },
      { name: 'no type' },
      'a text',
      null,
      7,
    ];
    expect(hydrated(others)).toEqual(others);
    const once = hydrated([...others, { type: 'thread' }]);
    expect(hydrated(once)).toEqual(once);
  });

  test('lets nobody take a name of the platform’s twice', () => {
    const theirs = { type: 'function', function: { name: 'recall' } };
    expect(namesOf([theirs, { type: 'memory' }])).toEqual(MEMORY);
    expect(hydrated([theirs])).toEqual([theirs]);
  });

  test('refuses what no JSON of a client may be', () => {
    let deep: Json = {};
    for (let depth = 0; depth < 40; depth += 1) deep = { deep };
    expect(() => hydrated([deep])).toThrow('nested deeper');
    expect(() => hydrated([{ type: 'a\u0000' }])).toThrow('NUL');
    expect(() => hydrated(['x'.repeat(300_000)])).toThrow('larger than');
    expect(() => hydrate({ kind: 'ADMIN' }, [])).toThrow('administrator');
  });
});

/** Every name that a schema gives to something, however deep. */
const propertyNames = (schema: unknown): string[] => {
  if (typeof schema !== 'object' || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) => [
    ...(key === 'properties' ? Object.keys(value as object) : []),
    ...propertyNames(value),
  ]);
};

describe('every definition', () => {
  const functions = hydrated([{ type: 'scratchpad' }, { type: 'memory' }, { type: 'thread' }]).map(
    (entry) =>
      (
        entry as unknown as {
          type: string;
          function: { name: string; description: string; parameters: object };
        }
      ).function,
  );

  test('is told', () => {
    expect(functions.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));
    expect(functions.map(({ parameters }) => parameters)).toEqual(TOOLS.map(parametersOf));
    for (const { name, description } of functions)
      expect([name, description.length > 20]).toEqual([name, true]);
  });

  test.each(functions)(
    '$name names neither whose, nor which thread or scratchpad it is',
    ({ parameters }) => {
      expect(parameters).toMatchObject({ type: 'object', additionalProperties: false });
      const names = propertyNames(parameters);
      for (const name of names)
        expect(name).not.toMatch(/owner|user|tenant|thread|pad|participant|^as$|^id$|run/i);
      // Whatever is in it refuses what is not named.
      expect(JSON.stringify(parameters)).not.toMatch(/"additionalProperties":true/);
    },
  );

  test('has the arguments that models know', () => {
    const shapes = Object.fromEntries(
      functions.map(({ name, parameters }) => {
        const { properties = {}, required = [] } = parameters as { properties?: object; required?: string[] };
        return [name, [Object.keys(properties), required]];
      }),
    );
    expect(shapes).toEqual({
      read_scratchpad: [['cursor'], []],
      update_scratchpad: [['content'], ['content']],
      append_scratchpad: [['note'], ['note']],
      store: [['memory'], ['memory']],
      recall: [['query', 'cursor'], ['query']],
      send_message: [['content', 'mentions', 'acknowledge'], ['content']],
      read_messages: [['limit', 'cursor'], []],
      message_retract: [['message_id', 'reason'], ['message_id']],
      peek_pending: [['cursor'], []],
      next_message: [['wait_seconds'], []],
      acknowledge_message: [['message_id'], []],
    });
  });
});
