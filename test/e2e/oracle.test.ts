import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, inject, test } from 'vitest';
import { startProcess } from '../support/app.ts';
import { createTestDatabase } from '../support/database.ts';
import { checkHistory } from '../support/oracle/check.ts';
import { histories } from '../support/oracle/commands.ts';
import type { Pairs } from '../support/oracle/pairs.ts';
import { startTcpProxy } from '../support/tcpProxy.ts';

/** Pairs of event and viewer to be compared, for each surface. */
const WANTED = Number(process.env.ORACLE_PAIRS ?? 20_000);
const SEED = Number(process.env.ORACLE_SEED ?? randomInt(2 ** 31));
/** What an earlier run had compared when it was stopped, as it told it: this one goes on from there, with a seed of its own. */
const BEFORE = JSON.parse(process.env.ORACLE_BEFORE ?? '{}') as Readonly<Record<string, number>>;
/** How often a long run says how far it has got. */
const TELL_EVERY_MS = 60_000;
const ROOMY = { MAX_SUBSCRIPTIONS_PER_SOCKET: '10000', MAX_SOCKETS_PER_CREDENTIAL: '10000' };

describe.each([
  { zone: 'UTC', processes: 'UTC', wanted: WANTED },
  // Days begin and clocks change elsewhere: nothing is ordered or decided by that.
  { zone: 'America/New_York', processes: 'Asia/Kolkata', wanted: WANTED / 20 },
])('with a database in $zone and processes in $processes', ({ zone, processes, wanted }) => {
  test('every surface shows each viewer what the rules say', { timeout: 120_000 + wanted * 60 }, async () => {
    await using testDatabase = await createTestDatabase();
    await testDatabase.database.script(
      `ALTER DATABASE ${new URL(testDatabase.url).pathname.slice(1)} SET timezone TO '${zone}'`,
    );
    const stores = { databaseUrl: testDatabase.url, redisUrl: inject('redisUrl') };
    await using first = await startProcess(stores, { ...ROOMY, TZ: processes });
    await using second = await startProcess(stores, { ...ROOMY, TZ: processes });
    const servers = [first, second];
    let turn = 0;
    const next = () => servers[turn++ % 2] ?? first;
    await using proxy = await startTcpProxy(() => ({
      host: '127.0.0.1',
      port: Number(new URL(next().url).port),
    }));
    const place = () => ({
      url: `http://127.0.0.1:${proxy.port}/graphql`,
      socketUrl: `ws://127.0.0.1:${proxy.port}/graphql`,
    });
    const disturb = (round: number): void => {
      if (round % 7 === 0) proxy.cut(() => turn++ % 3 === 0);
    };

    const pairs: Pairs = new Map(Object.entries(BEFORE));
    process.stdout.write(`ORACLE_SEED=${SEED} ORACLE_PAIRS=${wanted}\n`);
    let round = 0;
    let told = Date.now();
    const isEnough = () => pairs.size > 0 && Math.min(...pairs.values()) >= wanted;
    await fc.assert(
      // Two at a time, of two tenants: neither ever waits for the other, and the machine for none.
      fc.asyncProperty(histories, histories, async (...both) => {
        if (isEnough()) return;
        const options = { server: next, place, disturb, pairs, wanted };
        await Promise.all(both.map((commands) => checkHistory(commands, { ...options, round: round++ })));
        if (Date.now() < told + TELL_EVERY_MS) return;
        told = Date.now();
        process.stdout.write(`${JSON.stringify(Object.fromEntries(pairs))}\n`);
      }),
      { seed: SEED, numRuns: Math.ceil(wanted / 20) + 5, endOnFailure: process.env.ORACLE_SHRINK !== 'true' },
    );
    process.stdout.write(`${JSON.stringify(Object.fromEntries(pairs))}\n`);
    expect(isEnough()).toBe(true);
  });
});
