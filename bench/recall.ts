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

/** What is asked: words that stand in every entry, in one of fifty, in one of five thousand; by value; the newest. */
const QUESTIONS: Readonly<Record<string, object>> = {
  'a common word': { query: 'review' },
  'two common words': { query: 'weekly review' },
  'a common Chinese word': { query: '周会' },
  'a common Chinese character': { query: '会' },
  'a word in one of fifty': { query: 'topic7' },
  'a Chinese word in one of fifty': { query: '预算' },
  'a rare word': { query: 'rare3' },
  'a rare Chinese word': { query: '迁移三' },
  'no such word': { query: 'nowhere' },
  'by a rare value': { match: { ticket: 4711 } },
  'by a common value': { match: { type: 'task' } },
  'the newest': {},
};

/**
 * Of ten thousand entries a word in one of fifty is in two hundred, of a million in more than the 2,000 that are ranked. So it is
 * held against a word of which among the few, too, 2,000 are ranked.
 */
const BESIDE: Readonly<Record<string, string>> = {
  'a word in one of fifty': 'a common word',
  'a Chinese word in one of fifty': 'a common Chinese word',
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
  for (const [name, question] of Object.entries(QUESTIONS)) {
    const beside = BESIDE[name];
    let count = requests;
    const side = (size: 'few' | 'many', asked: object = question) => ({
      name: size,
      measure: async () =>
        quantile(await timesOf(connection, tenant, { ...seats[size], ...asked }, count), 0.99),
    });
    const sides = [side('few', beside === undefined ? question : QUESTIONS[beside]), side('many')];
    const first = await alternate(sides, 1);
    // Of sixty the 99th percentile is the worst: where answers are quick, one pause of the process.
    if (median(first.many) < QUICK_MS) count *= 5;
    const { few, many } = await alternate(sides, rounds);
    met =
      report({
        what: `${name}: p99 of ${sizes.many} entries to that of ${beside === undefined ? '' : `${beside} in `}${sizes.few}`,
        figure: ratio(many, few),
        target: { atMost: 2 },
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
