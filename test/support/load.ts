import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Tenant } from './app.ts';
import type { Cluster } from './cluster.ts';
import type { OracleThread } from './oracle/rules.ts';

interface Saved {
  readonly saved: { readonly event: { readonly id: string; readonly seq: number } };
}
const POST = /* GraphQL */ `
  mutation ($id: ID!, $content: String!, $key: String!) {
    saved: postMessage(input: { threadId: $id, content: $content, idempotencyKey: $key }) { event: message { id seq } }
  }`;
const change = (field: string) => /* GraphQL */ `
  mutation ($id: ID!, $member: ID!) {
    saved: ${field}(input: { threadId: $id, participantId: $member }) { event { id seq } }
  }`;
const CHANGES = { REMOVED: change('removeParticipant'), ACTIVE: change('readdParticipant') } as const;

/** An event that the server has acknowledged. */
export interface Acknowledged {
  readonly id: string;
  readonly seq: number;
  readonly sentAt: number;
  readonly answeredAt: number;
}

/** Writers that go on until they are told to stop, each as a member, each event with a key, whatever breaks. */
export interface Load {
  readonly acknowledged: readonly Acknowledged[];
  /** Resolves when so many more events were acknowledged. */
  more(count: number): Promise<void>;
  isOver(): boolean;
  stop(): Promise<void>;
}

export interface LoadOptions {
  readonly threadId: string;
  readonly writers: readonly string[];
  /** Members who come and go all the while, by the owner's hand. */
  readonly restless?: readonly string[];
  readonly pauseMs?: number;
}

export const startLoad = (cluster: Cluster, tenant: Tenant, options: LoadOptions): Load => {
  const { threadId, writers, restless = [], pauseMs = 0 } = options;
  const acknowledged: Acknowledged[] = [];
  const waiting = new Set<() => void>();
  let isOver = false;

  const write = async (token: string, query: string, variables: Record<string, unknown>): Promise<void> => {
    const sentAt = performance.now();
    const { data, errors } = await cluster.graphql<Saved>(token, query, { id: threadId, ...variables });
    // A change of state has no key: sent again after its answer was lost, it finds itself done.
    if (errors?.[0]?.extensions?.code === 'INVALID_TRANSITION') return;
    expect(errors).toBeUndefined();
    if (!data) throw new Error('No data.');
    acknowledged.push({ ...data.saved.event, sentAt, answeredAt: performance.now() });
    for (const look of [...waiting]) look();
  };

  const repeat = async (act: (turn: number) => Promise<void>): Promise<void> => {
    for (let turn = 0; !isOver; turn++) {
      await act(turn);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  };

  const running = [
    ...writers.map((handle) =>
      repeat((turn) =>
        write(tenant.participants[handle]?.token ?? '', POST, {
          content: `${handle} ${turn}`,
          key: randomUUID(),
        }),
      ),
    ),
    ...restless.map((handle) =>
      repeat((turn) =>
        write(tenant.apiKey, CHANGES[turn % 2 === 0 ? 'REMOVED' : 'ACTIVE'], {
          member: tenant.participants[handle]?.id,
        }),
      ),
    ),
  ];
  const failed = Promise.all(running);

  return {
    acknowledged,
    more: (count) => {
      const target = acknowledged.length + count;
      const reached = new Promise<void>((resolve) => {
        const look = (): void => {
          if (acknowledged.length < target) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      });
      return Promise.race([reached, failed.then(() => undefined)]);
    },
    isOver: () => isOver,
    stop: async () => {
      isOver = true;
      await failed;
    },
  };
};

/** Gapless, ascending, every acknowledged event there, none twice. */
export const expectWholeRecord = ({ events }: OracleThread, acknowledged: readonly Acknowledged[]): void => {
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  expect(events.every(({ at }, index) => index === 0 || at > (events[index - 1]?.at ?? ''))).toBe(true);
  const lost = acknowledged.filter(({ id, seq }) => events[seq - 1]?.id !== id);
  expect(lost).toEqual([]);
  const keys = events.flatMap((event) => (event.type === 'MESSAGE' ? [event.clientKey] : []));
  expect(new Set(keys).size).toBe(keys.length);
};

/** Who was answered before another began stands before it. */
export const expectCommitOrder = (acknowledged: readonly Acknowledged[]): void => {
  let firstAnswer = Number.POSITIVE_INFINITY;
  const early: Acknowledged[] = [];
  for (const event of [...acknowledged].sort((a, b) => b.seq - a.seq)) {
    if (firstAnswer < event.sentAt) early.push(event);
    firstAnswer = Math.min(firstAnswer, event.answeredAt);
  }
  expect(early).toEqual([]);
};
