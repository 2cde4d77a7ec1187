import type { Member } from '../scripts/replay/members.ts';
import type { Bench } from './support/bench.ts';
import { alternate, median, ratio, report, round, type Side } from './support/figures.ts';
import { type Connection, openConnection } from './support/http.ts';
import { type Product, startProduct } from './support/product.ts';
import { openSocket, subscribe } from './support/socket.ts';
import { startStores } from './support/stores.ts';
import { createTenant, openRoom, type Tenant, textOf } from './support/world.ts';

const WINDOWS = 100;
const PAGE = `query Page($id: ID!, $before: Cursor, $last: Int) {
  scratchpad(id: $id) { end entries(last: $last, before: $before) {
    nodes { id seq content createdAt author { handle } } pageInfo { hasNextPage hasPreviousPage } } }
}`;
const APPEND =
  'mutation Append($input: AppendScratchpadEntryInput!) { appendScratchpadEntry(input: $input) { cursor entry { seq } } }';
const BATCH =
  'mutation Batch($input: AppendScratchpadEntriesInput!) { appendScratchpadEntries(input: $input) { cursor entries { cursor } } }';
const CHANGE = (verb: string): string =>
  `mutation Change($input: ParticipantStateInput!) { ${verb}(input: $input) { cursor } }`;
const FOLLOW = `subscription Follow($id: ID!, $after: Cursor) {
  scratchpad(scratchpadId: $id, after: $after) { cursor change { __typename ... on EntryAppended { entry { seq content } } } }
}`;

/** A pad that was filled in a hundred comings and goings of one member. */
interface Filled {
  readonly id: string;
  readonly writer: Member;
  readonly visitor: Member;
  /** The cursor of an entry halfway, as the `entries` connection gives it. */
  readonly middle: string;
  /** The position of a change halfway, as the subscription takes it. */
  readonly resume: string;
}

/**
 * What is asked of a pad at its limits, beside the same of a pad with 100 entries: an append, the newest 50, 50 in the
 * middle, and going on from the middle until 50 more were read; for the owner and for a member with a hundred windows.
 */
export const pad: Bench = async ({ smoke }) => {
  const rounds = smoke ? 1 : 9;
  const requests = smoke ? 5 : 60;
  await using stores = await startStores({ durable: false });
  await using product = await startProduct(stores, { env: { MAX_SUBSCRIPTIONS_PER_SOCKET: '100000' } });
  const tenant = await createTenant(product, 'Pad');
  const small = await fill(product, tenant, { name: 'small', entries: 100, bytes: 600 });
  const large = smoke
    ? [
        {
          name: '2,000 of 600 bytes',
          filled: await fill(product, tenant, { name: 'many', entries: 2_000, bytes: 600 }),
        },
      ]
    : [
        {
          name: '98,000 of 600 bytes',
          filled: await fill(product, tenant, { name: 'many', entries: 98_000, bytes: 600 }),
        },
        {
          name: '14,500 of 4 KB',
          filled: await fill(product, tenant, { name: 'heavy', entries: 14_500, bytes: 4_096 }),
          like: await fill(product, tenant, { name: 'light', entries: 100, bytes: 4_096 }),
        },
      ];
  const connection = await openConnection(product.port);
  let met = true;
  for (const { name, filled, like = small } of large) {
    for (const who of ['owner', 'visitor'] as const) {
      const tokenOf = (one: Filled): string => (who === 'owner' ? tenant.apiKey : one.visitor.token);
      for (const what of ['append', 'last 50', '50 in the middle', 'resume'] as const) {
        const sides = [
          sideOf('small', like, tokenOf(like)),
          sideOf('large', filled, tokenOf(filled)),
        ] satisfies readonly (Side & { readonly name: string })[];
        await alternate(sides, 1);
        const figures = await alternate(sides, rounds);
        const reached = report({
          what: `${name}, ${who}, ${what}: to 100 entries`,
          figure: ratio(figures.large, figures.small),
          target: { atMost: 1.5 },
          detail: `${round(median(figures.large))} ms to ${round(median(figures.small))} ms`,
        });
        met = reached && met;

        function sideOf<Name extends string>(side: Name, one: Filled, token: string) {
          return { name: side, measure: () => measure(product, connection, { one, token, what, requests }) };
        }
      }
    }
  }
  connection.close();
  return met;
};

interface Measured {
  readonly one: Filled;
  readonly token: string;
  readonly what: 'append' | 'last 50' | '50 in the middle' | 'resume';
  readonly requests: number;
}

/** The median time of one request, in milliseconds, one after the other. */
const measure = async (
  product: Product,
  connection: Connection,
  { one, token, what, requests }: Measured,
): Promise<number> => {
  const ask = async (query: string, variables: object): Promise<number> => {
    const body = JSON.stringify({ query, variables });
    const startedAt = performance.now();
    const answer = await connection.post('/graphql', body, `Authorization: Bearer ${token}\r\n`);
    const took = performance.now() - startedAt;
    if (answer.body.includes('"errors"')) throw new Error(answer.body.slice(0, 300));
    return took;
  };
  const once = (): Promise<number> => {
    switch (what) {
      case 'append':
        return ask(APPEND, { input: { scratchpadId: one.id, content: 'One more finding.' } });
      case 'last 50':
        return ask(PAGE, { id: one.id, last: 50 });
      case '50 in the middle':
        return ask(PAGE, { id: one.id, last: 50, before: one.middle });
      case 'resume':
        return resume(product, one, token);
      default:
        return what satisfies never;
    }
  };
  const times: number[] = [];
  for (let index = 0; index < requests; index++) times.push(await once());
  return median(times);
};

/** From asking to go on after a position to having read what comes first: as much as a small pad has. */
const resume = async ({ port }: Product, { id, resume: after }: Filled, token: string): Promise<number> => {
  const socket = await openSocket(port, token);
  try {
    return await new Promise<number>((resolve, reject) => {
      const startedAt = performance.now();
      let read = 0;
      subscribe(socket, { query: FOLLOW, variables: { id, after } }, () => {
        read += 1;
        if (read === READ) resolve(performance.now() - startedAt);
      }).catch(reject);
    });
  } finally {
    socket.terminate();
  }
};

const READ = 20;

/** Fills a pad while its visitor comes and goes, so that it has a hundred windows spread over the whole list. */
const fill = async (
  product: Product,
  tenant: Tenant,
  { name, entries, bytes }: { readonly name: string; readonly entries: number; readonly bytes: number },
): Promise<Filled> => {
  const { api } = product;
  const room = await openRoom(product, tenant, name, 3);
  const [writer, visitor] = room.members;
  if (writer === undefined || visitor === undefined) throw new Error('Nobody is there.');
  const content = textOf(bytes);
  const parts = 2 * WINDOWS;
  let written = 0;
  let middle = '';
  let resumeAt = '';
  for (let part = 0; part < parts; part++) {
    const upTo = Math.round(((part + 1) * entries) / parts);
    while (written < upTo) {
      const count = Math.min(500, upTo - written);
      const { appendScratchpadEntries: answer } = await api.ask<{
        appendScratchpadEntries: { cursor: string; entries: readonly { cursor: string }[] };
      }>(writer.token, BATCH, {
        input: { scratchpadId: room.scratchpadId, contents: Array.from({ length: count }, () => content) },
      });
      written += count;
      // A page of 50 fits before three quarters of the smallest; behind its middle are 20 for the one who sees half.
      if (written * 4 <= entries * 3) middle = answer.entries.at(-1)?.cursor ?? '';
      if (written * 2 <= entries) resumeAt = answer.cursor;
    }
    if (part < parts - 1)
      await api.ask(tenant.apiKey, CHANGE(part % 2 === 0 ? 'removeParticipant' : 'readdParticipant'), {
        input: { threadId: room.threadId, participantId: visitor.id },
      });
  }
  // It is there at the end, so that it can write.
  await api.ask(tenant.apiKey, CHANGE('readdParticipant'), {
    input: { threadId: room.threadId, participantId: visitor.id },
  });
  return { id: room.scratchpadId, writer, visitor, middle, resume: resumeAt };
};
