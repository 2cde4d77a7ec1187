import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { InboxDelivery } from '../../../src/inbox/deliveries.ts';
import type { MessageDelivery } from '../../../src/inbox/handOut.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createRandom } from '../../support/random.ts';
import { until } from '../../support/until.ts';
import { AGENTS, codeOf, createInboxWorld, cursorOf, type InboxWorld, lapse } from './world.ts';

/** INBOX_MESSAGES=… for longer ones. */
const MESSAGES = Number(process.env.INBOX_MESSAGES ?? 120);
const random = createRandom('inboxes under load');
const drawn = (count: number): number => Math.floor(random() * count);

let db: TestDatabase;
let apis: ReturnType<typeof createApi>[];
beforeAll(async () => {
  db = await createTestDatabase();
  apis = [createApi(db.database), createApi(db.database)];
});
afterAll(async () => {
  for (const api of apis) await api.close();
  await db.drop();
});

type Taken = Pick<MessageDelivery, 'deliveryId' | 'threadId' | 'events'>;

/** What one agent has in hand, wherever it was taken, and what was wrong with it. */
class Hands {
  readonly wrong: string[] = [];
  readonly delivered = new Map<string, Set<number>>();
  readonly #held = new Map<string, string>();
  readonly #acknowledged = new Map<string, number>();
  readonly #isConcurrent: boolean;
  /** Its thread in which it comes and goes: what it had in hand there is over when it goes. */
  readonly #restless: string;

  constructor(isConcurrent: boolean, restless: string) {
    this.#isConcurrent = isConcurrent;
    this.#restless = restless;
  }

  took({ threadId, deliveryId, events }: Taken): void {
    const first = events[0]?.seq ?? 0;
    if (first <= (this.#acknowledged.get(threadId) ?? 0))
      this.wrong.push(`${first} again after its acknowledgement`);
    const others = [...this.#held.keys()].filter((id) => id !== this.#restless);
    if (threadId !== this.#restless) {
      if (this.#held.has(threadId)) this.wrong.push(`${first} beside another of its thread`);
      if (!this.#isConcurrent && others.length > 0) this.wrong.push(`${first} beside another`);
    }
    this.#held.set(threadId, deliveryId);
    const seen = this.delivered.get(threadId) ?? new Set();
    for (const { seq } of events) seen.add(seq);
    this.delivered.set(threadId, seen);
  }

  /** Before anybody else can be given the next. */
  lets({ threadId, deliveryId }: Taken): void {
    if (this.#held.get(threadId) === deliveryId) this.#held.delete(threadId);
  }

  acknowledged({ threadId, events }: Taken): void {
    const last = events.at(-1)?.seq ?? 0;
    this.#acknowledged.set(threadId, Math.max(last, this.#acknowledged.get(threadId) ?? 0));
  }
}

const work = async (world: InboxWorld, agent: string, hands: Hands, taken: Taken): Promise<void> => {
  const { services } = apis[drawn(2)] ?? {};
  if (services === undefined) throw new Error('There is no process.');
  const { threadId, deliveryId, events } = taken;
  const as = world.ids[agent] ?? '';
  hands.took(taken);
  await delay(drawn(4));
  hands.lets(taken);
  if (drawn(12) === 0) {
    await lapse(db.database, deliveryId);
    return;
  }
  const last = events.at(-1);
  const how = drawn(3);
  const done =
    how === 0
      ? services.timeline.post(world.owner, { threadId, as, content: 'done', deliveryId })
      : how === 1 || last === undefined
        ? services.timeline.acknowledge(world.owner, { threadId, as, deliveryId })
        : services.timeline.acknowledge(world.owner, { threadId, as, deliveryId, upTo: cursorOf(last) });
  const code = await codeOf(done);
  if (code === 'OK') hands.acknowledged(taken);
  // Only where it is removed, or was meanwhile, may it be refused.
  else if (threadId !== world.threadIds[2]) hands.wrong.push(`${code} in a thread where nothing happened`);
};

test('under load on two processes: in order, one in hand, nothing lost, nothing twice', async () => {
  const [first, second] = apis;
  if (first === undefined || second === undefined) throw new Error('There is no process.');
  const world = await createInboxWorld(first.services);
  const { owner, ids, threadIds, members } = world;
  const restless = threadIds[2] ?? '';
  const stop = new AbortController();
  const hands = Object.fromEntries(AGENTS.map((agent) => [agent, new Hands(agent !== 'solo', restless)]));
  const consumers: Promise<void>[] = [];

  for (const agent of AGENTS) {
    const mine = hands[agent];
    if (mine === undefined) continue;
    const as = ids[agent] ?? '';
    const { secret } = await first.services.credentials.createParticipantToken(owner, { participantId: as });
    // A stream that breaks now and then, on either process.
    const stream = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        const { services, authentication } = apis[drawn(2)] ?? first;
        const session = await authentication.openSession({ authorization: `Bearer ${secret}` });
        const gone = new AbortController();
        const onStop = (): void => gone.abort();
        stop.signal.addEventListener('abort', onStop, { once: true });
        const following = await services.followInbox(session, { batch: 1 + drawn(3) }, gone.signal);
        let left = 5 + drawn(20);
        const working: Promise<void>[] = [];
        for await (const delivery of following) {
          if (delivery.channel === 'MESSAGE') working.push(work(world, agent, mine, asTaken(delivery)));
          left -= 1;
          if (left === 0 || stop.signal.aborted) break;
        }
        await Promise.all(working);
        stop.signal.removeEventListener('abort', onStop);
        session.close();
      }
    };
    const pull = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        const { services } = apis[drawn(2)] ?? first;
        const input = { as, max: 1 + drawn(3), batch: 1 + drawn(2), waitSeconds: 1 };
        const { given } = await services.inbox.take(owner, input, stop.signal);
        const taken = given.filter((one): one is MessageDelivery => one.channel === 'MESSAGE');
        await Promise.all(taken.map((one) => work(world, agent, mine, one)));
      }
    };
    consumers.push(stream(), pull(), pull());
  }

  // What was said, and is to be delivered to whom; and an agent that comes and goes in one thread.
  const said: {
    readonly threadId: string;
    readonly seq: number;
    readonly id: string;
    isRetracted: boolean;
  }[] = [];
  const speak = async (): Promise<void> => {
    for (let message = 0; message < MESSAGES / 2; message += 1) {
      const at = drawn(threadIds.length);
      const threadId = threadIds[at] ?? '';
      const people = (members[at] ?? []).filter((handle) => handle === 'ann' || handle === 'bob');
      const who = people[drawn(people.length)] ?? '';
      const { event } = await second.services.timeline.post(owner, {
        threadId,
        as: ids[who] ?? '',
        content: 'Now.',
      });
      const one = { threadId, seq: event.seq, id: event.id, isRetracted: false };
      said.push(one);
      if (drawn(10) === 0) {
        one.isRetracted = true;
        await second.services.timeline.retract(owner, { messageId: one.id, as: ids[who] ?? '' });
      }
    }
  };
  const comeAndGo = async (): Promise<void> => {
    for (let time = 0; time < 6; time += 1)
      for (const to of ['REMOVED', 'ACTIVE'] as const) {
        await first.services.threads.changeState(
          owner,
          { threadId: restless, participantId: ids.bot ?? '' },
          to,
        );
        await delay(drawn(10));
      }
  };
  await Promise.all([speak(), speak(), comeAndGo()]);
  const pendingIn = async (agent: string): Promise<number> => {
    const looks = first.services.createLoaders(owner).look;
    const counts = await Promise.all(
      threadIds.map(async (threadId) => {
        const look = await looks.load({ threadId, viewerId: ids[agent] ?? '' });
        return look === null ? 0 : (await first.services.inbox.pending(look, 200)).length;
      }),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  };
  for (const agent of AGENTS) await until(async () => (await pendingIn(agent)) === 0, 50);
  stop.abort();
  await Promise.all(consumers);

  for (const agent of AGENTS) {
    const mine = hands[agent];
    expect([agent, mine?.wrong]).toEqual([agent, []]);
    // In the restless thread some of it was not for it to see.
    const missed = said.filter(
      ({ threadId, seq, isRetracted }, _index) =>
        !isRetracted &&
        (threadId !== restless || agent !== 'bot') &&
        members[threadIds.indexOf(threadId)]?.includes(agent) === true &&
        mine?.delivered.get(threadId)?.has(seq) !== true,
    );
    expect([agent, missed]).toEqual([agent, []]);
  }
}, 60_000);

const asTaken = ({ deliveryId, threadId, events }: InboxDelivery): Taken => ({
  deliveryId: deliveryId ?? '',
  threadId: threadId ?? '',
  events,
});
