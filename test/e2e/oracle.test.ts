import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { startApp, startProcess } from '../support/app.ts';
import { checkHistory } from '../support/oracle/check.ts';
import { histories } from '../support/oracle/commands.ts';
import type { Pairs } from '../support/oracle/pairs.ts';
import { startTcpProxy } from '../support/tcpProxy.ts';

/** Pairs of event and viewer to be compared, for each surface. */
const WANTED = Number(process.env.ORACLE_PAIRS ?? 1_500);
const SEED = Number(process.env.ORACLE_SEED ?? randomInt(2 ** 31));
const ROOMY = { MAX_SUBSCRIPTIONS_PER_SOCKET: '10000', MAX_SOCKETS_PER_CREDENTIAL: '10000' };

test('every surface shows each viewer what the rules say', { timeout: 60_000 + WANTED * 60 }, async () => {
  await using app = await startApp();
  await using first = await startProcess(app.stores, ROOMY);
  await using second = await startProcess(app.stores, { ...ROOMY, TZ: 'Asia/Kolkata' });
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

  const pairs: Pairs = new Map();
  process.stdout.write(`ORACLE_SEED=${SEED} ORACLE_PAIRS=${WANTED}\n`);
  let round = 0;
  const isEnough = () => pairs.size > 0 && Math.min(...pairs.values()) >= WANTED;
  await fc.assert(
    fc.asyncProperty(histories, async (commands) => {
      if (isEnough()) return;
      await checkHistory(commands, { server: next, place, disturb, pairs, round: round++ });
    }),
    { seed: SEED, numRuns: WANTED, endOnFailure: process.env.ORACLE_SHRINK !== 'true' },
  );
  process.stdout.write(`${JSON.stringify(Object.fromEntries(pairs))}\n`);
  expect(isEnough()).toBe(true);
});
