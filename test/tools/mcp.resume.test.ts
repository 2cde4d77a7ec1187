import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { log } from '../../src/shared/log.ts';
import { createEventLog, KEPT, PRIMING } from '../../src/tools/mcp/eventLog.ts';
import { resumeAnswers } from '../../src/tools/mcp/resuming.ts';
import { sessionKey } from '../../src/tools/mcp/sessions.ts';
import { heard, listen, plainMcp } from '../support/mcp.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';
import { until } from '../support/until.ts';

let scene: Scene;
let thread = '';
beforeAll(async () => {
  scene = await toolScene();
  thread = await scene.open('ada', 'scout');
});
afterAll(() => scene.server.close());

const open = async () => {
  const client = plainMcp(scene.server, scene.tokenOf('scout'), thread);
  await client.open();
  return client;
};
const sessionOf = (client: { readonly sessionId: string | null }) => ({
  ownerId: scene.tenant.userId,
  id: client.sessionId ?? '',
});
/** A call whose stream is left as soon as it began; the id of its first event. */
const lostCall = async (sessionId: string | null, name: string, given: object): Promise<string> => {
  const params = { name, arguments: given };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'lost', method: 'tools/call', params });
  const stream = await listen(scene.server, scene.tokenOf('scout'), sessionId, thread, {
    method: 'POST',
    body,
  });
  await until(() => stream.events.length > 0);
  stream.stop();
  await stream.over;
  return stream.events[0]?.id ?? '';
};
const resume = (sessionId: string | null, lastEventId: string) =>
  listen(scene.server, scene.tokenOf('scout'), sessionId, thread, { lastEventId });

describe('what is kept of a session', () => {
  test('is bounded by bytes too, and what fell out is said to whoever comes back for it', async () => {
    const { redis } = scene.server.services;
    const client = await open();
    const key = sessionKey(sessionOf(client), 'events');
    const first = await lostCall(client.sessionId, 'peek_pending', {});
    const kept = async () => {
      const events = await redis.xrange(key, '-', '+');
      return {
        count: events.length,
        bytes: events.reduce((sum, [, fields]) => sum + Buffer.byteLength(fields[3] ?? ''), 0),
      };
    };
    const events = createEventLog(redis, sessionOf(client), log);
    for (let index = 0; index < 40; index += 1) {
      await events.add('other', { jsonrpc: '2.0', id: index, result: { text: 'é'.repeat(20_000) } });
      expect((await kept()).bytes).toBeLessThanOrEqual(KEPT.bytes);
    }
    expect((await kept()).bytes).toBeGreaterThan(KEPT.bytes / 2);
    expect(await resume(client.sessionId, first)).toMatchObject({ status: 422, code: 'INVALID_CURSOR' });
    const last = await lostCall(client.sessionId, 'peek_pending', {});
    const back = await resume(client.sessionId, last);
    await back.over;
    expect(back.events).toMatchObject([{ data: expect.stringContaining('"id":"lost"') }]);
  });

  test('is bounded by the number of messages', async () => {
    const { redis } = scene.server.services;
    const client = await open();
    const session = sessionOf(client);
    const events = createEventLog(redis, session, log);
    const ids = [];
    for (let index = 0; index < KEPT.messages + 40; index += 1)
      ids.push(await events.add(`s${index}`, { jsonrpc: '2.0', method: 'notifications/x' }));
    expect(await redis.xlen(sessionKey(session, 'events'))).toBe(KEPT.messages);
    await expect(events.locate(ids[0] ?? '')).rejects.toMatchObject({ code: 'INVALID_CURSOR' });
    expect(await events.locate(ids.at(-1) ?? '')).toMatchObject({ streamId: `s${KEPT.messages + 39}` });
    // What is larger than all that is kept is not kept at all, and takes nothing else with it that has room.
    expect(await events.add('huge', { jsonrpc: '2.0', method: 'x'.repeat(KEPT.bytes + 1) })).toBe('');
    expect(await redis.xlen(sessionKey(session, 'events'))).toBe(KEPT.messages);
  });

  test('lets the stream of notifications go on from the last one, however much fell out since', async () => {
    const client = await open();
    const session = sessionOf(client);
    const events = createEventLog(scene.server.services.redis, session, log);
    const noted = [await events.add('_GET_stream', PRIMING), await events.add('_GET_stream', PRIMING)];
    for (let index = 0; index < KEPT.messages; index += 1) await events.add('other', PRIMING);
    await expect(events.locate(noted[0] ?? '')).rejects.toMatchObject({ code: 'INVALID_CURSOR' });
    const stream = await resume(client.sessionId, noted[1] ?? '');
    expect(stream.status).toBe(200);
    stream.stop();
    await stream.over;
  });
});

describe('a resume', () => {
  test('from what this session never gave out is refused at once, in every form', async () => {
    const client = await open();
    const other = await open();
    const foreign = await lostCall(other.sessionId, 'peek_pending', {});
    const own = await lostCall(client.sessionId, 'peek_pending', {});
    const [stream = '', position = ''] = own.split('.');
    const wrong = [
      foreign,
      `${stream}.1-1`,
      `${stream}.99999999999999-0`,
      `${stream}.18446744073709551615-18446744073709551615`,
      `${stream}.99999999999999999999-0`,
      `_GET_stream.${position}`,
      `other.${position}`,
      'nothing',
      'x'.repeat(2_000),
      '0',
    ];
    for (const id of wrong) {
      const asked = performance.now();
      const refused = await resume(client.sessionId, id);
      expect([id, refused.status, refused.code]).toEqual([id, 422, 'INVALID_CURSOR']);
      expect(performance.now() - asked).toBeLessThan(1_000);
    }
    expect((await resume('x'.repeat(43), own)).status).toBe(404);
  });

  test('begins at once while the call is under way, for as many as come, and ends with the answer', async () => {
    const client = await open();
    const lost = await lostCall(client.sessionId, 'next_message', { wait_seconds: 20 });
    const both = [await resume(client.sessionId, lost), await resume(client.sessionId, lost)];
    for (const { status, events } of both) expect([status, events]).toEqual([200, []]);
    await scene.post(thread, 'ada', 'at last');
    await Promise.all(both.map(({ over }) => over));
    for (const back of both) expect(heard(back, 'at last')).toBe(true);
    // From the answer itself there is nothing to wait for.
    const again = await resume(client.sessionId, both[0]?.events.at(-1)?.id ?? '');
    await again.over;
    expect(again.events).toEqual([]);
    await client.call('acknowledge_message');
  });

  test('is told, of each request, that whoever worked on it is gone', async () => {
    const client = await open();
    const session = sessionOf(client);
    const { redis } = scene.server.services;
    const events = createEventLog(redis, session, log, ['done', 7, '7']);
    await events.add('calls', PRIMING);
    const from = await events.add('calls', { jsonrpc: '2.0', id: 'done', result: {} });
    const place = await events.locate(from);
    const text = await resumeAnswers(events, place, new AbortController().signal, 300).text();
    const told = text.split('\n\n').flatMap((event) => /^data: (.+)$/m.exec(event)?.[1] ?? []);
    expect(told.map((data) => JSON.parse(data))).toMatchObject([
      { id: 7, error: { code: -32000, data: { code: 'UNAVAILABLE' } } },
      { id: '7', error: { code: -32000 } },
    ]);
  });

  test('is over when the session is deleted while its call is under way, and nothing is left of it', async () => {
    const client = await open();
    const lost = await lostCall(client.sessionId, 'next_message', { wait_seconds: 20 });
    const back = await resume(client.sessionId, lost);
    expect((await client.send(null, { method: 'DELETE' })).status).toBe(204);
    await back.over;
    await scene.post(thread, 'ada', 'too late');
    const after = await open();
    await until(async () =>
      (await after.call('next_message')).text.includes('You hold this message already'),
    );
    await after.call('acknowledge_message');
    expect(await scene.server.services.redis.keys(`*${client.sessionId}*`)).toEqual([]);
  });
});

test('a message that cannot be kept is sent all the same', async () => {
  const away = new Redis({ lazyConnect: true, enableOfflineQueue: false });
  const events = createEventLog(away, { ownerId: scene.tenant.userId, id: 'x'.repeat(43) }, log);
  expect(await events.add('s', { jsonrpc: '2.0', id: 1, result: {} })).toBe('');
  away.disconnect();
});
