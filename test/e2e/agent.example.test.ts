import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTenant, type Server, startApp, type Tenant } from '../support/app.ts';
import { inboxApi, openThread } from '../support/inbox.ts';
import { createRandom } from '../support/random.ts';
import { until } from '../support/until.ts';

const random = createRandom('the agent of the examples');

let server: Server;
beforeAll(async () => {
  server = await startApp({ INBOX_LEASE_SECONDS: '1' });
});
afterAll(() => server.close());

interface Agent {
  readonly process: ChildProcess;
  /** Resolves when it says a line that begins so; rejects when it is over without. */
  said(start: string): Promise<void>;
  kill(): Promise<void>;
}

const startAgent = (token: string): Agent => {
  const process_ = spawn(process.execPath, ['examples/agent.mjs'], {
    env: { ...process.env, THREADPAD_URL: server.url, THREADPAD_TOKEN: token },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  // Its output is whole.
  const over = new Promise<void>((resolve) => process_.once('close', () => resolve()));
  createInterface({ input: process_.stdout }).on('line', (line) => {
    lines.push(line);
    for (const look of [...waiting]) look();
  });
  return {
    process: process_,
    said: (start) =>
      Promise.race([
        over.then(() => {
          if (!lines.some((line) => line.startsWith(start)))
            throw new Error(`It was over before it said "${start}".`);
        }),
        new Promise<void>((resolve) => {
          const look = (): void => {
            if (!lines.some((line) => line.startsWith(start))) return;
            waiting.delete(look);
            resolve();
          };
          waiting.add(look);
          look();
        }),
      ]),
    kill: async () => {
      process_.kill('SIGKILL');
      await over;
    },
  };
};

const answersIn = async (tenant: Tenant, threadId: string): Promise<string[]> => {
  const { data } = await server.graphql<{
    thread: { timeline: { events: { nodes: { content: string; sender: { handle: string } }[] } } };
  }>(
    tenant.apiKey,
    `query($id: ID!) { thread(id: $id) { timeline { events(first: 100, types: [MESSAGE]) { nodes {
      ... on Message { content sender { handle } } } } } } }`,
    { id: threadId },
  );
  return (data?.thread.timeline.events.nodes ?? [])
    .filter(({ sender }) => sender.handle === 'bot')
    .map(({ content }) => content);
};

test('it has at most 80 lines', async () => {
  const lines = (await readFile('examples/agent.mjs', 'utf8')).trimEnd().split('\n').length;
  expect(lines).toBeLessThanOrEqual(80);
});

test('killed at every step, it answers every message exactly once, in order', async () => {
  const tenant = await createTenant(server, { ann: 'HUMAN', bob: 'HUMAN', bot: 'AGENT' });
  const token = tenant.participants.bot?.token ?? '';
  const threads = [
    await openThread(server, tenant, 'ann', 'bot'),
    await openThread(server, tenant, 'bob', 'bot'),
  ];
  const asked = ['red', 'green', 'blue', 'white'];
  for (const [index, threadId] of threads.entries())
    for (const content of asked)
      await inboxApi(server, tenant.participants[index === 0 ? 'ann' : 'bob']?.token ?? '').post({
        threadId,
        content,
      });

  // After it took, after it thought (the answer is on its way), after it answered, and wherever it happens to be.
  for (const step of ['took', 'thought', 'answered', 'thought', 'listening'] as const) {
    const agent = startAgent(token);
    await agent.said(step);
    const later = random() * 4;
    await new Promise((resolve) => setTimeout(resolve, step === 'thought' ? later : 0));
    await agent.kill();
  }
  const last = startAgent(token);
  try {
    await until(async () => {
      const counts = await Promise.all(threads.map((id) => answersIn(tenant, id)));
      return counts.every(({ length }) => length >= asked.length);
    });
    for (const threadId of threads) {
      const answers = await answersIn(tenant, threadId);
      expect(answers.map((text) => /“(\w+)”/.exec(text)?.[1])).toEqual(asked);
    }
    const bot = inboxApi(server, token);
    for (const threadId of threads) expect(await bot.peek(threadId)).toEqual({ count: 0, contents: [] });
  } finally {
    await last.kill();
  }
}, 60_000);
