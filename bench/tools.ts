import type { Member } from '../scripts/replay/members.ts';
import { GRANT } from '../src/scratchpads/access.ts';
import { OF_THREADS } from '../src/scratchpads/rows.ts';
import { BEGIN } from '../src/tools/calls.ts';
import type { Bench } from './support/bench.ts';
import { startChild } from './support/child.ts';
import { alternate, median, ratio, report, round } from './support/figures.ts';
import { startProduct } from './support/product.ts';
import { rate } from './support/rate.ts';
import { startStores } from './support/stores.ts';
import { createTenant, openRoom, textOf } from './support/world.ts';

const CLIENTS = 32;
const EXECUTE =
  'mutation Execute($input: ExecuteToolInput!) { executeTool(input: $input) { output isError } }';

/**
 * `executeTool` with `append_scratchpad`, 32 clients in 32 threads, over GraphQL and over REST, beside a bare handler that
 * makes the same calls of the stores.
 */
export const tools: Bench = async ({ smoke }) => {
  const rounds = smoke ? 1 : 5;
  const seconds = smoke ? 0.3 : 2;
  await using stores = await startStores();
  await using product = await startProduct(stores);
  await using bare = await startChild({
    args: ['--import', 'tsx', 'bench/bare/tools.ts'],
    env: {
      DATABASE_URL: stores.databaseUrl,
      REDIS_PATH: stores.redis.path,
      GRANT: GRANT.text,
      PADS: OF_THREADS.text,
      BEGIN: BEGIN.text,
    },
    says: /ready on (\d+)/,
  });
  const tenant = await createTenant(product, 'Tools');
  const seats: { threadId: string; scratchpadId: string; worker: Member }[] = [];
  for (let index = 0; index < CLIENTS; index++) {
    const { threadId, scratchpadId, members } = await openRoom(product, tenant, `room${index}`, 2);
    const [worker] = members;
    if (worker === undefined) throw new Error('Nobody works.');
    seats.push({ threadId, scratchpadId, worker });
  }
  const note = textOf(270);
  const call = { name: 'append_scratchpad', arguments: { note } };
  const tokens = seats.map(({ worker }) => worker.token);
  const side = <Name extends string>(name: Name, port: number, path: string, bodies: readonly object[]) => ({
    name,
    measure: async () => {
      // A scratchpad is bounded: each measurement begins with empty ones.
      for (const { scratchpadId } of seats)
        await product.api.ask(
          tenant.apiKey,
          'mutation Clear($input: ClearScratchpadInput!) { clearScratchpad(input: $input) { scratchpad { id } } }',
          { input: { scratchpadId } },
        );
      return rate(
        port,
        seats.map(() => path),
        bodies.map((body) => JSON.stringify(body)),
        tokens,
        seconds,
      );
    },
  });
  const sides = [
    side(
      'graphql',
      product.port,
      '/graphql',
      seats.map(({ threadId }) => ({ query: EXECUTE, variables: { input: { threadId, ...call } } })),
    ),
    side(
      'rest',
      product.port,
      '/v1/tools/execute',
      seats.map(({ threadId }) => ({ thread_id: threadId, ...call })),
    ),
    side(
      'same',
      Number(bare.ready),
      '/append',
      seats.map(({ threadId, worker }) => ({
        ownerId: tenant.userId,
        threadId,
        participantId: worker.id,
        content: note,
      })),
    ),
  ];
  await alternate(sides, 1);
  const figures = await alternate(sides, rounds);
  let met = true;
  for (const door of ['graphql', 'rest'] as const) {
    const reached = report({
      what: `${door}: executeTool(append_scratchpad) to the same store calls behind bare HTTP`,
      figure: ratio(figures[door], figures.same),
      target: { atLeast: 0.5 },
      detail: `${round(median(figures[door]))}/s to ${round(median(figures.same))}/s`,
    });
    met = reached && met;
  }
  return met;
};
