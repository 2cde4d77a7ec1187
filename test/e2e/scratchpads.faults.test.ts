import { describe, expect, test } from 'vitest';
import type { Server } from '../support/app.ts';
import { startCluster } from '../support/cluster.ts';
import { loadPad } from '../support/padLoad.ts';
import { startProxy } from '../support/proxy.ts';
import { LOSES_NOTHING } from '../support/redis.ts';

// Writers who send again, with the key they have, whatever was not answered. The pad does it once, whatever broke.

const KILLS = 4;
const CUTS = 10;

describe('an entry stands once, for every writer and every follower, when', () => {
  test('Redis is killed again and again, and comes back with its append-only file', async () => {
    await using cluster = await startCluster(LOSES_NOTHING);
    await loadPad(cluster, { writers: 16, each: 60, hasKeys: true }, async ({ more, resume }) => {
      for (let kill = 1; kill <= KILLS; kill += 1) {
        await more(50);
        await cluster.redis.kill9();
        await cluster.redis.restart();
        await more(50);
        if (kill % 2 === 0) await resume();
      }
    });
  });

  test('the answers of Redis get lost, and the links with them', async () => {
    await using cluster = await startCluster({ layWire: startProxy });
    let lost = 0;
    await loadPad(cluster, { writers: 16, each: 60, hasKeys: true }, async ({ more, resume }) => {
      for (let cut = 1; cut <= CUTS; cut += 1) {
        await more(60);
        const wire = cluster.wires[cut % 2];
        await new Promise<void>((resolve) => {
          wire?.swallow((answer) => {
            // Of a write that was done.
            if (!answer.includes('DONE')) return;
            lost += 1;
            resolve();
          });
        });
        wire?.cut();
        if (cut % 4 === 0) await resume();
      }
    });
    expect(lost).toBeGreaterThanOrEqual(CUTS);
  });

  test('every command arrives twice', async () => {
    await using cluster = await startCluster({ layWire: (path) => startProxy(path, { saysTwice: true }) });
    const { server } = cluster;
    const graphql: Server['graphql'] = (...operation) => server().graphql(...operation);
    await loadPad({ server, graphql }, { writers: 16, each: 60, hasKeys: false });
  });
});
