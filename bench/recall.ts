import type { Bench } from './support/bench.ts';
import { alternate, median, quantile, ratio, report, round } from './support/figures.ts';
import { type Connection, openConnection } from './support/http.ts';
import { startProduct } from './support/product.ts';
import { seedMemories } from './support/seedMemories.ts';
import { startStores } from './support/stores.ts';
import { createTenant, type Tenant, takeSeat } from './support/world.ts';

const RECALL = `query Recall($threadId: ID!, $as: ID!, $query: String, $match: JSON) {
  recall(threadId: $threadId, as: $as, query: $query, match: $match, first: 20) { nodes { id timestamp payload } pageInfo { hasNextPage endCursor } }
}`;

interface Question {
  readonly asked: object;
  /** What the few are asked, where that is not the same: something of which as many entries are ranked. */
  readonly ofFew?: { readonly name: string; readonly asked: object };
  /** Told beside the others, and held to nothing. */
  readonly isAside?: boolean;
}

const COMMON: Question = { asked: { query: 'review' } };
const COMMON_CHINESE: Question = { asked: { query: '周会' } };
const IN_FIFTY: Question = { asked: { query: 'topic7' } };
const IN_FIFTY_CHINESE: Question = { asked: { query: '预算' } };
const IN_FIVE_THOUSAND: Question = { asked: { query: 'rare3' } };
const IN_FIVE_THOUSAND_CHINESE: Question = { asked: { query: '迁移三' } };
const as = (name: string, { asked }: Question) => ({ ofFew: { name, asked } });

/**
 * What is asked: words that stand in every entry, in one of fifty, in one of five thousand, in twenty of all; by value; the newest.
 *
 * A word in one of fifty is in two hundred of ten thousand entries; of a million it is in more than the 2,000 that are ranked, so it
 * is held against a word of which among the few, too, 2,000 are ranked. A word in one of five thousand is in two of ten thousand
 * and in two hundred of a million, which is a page and what goes with it more: it is held against one that is in two hundred of
 * the few. What it takes beside itself among the few is told, too.
 */
const QUESTIONS: Readonly<Record<string, Question>> = {
  'a common word': COMMON,
  'two common words': { asked: { query: 'weekly review' } },
  'a common Chinese word': COMMON_CHINESE,
  'a common Chinese character': { asked: { query: '会' } },
  'a word in one of fifty': { ...IN_FIFTY, ...as('a common word', COMMON) },
  'a Chinese word in one of fifty': {
    ...IN_FIFTY_CHINESE,
    ...as('a common Chinese word', COMMON_CHINESE),
  },
  'a rare word': { asked: { query: 'needle' } },
  'a rare Chinese word': { asked: { query: '罕见' } },
  'a word in two hundred': { ...IN_FIVE_THOUSAND, ...as('one in two hundred', IN_FIFTY) },
  'a Chinese word in two hundred': {
    ...IN_FIVE_THOUSAND_CHINESE,
    ...as('one in two hundred', IN_FIFTY_CHINESE),
  },
  'a word in two hundred, to two of the few': { ...IN_FIVE_THOUSAND, isAside: true },
  'a Chinese word in two hundred, to two': { ...IN_FIVE_THOUSAND_CHINESE, isAside: true },
  'no such word': { asked: { query: 'nowhere' } },
  'by a rare value': { asked: { match: { ticket: 4711 } } },
  'by a common value': { asked: { match: { type: 'task' } } },
  'the newest': { asked: {} },
};

/** Of answers that come sooner than this five times as many are asked for. */
const QUICK_MS = 15;

/** `recall` by an agent that remembers a million entries, beside one that remembers ten thousand. */
export const recall: Bench = async ({ smoke }) => {
  const sizes = smoke
    ? { few: 500, many: 2_000 }
    : { few: 10_000, many: Number(process.env.BENCH_ENTRIES ?? 1_000_000) };
  const rounds = smoke ? 1 : 5;
  const requests = smoke ? 5 : 60;
  await using stores = await startStores({ durable: false });
  await using product = await startProduct(stores);
  const tenant = await createTenant(product, 'Recall');
  const seat = async (size: 'few' | 'many') => {
    const { agentId: as, threadId } = await takeSeat(product, tenant, size);
    await seedMemories(stores.client, { userId: tenant.userId, agentId: as, threadId, entries: sizes[size] });
    return { threadId, as };
  };
  const seats = { few: await seat('few'), many: await seat('many') };
  await stores.client.query('VACUUM ANALYZE');
  const connection = await openConnection(product.port);
  let met = true;
  for (const [name, { asked, ofFew, isAside = false }] of Object.entries(QUESTIONS)) {
    let count = requests;
    const side = (size: 'few' | 'many', question: object) => ({
      name: size,
      measure: async () =>
        quantile(await timesOf(connection, tenant, { ...seats[size], ...question }, count), 0.99),
    });
    const sides = [side('few', ofFew?.asked ?? asked), side('many', asked)];
    const first = await alternate(sides, 1);
    // Of sixty the 99th percentile is the worst: where answers are quick, one pause of the process.
    if (median(first.many) < QUICK_MS) count *= 5;
    const { few, many } = await alternate(sides, rounds);
    met =
      report({
        what: `${name}: p99 of ${sizes.many} entries to that of ${ofFew === undefined ? '' : `${ofFew.name} in `}${sizes.few}`,
        figure: ratio(many, few),
        ...(isAside ? {} : { target: { atMost: 2 } }),
        detail: `${round(median(few))} ms, ${round(median(many))} ms`,
      }) && met;
  }
  connection.close();
  return met;
};

const timesOf = async (
  connection: Connection,
  { apiKey }: Tenant,
  variables: object,
  requests: number,
): Promise<number[]> => {
  const body = JSON.stringify({ query: RECALL, variables });
  const times: number[] = [];
  for (let index = 0; index < requests; index++) {
    const startedAt = performance.now();
    const answer = await connection.post('/graphql', body, `Authorization: Bearer ${apiKey}\r\n`);
    times.push(performance.now() - startedAt);
    if (answer.status !== 200 || answer.body.includes('"errors"')) throw new Error(answer.body.slice(0, 300));
  }
  return times;
};
