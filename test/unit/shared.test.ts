import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson, inputHash, type Json } from '../../src/shared/canonical.ts';
import {
  KEY_PART,
  keysetCursor,
  padCursor,
  parseKeysetCursor,
  parseTimelineCursor,
  readStreamCursor,
  timelineCursor,
} from '../../src/shared/cursors.ts';
import { DomainError, unavailable } from '../../src/shared/errors.ts';
import {
  entryId,
  ID_PREFIX,
  type IdKind,
  isId,
  kindOfId,
  newEpoch,
  newId,
  readEntryId,
} from '../../src/shared/ids.ts';
import {
  LIMITS,
  requireBytes,
  requireCharacters,
  requireIdempotencyKey,
  requireJson,
} from '../../src/shared/input.ts';

const SHAPES = [KEY_PART.number, KEY_PART.id];

const codeOf = (act: () => unknown): string => {
  try {
    act();
    return 'nothing thrown';
  } catch (error) {
    return error instanceof DomainError ? error.code : String(error);
  }
};

describe('ids', () => {
  test('say what they name, and are told apart by their prefix alone', () => {
    // An entry's id is not made at random: it says where the entry stands.
    const kinds = (Object.keys(ID_PREFIX) as IdKind[]).filter((kind) => kind !== 'ScratchpadEntry');
    for (const kind of kinds) expect(kindOfId(newId(kind))).toBe(kind);
    const place = { scratchpadId: newId('Scratchpad'), epoch: newEpoch(), seq: 100_001 };
    expect(kindOfId(entryId(place))).toBe('ScratchpadEntry');
    expect(readEntryId(entryId(place))).toEqual(place);
    expect(isId('Thread', newId('Event'))).toBe(false);
    for (const text of [
      '',
      'thread_',
      'thread_8zzzzzzzzzzzzzzzzzzzzzzzzz',
      'THREAD_01h2xcejqtf2nbrexx3vqjhp41',
      'x'.repeat(99),
    ])
      expect(kindOfId(text)).toBeUndefined();
  });

  test('carry 74 bits that differ each time, behind the time', () => {
    const ids = Array.from({ length: 2_000 }, () => newId('Event'));
    expect(new Set(ids.map((id) => id.slice(-14))).size).toBe(ids.length);
    const times = ids.map((id) => id.slice(0, 'event_'.length + 9));
    expect([...times].sort()).toEqual(times);
  });
});

describe('cursors', () => {
  test('come back as the position they were made of', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2_147_483_647 }), (seq) => {
        const [threadId, eventId] = [newId('Thread'), newId('Event')];
        const position = parseTimelineCursor(timelineCursor(threadId, seq, eventId), threadId);
        expect(position).toEqual({ threadId, seq, tag: eventId.slice(-6) });
      }),
    );
  });

  test('of a scratchpad before and after a fail-over are of two logs', () => {
    const scratchpadId = newId('Scratchpad');
    const logOf = (tag: string): string | undefined =>
      readStreamCursor(padCursor(scratchpadId, { epoch: 'epoch', rev: 7, seq: 3, tag }))?.log;
    expect(logOf('one')).toBe(logOf('one'));
    expect(logOf('one')).not.toBe(logOf('other'));
  });

  test('of another thread, of another list and of nobody are refused', () => {
    const threadId = newId('Thread');
    const cursor = timelineCursor(threadId, 7, newId('Event'));
    expect(codeOf(() => parseTimelineCursor(cursor, newId('Thread')))).toBe('INVALID_CURSOR');
    expect(codeOf(() => parseKeysetCursor(cursor, 'threads', SHAPES))).toBe('INVALID_CURSOR');
    expect(codeOf(() => parseKeysetCursor(keysetCursor('users', [1, 'a']), 'threads', SHAPES))).toBe(
      'INVALID_CURSOR',
    );
    expect(codeOf(() => parseTimelineCursor(keysetCursor('users', [1, 'a']), threadId))).toBe(
      'INVALID_CURSOR',
    );
  });

  test('with a sort key that no list has are refused before they reach the database', () => {
    for (const parts of [
      ['1e5', newId('Thread')],
      ['-1', newId('Thread')],
      [1, 'part_\u0000'],
      [1, "x'; --"],
    ])
      expect(codeOf(() => parseKeysetCursor(keysetCursor('threads', parts), 'threads', SHAPES))).toBe(
        'INVALID_CURSOR',
      );
  });

  test('made of anything at all never throw anything else', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.base64String()), (text) => {
        expect(codeOf(() => parseTimelineCursor(text, newId('Thread')))).toBe('INVALID_CURSOR');
        expect(codeOf(() => parseKeysetCursor(text, 'threads', SHAPES))).toBe('INVALID_CURSOR');
      }),
    );
  });
});

describe('canonical JSON', () => {
  test('is the same text for the same value, whatever the order of its keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 8 }), (object) => {
        const reversed = Object.fromEntries(Object.entries(object).reverse());
        expect(canonicalJson(reversed as Json)).toBe(canonicalJson(object as Json));
        expect(JSON.parse(canonicalJson(object as Json))).toEqual(JSON.parse(JSON.stringify(object)));
      }),
    );
  });

  test('tells different inputs apart', () => {
    expect(inputHash({ a: 1 })).not.toBe(inputHash({ a: '1' }));
    expect(inputHash([1, [2]])).not.toBe(inputHash([1, 2]));
  });
});

describe('input', () => {
  test('is measured in UTF-8 bytes, exactly', () => {
    expect(requireBytes('é'.repeat(4), 'content', 8)).toHaveLength(4);
    expect(codeOf(() => requireBytes('é'.repeat(5), 'content', 8))).toBe('PAYLOAD_TOO_LARGE');
  });

  test('or in characters, of which an emoji is one', () => {
    expect(requireCharacters('😀'.repeat(128), 'label', 128)).toBeDefined();
    expect(codeOf(() => requireCharacters('😀'.repeat(129), 'label', 128))).toBe('PAYLOAD_TOO_LARGE');
    expect(codeOf(() => requireCharacters('  ', 'label', 128))).toBe('BAD_USER_INPUT');
  });

  test('has no number that no double holds: it would be stored as null', () => {
    for (const text of ['1e999', '-1e999', '{"a":[1e400]}'])
      expect(codeOf(() => requireJson(JSON.parse(text), 'data', 1_000))).toBe('BAD_USER_INPUT');
    expect(requireJson(Number.MAX_VALUE, 'data', 1_000)).toBe(Number.MAX_VALUE);
  });

  test('has no NUL, no lone surrogate, no key that reaches a prototype, no bottomless depth', () => {
    expect(codeOf(() => requireBytes('a\u0000', 'content', 8))).toBe('BAD_USER_INPUT');
    expect(codeOf(() => requireBytes('\ud800', 'content', 8))).toBe('BAD_USER_INPUT');
    const hostile: Json[] = [
      { a: ['\u0000'] },
      { '\udfff': 1 },
      JSON.parse('{"__proto__":1}'),
      { a: { constructor: 1 } },
      { prototype: null },
    ];
    for (const value of hostile)
      expect(codeOf(() => requireJson(value, 'data', 1_000))).toBe('BAD_USER_INPUT');
    const nested = (depth: number): Json => (depth === 0 ? 1 : [nested(depth - 1)]);
    expect(requireJson(nested(LIMITS.jsonDepth), 'data', 1_000)).toBeDefined();
    expect(codeOf(() => requireJson(nested(LIMITS.jsonDepth + 1), 'data', 1_000))).toBe('BAD_USER_INPUT');
  });

  test('knows an idempotency key of 1 to 128 characters', () => {
    expect(requireIdempotencyKey(null)).toBeNull();
    expect(requireIdempotencyKey('k'.repeat(128))).toHaveLength(128);
    for (const key of ['', 'k'.repeat(129), 'k\u0000'])
      expect(codeOf(() => requireIdempotencyKey(key))).toBe('BAD_USER_INPUT');
  });
});

test('whatever is not available says that it may be tried again', () => {
  expect(unavailable('Away.').facts).toEqual({ retryable: true });
  expect(unavailable('Away.', { retryAfterMs: 1_000 }).facts).toEqual({
    retryable: true,
    retryAfterMs: 1_000,
  });
});
