import type { Bench } from './support/bench.ts';
import { report } from './support/figures.ts';
import { startProduct } from './support/product.ts';
import { seedThread } from './support/seed.ts';
import { startStores } from './support/stores.ts';
import { createTenant, openRoom } from './support/world.ts';

/** What is slower than this is written to the database's log. */
const LOGGED_MS = 50;
/** The product's own limit of a statement (`storage/postgres.ts`), in milliseconds. */
const TIME_LIMIT_MS = 15_000;

/** A thread of a million events is deleted: how soon nobody sees it, and how long any statement takes until it is emptied. */
export const deletion: Bench = async ({ smoke }) => {
  const events = smoke ? 20_000 : 1_000_000;
  await using stores = await startStores({
    settings: { log_min_duration_statement: String(LOGGED_MS), log_destination: 'stderr' },
  });
  await using product = await startProduct(stores);
  const tenant = await createTenant(product, 'Deletion');
  const { threadId, scratchpadId, members } = await openRoom(product, tenant, 'room', 4);
  await seedThread(stores.client, {
    ownerId: tenant.userId,
    threadId,
    speakerIds: members.map(({ id }) => id),
    comings: [],
    events,
  });
  await stores.client.query('VACUUM ANALYZE');
  const logged = (await stores.log()).length;

  const startedAt = performance.now();
  await product.api.ask(
    tenant.apiKey,
    'mutation Delete($threadId: ID!) { deleteThread(input: { threadId: $threadId }) { deletedId } }',
    { threadId },
  );
  const { thread, scratchpad } = await product.api.ask<{ thread: unknown; scratchpad: unknown }>(
    tenant.apiKey,
    'query Gone($threadId: ID!, $scratchpadId: ID!) { thread(id: $threadId) { id } scratchpad(id: $scratchpadId) { id } }',
    { threadId, scratchpadId },
  );
  const invisibleMs = performance.now() - startedAt;
  for (let rest = events; rest > 0; ) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const { rows } = await stores.client.query<{ rest: number }>(
      'SELECT (EXISTS (SELECT 1 FROM events WHERE owner_id = $1 AND thread_id = $2))::int AS rest',
      [tenant.userId, threadId],
    );
    rest = rows[0]?.rest ?? 0;
  }
  const emptiedMs = performance.now() - startedAt;
  const durations = [...(await stores.log()).slice(logged).matchAll(/duration: ([\d.]+) ms/g)].map(([, ms]) =>
    Number(ms),
  );
  return [
    report({
      what: `a thread of ${events} events, deleted: ms until it is invisible`,
      figure: invisibleMs,
      target: { atMost: 1_000 },
      detail: thread === null && scratchpad === null ? 'thread and scratchpad' : 'STILL THERE',
    }),
    report({
      what: 'the longest statement until it is emptied, ms',
      figure: Math.max(0, ...durations),
      target: { atMost: TIME_LIMIT_MS },
      detail: `emptied after ${(emptiedMs / 1_000).toFixed(1)} s`,
    }),
    thread === null && scratchpad === null,
  ].every(Boolean);
};
