import type { World } from './world.ts';

/** As if the lease had run out, of this delivery or of whichever is in hand: time is not waited for. */
export const letLapse = async (
  world: World,
  agent: string,
  thread: string,
  deliveryId: string | null,
): Promise<void> => {
  const span = { from: performance.now(), to: 0 };
  const rows = await world.processes.db.database.query<{ delivery_id: string }>(
    {
      name: 'test_time_passes',
      text: `UPDATE inbox_threads SET leased_until = clock_timestamp() - interval '1 second'
          WHERE owner_id = $1 AND thread_id = $2 AND participant_id = $3 AND delivery_id IS NOT NULL
            AND ($4::text IS NULL OR delivery_id = $4) RETURNING delivery_id`,
    },
    [world.tenant.userId, world.threadId(thread), world.idOf(agent), deliveryId],
  );
  span.to = performance.now();
  world.saw(agent, thread, span, {
    kind: 'LAPSED',
    deliveryId,
    found: rows[0]?.delivery_id ?? null,
  });
};
