import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { startApp } from './app.ts';
import { type Watcher, watchSocket, watchStream } from './watchers.ts';
import { countRows, createWorld, type World } from './world.ts';

export interface Bystanders {
  readonly server: Awaited<ReturnType<typeof startApp>>;
  readonly world: World;
  /** What was written so far was meant to be. */
  expectWritten(): Promise<void>;
}

/**
 * A production server on which somebody else follows a thread over a socket and over a stream. After each test of the
 * file nothing has been written, and the others have received what came, without a gap.
 */
export const amongBystanders = (): Bystanders => {
  let server: Awaited<ReturnType<typeof startApp>>;
  let world: World;
  let watchers: Watcher[] = [];
  let before: Record<string, number>;
  beforeAll(async () => {
    server = await startApp({ NODE_ENV: 'production' });
    world = await createWorld(server.services, 'hostile');
    const { token } = world.people.ada;
    watchers = [
      await watchSocket(server, token, world.threadId),
      await watchStream(server, { token }, world.threadId),
    ];
  });
  beforeEach(async () => {
    before = await countRows(server.services);
  });
  afterEach(async () => {
    expect(await countRows(server.services)).toEqual(before);
    const { event } = await server.services.timeline.post(world.owner, {
      threadId: world.threadId,
      as: world.people.scout.id,
      content: 'Is all well?',
    });
    for (const { reached, events, reason } of watchers) {
      await reached(event.seq);
      const first = events[0]?.seq ?? 0;
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => first + index));
      expect(reason()).toBeNull();
    }
  });
  afterAll(async () => {
    for (const { stop } of watchers) stop();
    await server.close();
  });
  return {
    get server() {
      return server;
    },
    get world() {
      return world;
    },
    async expectWritten() {
      before = await countRows(server.services);
    },
  };
};
