import { spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTenant, type Server, startApp, type Tenant } from '../support/app.ts';

/** The example: a supervisor and two workers, each a process of its own, one over MCP and one over GraphQL. */
let server: Server;
let tenant: Tenant;
beforeAll(async () => {
  server = await startApp();
});
afterAll(() => server.close());

const ask = async <Data>(query: string, variables: object): Promise<Data> => {
  const { data, errors } = await server.graphql<Data>(tenant.apiKey, query, { ...variables });
  if (!data || errors) throw new Error(JSON.stringify(errors));
  return data;
};

const research = async (
  environment: Record<string, string>,
): Promise<{ threadId: string; lines: string[] }> => {
  tenant = await createTenant(server, { ada: 'HUMAN', boss: 'AGENT', archivist: 'AGENT', reader: 'AGENT' });
  const idOf = (handle: string): string => tenant.participants[handle]?.id ?? '';
  for (const handle of ['archivist', 'reader'])
    await ask(
      'mutation ($input: UpdateParticipantInput!) { updateParticipant(input: $input) { participant { id } } }',
      { input: { participantId: idOf(handle), listed: true } },
    );
  const { openThread } = await ask<{ openThread: { thread: { id: string } } }>(
    'mutation ($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
    { ids: [idOf('ada'), idOf('boss')] },
  );
  const supervisor = spawn(process.execPath, ['examples/deep-research/supervisor.mjs'], {
    env: {
      ...process.env,
      THREADPAD_URL: server.url,
      THREADPAD_TOKEN: tenant.participants.boss?.token ?? '',
      THREAD_ID: openThread.thread.id,
      ARCHIVIST: idOf('archivist'),
      READER: idOf('reader'),
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  supervisor.stdout.on('data', (chunk) => {
    output += String(chunk);
  });
  const code = await new Promise((resolve) => supervisor.once('close', resolve));
  expect(code, output).toBe(0);
  return { threadId: openThread.thread.id, lines: output.split('\n') };
};

interface Found {
  readonly thread: {
    readonly scratchpad: {
      readonly content: { readonly text: string };
      readonly entries: {
        readonly nodes: { content: string; run: { id: string }; author: { handle: string } }[];
      };
    };
    readonly timeline: { readonly events: { readonly nodes: { kind?: string; content?: string }[] } };
  };
  readonly runs: {
    readonly nodes: {
      readonly status: string;
      readonly error: string | null;
      readonly result: { summary: string } | null;
      readonly participant: { readonly handle: string };
      readonly conversationThread: {
        readonly timeline: {
          readonly events: { readonly nodes: { kind?: string; data?: { name: string } }[] };
        };
      };
    }[];
  };
}

const found = (threadId: string): Promise<Found> =>
  ask<Found>(
    `query ($id: ID!) {
      thread(id: $id) {
        scratchpad { content { text } entries { nodes { content run { id } author { handle } } } }
        timeline { events(first: 100) { nodes { ... on SystemEvent { kind } ... on Message { content } } } }
      }
      runs { nodes { status error result participant { handle }
        conversationThread { timeline { events(first: 100) { nodes { ... on SystemEvent { kind data } } } } } } }
    }`,
    { id: threadId },
  );

const saysOf = (lines: readonly string[], who: string): string =>
  lines.filter((line) => line.startsWith(`${who} | `)).join('\n');

describe('deep research', () => {
  test('ends in a synthesis of what both workers found, each in a conversation of its own', async () => {
    const { threadId, lines } = await research({});
    for (const who of ['archivist', 'reader'])
      expect(saysOf(lines, who)).toContain('PLAN: what do the letters say');
    const { thread, runs } = await found(threadId);
    expect(thread.scratchpad.content.text).toMatch(
      /^SYNTHESIS\n- .*\n- .*\narchivist: COMPLETED\nreader: COMPLETED$/,
    );
    expect(thread.scratchpad.content.text).toContain('412 letters');
    expect(thread.scratchpad.content.text).toContain('three dry summers');
    expect(thread.scratchpad.entries.nodes.map(({ author }) => author.handle).sort()).toEqual([
      'archivist',
      'reader',
    ]);
    // Nothing of the workers' is in the supervisor's thread.
    expect(thread.timeline.events.nodes).toEqual([{ kind: 'THREAD_OPENED' }]);
    for (const { conversationThread } of runs.nodes)
      expect(
        conversationThread.timeline.events.nodes.flatMap(({ kind, data }) =>
          kind === 'TOOL_RESULT' ? [data?.name] : [],
        ),
      ).toEqual(['read_scratchpad', 'append_scratchpad']);
  });

  test('reports a worker that fails as failed, and keeps what it appended', async () => {
    const { threadId, lines } = await research({ FAILS: 'reader' });
    expect(saysOf(lines, 'supervisor')).toContain('reader: FAILED (The lamp went out.)');
    const { thread, runs } = await found(threadId);
    expect(thread.scratchpad.entries.nodes).toHaveLength(2);
    const reader = runs.nodes.find(({ participant }) => participant.handle === 'reader');
    expect([reader?.status, reader?.error, reader?.result]).toEqual(['FAILED', 'The lamp went out.', null]);
  });
});
