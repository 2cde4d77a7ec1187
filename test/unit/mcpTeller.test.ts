import { expect, test } from 'vitest';
import { log } from '../../src/shared/log.ts';
import { createTeller } from '../../src/tools/mcp/notifying.ts';
import { until } from '../support/until.ts';

test('what could not be told is told again, with what came meanwhile, until it is over', async () => {
  const told: string[] = [];
  let failures = 2;
  const over = new AbortController();
  const teller = createTeller(
    async (position) => {
      if (failures-- > 0) throw new Error('away');
      told.push(position);
    },
    log,
    over.signal,
  );
  teller.tell('one');
  await until(() => failures < 2);
  teller.tell('two');
  await teller.done();
  expect(told).toEqual(['two']);
  teller.tell('three');
  await teller.done();
  expect(told).toEqual(['two', 'three']);
  failures = Number.POSITIVE_INFINITY;
  teller.tell('four');
  over.abort();
  await teller.done();
  expect(told).toEqual(['two', 'three']);
});
