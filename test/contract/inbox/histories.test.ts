import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { MessageDelivery } from '../../../src/inbox/handOut.ts';
import { newId } from '../../../src/shared/ids.ts';
import { createApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { expectedOf, isActive, type ModelThread, newThread, pendingOf } from './model.ts';
import { AGENTS, codeOf, createInboxWorld, cursorOf, lapse, PEOPLE } from './world.ts';

/** INBOX_RUNS=… for longer ones. */
const RUNS = Number(process.env.INBOX_RUNS ?? 25);
const NEVER = new AbortController().signal;

let db: TestDatabase;
let apis: ReturnType<typeof createApi>[];
beforeAll(async () => {
  db = await createTestDatabase();
  // Two processes, so to speak: nothing is shared but the stores.
  apis = [createApi(db.database), createApi(db.database)];
});
afterAll(async () => {
  for (const api of apis) await api.close();
  await db.drop();
});

const small = fc.nat({ max: 3 });
const agent = fc.constantFrom(...AGENTS);
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant('post' as const),
      thread: small,
      who: fc.constantFrom(...PEOPLE, ...AGENTS),
      mentions: fc.subarray([...AGENTS]),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      act: fc.constant('take' as const),
      who: agent,
      max: fc.integer({ min: 1, max: 4 }),
      batch: fc.constantFrom(1, 1, 3),
      onlyMentions: fc.constantFrom(false, false, false, true),
      thread: fc.option(small, { freq: 3 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      act: fc.constant('finish' as const),
      which: fc.nat({ max: 30 }),
      how: fc.constantFrom('delivery', 'answer', 'upTo', 'part'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('lapse' as const), which: fc.nat({ max: 30 }) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('giveBack' as const), which: fc.nat({ max: 30 }) }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('retract' as const), which: fc.nat({ max: 30 }) }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('move' as const), who: agent, thread: small }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('drain' as const), who: agent, thread: small }) },
);

/** One history, one step after the other, each on one or the other process. */
const play = async (steps: readonly { readonly step: Step; readonly on: number }[]): Promise<void> => {
  const [first] = apis;
  if (first === undefined) throw new Error('There is no process.');
  const { owner, ids, threadIds, members } = await createInboxWorld(first.services);
  const threads = threadIds.map((id, index) => newThread(id, members[index] ?? []));
  const handed: { readonly agent: string; readonly given: MessageDelivery; isDone: boolean }[] = [];
  const messageIds = new Map<string, string>();
  /** What each agent is still to be told at once; a pull that comes back has heard the former answer. */
  const notices = new Map<string, { readonly what: string; isOffered: boolean }[]>();
  const told = (who: string, what: string): void => {
    notices.set(who, [...(notices.get(who) ?? []), { what, isOffered: false }]);
  };
  let order = 0;
  const idOf = (handle: string): string => ids[handle] ?? '';
  const threadOf = (id: string): ModelThread => {
    const found = threads.find((thread) => thread.id === id);
    if (found === undefined) throw new Error('There is no such thread.');
    return found;
  };
  const pick = <T>(items: readonly T[], which: number): T | undefined =>
    items[which % Math.max(1, items.length)];

  const said = (thread: ModelThread, sender: string, content: string, mentions: readonly string[]): void => {
    thread.lastSeq += 1;
    order += 1;
    thread.events.push({
      kind: 'MESSAGE',
      seq: thread.lastSeq,
      sender,
      content,
      mentions,
      order,
      isRetracted: false,
    });
  };
  const acknowledged = (thread: ModelThread, who: string, seq: number): void => {
    thread.acked.set(who, Math.max(seq, thread.acked.get(who) ?? 0));
    const held = thread.inHand.get(who);
    const last = held?.seqs.at(-1);
    if (held === undefined || last === undefined || last > seq) return;
    thread.inHand.delete(who);
    for (const one of handed) if (one.given.deliveryId === held.deliveryId) one.isDone = true;
  };

  const act = async (step: Step, on: number): Promise<void> => {
    const { services } = apis[on] ?? first;
    switch (step.act) {
      case 'post': {
        const thread = pick(threads, step.thread);
        if (thread === undefined || !thread.members.includes(step.who)) return;
        const content = `${step.who} ${order}`;
        const mentions = step.mentions.filter((handle) => thread.members.includes(handle));
        const work = services.timeline.post(owner, {
          threadId: thread.id,
          as: idOf(step.who),
          content,
          mentionIds: mentions.map(idOf),
        });
        const code = await codeOf(work);
        expect(code).toBe(isActive(thread, step.who) ? 'OK' : 'PARTICIPANT_NOT_ACTIVE');
        if (code !== 'OK') return;
        said(thread, step.who, content, mentions);
        messageIds.set(`${thread.id} ${thread.lastSeq}`, (await work).event.id);
        return;
      }
      case 'take': {
        const only = step.thread === null ? undefined : pick(threads, step.thread);
        if (only !== undefined && (!only.members.includes(step.who) || !isActive(only, step.who))) return;
        const { given } = await services.inbox.take(
          owner,
          {
            as: idOf(step.who),
            max: step.max,
            batch: step.batch,
            onlyMentions: step.onlyMentions,
            ...(only === undefined ? {} : { threadId: only.id }),
          },
          NEVER,
        );
        const untold = (notices.get(step.who) ?? []).filter(({ isOffered }) => !isOffered);
        // Whatever is in hand.
        expect(
          given.flatMap((one) => (one.channel === 'CONTROL' ? [`${one.kind} ${one.threadId}`] : [])),
        ).toEqual(untold.slice(0, 50).map(({ what }) => what));
        for (const one of untold.slice(0, 50)) one.isOffered = true;
        const taken = given.filter((one): one is MessageDelivery => one.channel === 'MESSAGE');
        const isConcurrent = step.who !== 'solo';
        const busy = !isConcurrent && threads.some((t) => t.inHand.get(step.who)?.hasLapsed === false);
        const expected = busy
          ? []
          : expectedOf(only === undefined ? threads : [only], step.who, { ...step, isConcurrent });
        expect(
          taken.map(({ threadId, events, attempt, pendingCount }) => ({
            threadId,
            seqs: events.map(({ seq }) => seq),
            attempt,
            pendingCount,
          })),
        ).toEqual(expected);
        for (const one of taken) {
          handed.push({ agent: step.who, given: one, isDone: false });
          threadOf(one.threadId).inHand.set(step.who, {
            deliveryId: one.deliveryId,
            seqs: one.events.map(({ seq }) => seq),
            attempt: one.attempt,
            hasLapsed: false,
          });
        }
        return;
      }
      case 'finish': {
        const one = pick(handed, step.which);
        if (one === undefined) return;
        const { agent: who, given } = one;
        const thread = threadOf(given.threadId);
        const inHand = thread.inHand.get(who);
        const isCurrent = inHand?.deliveryId === given.deliveryId;
        const as = idOf(who);
        const { threadId, deliveryId } = given;
        const last = given.events.at(-1);
        const start = given.events[0];
        if (last === undefined || start === undefined) return;
        if (step.how === 'upTo') {
          expect(
            await codeOf(services.timeline.acknowledge(owner, { threadId, as, upTo: cursorOf(last) })),
          ).toBe('OK');
          acknowledged(thread, who, last.seq);
          return;
        }
        if (step.how === 'answer') {
          const content = `${who} answers`;
          const work = services.timeline.post(owner, { threadId, as, content, deliveryId });
          const code = await codeOf(work);
          expect(code).toBe(
            !isActive(thread, who) ? 'PARTICIPANT_NOT_ACTIVE' : isCurrent ? 'OK' : 'CONFLICT',
          );
          if (code !== 'OK') return;
          const hands = threads.flatMap((other) => {
            const held = other.inHand.get(who);
            return held !== undefined && (!held.hasLapsed || held.deliveryId === deliveryId)
              ? held.seqs.map((seq) => messageIds.get(`${other.id} ${seq}`))
              : [];
          });
          expect(new Set((await work).event.sourceIds)).toEqual(new Set(hands));
          thread.inHand.delete(who);
          acknowledged(thread, who, last.seq);
          one.isDone = true;
          said(thread, who, content, []);
          messageIds.set(`${thread.id} ${thread.lastSeq}`, (await work).event.id);
          return;
        }
        const upTo = step.how === 'part' ? { upTo: cursorOf(start) } : {};
        const code = await codeOf(
          services.timeline.acknowledge(owner, { threadId, as, deliveryId, ...upTo }),
        );
        expect(code).toBe(isCurrent || one.isDone ? 'OK' : 'CONFLICT');
        if (!isCurrent) return;
        thread.inHand.delete(who);
        acknowledged(thread, who, step.how === 'part' ? start.seq : last.seq);
        one.isDone = true;
        return;
      }
      case 'lapse':
      case 'giveBack': {
        const one = pick(handed, step.which);
        if (one === undefined) return;
        const inHand = threadOf(one.given.threadId).inHand.get(one.agent);
        const isCurrent = inHand?.deliveryId === one.given.deliveryId;
        if (step.act === 'lapse') await lapse(db.database, one.given.deliveryId);
        else {
          const { deliveryId } = one.given;
          const work = services.inbox.extendLease(owner, { deliveryId, as: idOf(one.agent), seconds: 0 });
          expect(await codeOf(work)).toBe(isCurrent ? 'OK' : 'CONFLICT');
        }
        if (inHand !== undefined && isCurrent) inHand.hasLapsed = true;
        return;
      }
      case 'retract': {
        const thread = pick(threads, step.which);
        const message = pick(thread?.events.filter(({ kind }) => kind === 'MESSAGE') ?? [], step.which);
        if (thread === undefined || message?.kind !== 'MESSAGE') return;
        const messageId = messageIds.get(`${thread.id} ${message.seq}`) ?? newId('Event');
        const code = await codeOf(services.timeline.retract(owner, { messageId, as: idOf(message.sender) }));
        if (code !== 'OK') return;
        for (const who of AGENTS)
          if (thread.members.includes(who) && pendingOf(thread, who).includes(message))
            told(who, `MESSAGE_RETRACTED ${thread.id}`);
        message.isRetracted = true;
        thread.lastSeq += 1;
        return;
      }
      case 'move': {
        const thread = pick(threads, step.thread);
        if (thread === undefined || !thread.members.includes(step.who)) return;
        const to = isActive(thread, step.who) ? 'REMOVED' : 'ACTIVE';
        await services.threads.changeState(owner, { threadId: thread.id, participantId: idOf(step.who) }, to);
        thread.lastSeq += 1;
        thread.events.push({
          kind: 'CHANGE',
          seq: thread.lastSeq,
          subject: step.who,
          isActive: to === 'ACTIVE',
        });
        thread.inHand.delete(step.who);
        told(step.who, `${to === 'ACTIVE' ? 'READDED' : 'REMOVED'} ${thread.id}`);
        return;
      }
      case 'drain': {
        const thread = pick(threads, step.thread);
        if (thread === undefined || !thread.members.includes(step.who)) return;
        const last = pendingOf(thread, step.who).at(-1);
        const id = last && messageIds.get(`${thread.id} ${last.seq}`);
        if (last === undefined || id === undefined) return;
        const upTo = cursorOf({ threadId: thread.id, seq: last.seq, id } as never);
        await services.timeline.acknowledge(owner, { threadId: thread.id, as: idOf(step.who), upTo });
        acknowledged(thread, step.who, last.seq);
        return;
      }
      default:
        step satisfies never;
    }
  };
  for (const { step: one, on } of steps) await act(one, on);
};

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

test('whatever happens, an inbox hands out what a plain model says', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ step, on: fc.nat({ max: 1 }) }), { minLength: 30, maxLength: 60 }),
      play,
    ),
    { numRuns: RUNS },
  );
}, 120_000);
