import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { KEY, openTestDoors, post, type TestDoors } from '../support/doors.ts';
import { openEventStream } from '../support/eventStream.ts';
import { openRawSocket } from '../support/rawSocket.ts';
import { until } from '../support/until.ts';

describe('a shutdown', () => {
  let doors: TestDoors;
  beforeEach(async () => {
    doors = await openTestDoors({ limits: { drain: { over: 200, sockets: 600, all: 1_000 } } });
  });
  afterEach(() => doors.close());

  const drain = (): Promise<void> =>
    doors.doors.drain(async () => {
      doors.numbers.end('SERVER_DRAINING');
    });

  test('tells readers, closes sockets with 1012, and is done', async () => {
    const sockets = await Promise.all(Array.from({ length: 10 }, () => openRawSocket(doors.wsUrl)));
    await Promise.all(sockets.map((socket) => socket.init()));
    for (const socket of sockets.slice(5)) {
      socket.subscribe('s', 'subscription { live { ended cursor } }');
      await socket.nextOf('s', 'next');
    }
    const events = await openEventStream(`${doors.url}?query=subscription{live{ended}}`, { headers: KEY });
    await events.next();
    await drain();
    for (const socket of sockets) expect(await socket.closed).toMatchObject({ code: 1012 });
    for (const socket of sockets.slice(5))
      expect(socket.messages.slice(-2)).toMatchObject([
        { type: 'next', payload: { data: { live: { ended: 'SERVER_DRAINING' } } } },
        { type: 'complete' },
      ]);
    expect(await events.rest()).toMatchObject([
      { event: 'next', data: { data: { live: { ended: 'SERVER_DRAINING' } } } },
      { event: 'complete' },
    ]);
    await until(async () => (await doors.gauge('threadpad_sockets')) === 0);
    await expect(fetch(doors.url)).rejects.toThrow();
  });

  test('lets operations in flight finish, over HTTP and WebSocket', async () => {
    const waiting = [once(doors.gates, 'waiting a'), once(doors.gates, 'waiting b')];
    const posted = post(doors.url, { query: '{ wait(name: "a") }' });
    const socket = await openRawSocket(doors.wsUrl);
    await socket.init();
    socket.subscribe('b', '{ wait(name: "b") }');
    await Promise.all(waiting);
    const drained = drain();
    socket.subscribe('late', '{ ping }');
    expect(await socket.nextOf('late')).toMatchObject({
      type: 'error',
      payload: [{ extensions: { code: 'UNAVAILABLE' } }],
    });
    doors.gates.emit('a');
    doors.gates.emit('b');
    expect((await posted).body.data).toEqual({ wait: 'a' });
    expect(await socket.nextOf('b')).toMatchObject({ payload: { data: { wait: 'b' } } });
    expect((await socket.nextOf('b')).type).toBe('complete');
    expect((await socket.closed).code).toBe(1012);
    await drained;
  });

  test('does not wait for what hangs', async () => {
    const waiting = [once(doors.gates, 'waiting a'), once(doors.gates, 'waiting b')];
    const posted = expect(post(doors.url, { query: '{ wait(name: "a") }' })).rejects.toThrow();
    const socket = await openRawSocket(doors.wsUrl);
    await socket.init();
    socket.subscribe('b', '{ wait(name: "b") }');
    await Promise.all(waiting);
    const started = performance.now();
    await drain();
    expect(performance.now() - started).toBeLessThan(2_000);
    await posted;
    expect((await socket.closed).code).toBe(1012);
  });

  test('refuses what comes on an open connection with 503, and says not ready', async () => {
    const waiting = once(doors.gates, 'waiting a');
    const body = JSON.stringify({ query: '{ wait(name: "a") }' });
    const requestOf = (line: string, content = ''): string =>
      [
        line,
        'Host: localhost',
        'Authorization: Bearer key-1',
        'Content-Type: application/json',
        `Content-Length: ${content.length}`,
        '',
        content,
      ].join('\r\n');
    const connection = connect(doors.port, '127.0.0.1');
    let text = '';
    connection.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    const ended = once(connection, 'close');
    connection.write(requestOf('POST /graphql HTTP/1.1', body));
    await waiting;
    const silent = await openRawSocket(doors.wsUrl);
    const drained = drain();
    expect((await silent.closed).code).toBe(1012);
    connection.write(requestOf('GET /readyz HTTP/1.1') + requestOf('POST /graphql HTTP/1.1', body));
    doors.gates.emit('a');
    await ended;
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 503', 'HTTP/1.1 503']);
    expect(text).toContain('is shutting down');
    expect(text).toContain('"code":"UNAVAILABLE"');
    await drained;
  });
});
