import type { Api } from '../../scripts/replay/api.ts';
import type { Busy } from './seedAgents.ts';
import { openSocket, subscribe } from './socket.ts';

/** Whom to ask, about whom. */
export interface AskableAgents {
  readonly api: Api;
  readonly port: number;
  readonly apiKey: string;
  readonly busy: Busy;
}

const RUN = `id status metaData toolCalls expiresAt participant { handle } delegator { handle } parentRun { id }
  conversationThread { id } scratchpad { id }`;
const RUNS = `query Runs($first: Int, $after: Cursor, $last: Int, $before: Cursor, $threadId: ID, $participantId: ID, $parentRunId: ID, $status: RunStatus) {
  runs(first: $first, after: $after, last: $last, before: $before, threadId: $threadId, participantId: $participantId, parentRunId: $parentRunId, status: $status) {
    nodes { ${RUN} } pageInfo { hasNextPage endCursor } } }`;
const UPDATE_RUN = `mutation Update($input: UpdateRunInput!) { updateRun(input: $input) { run { ${RUN} } } }`;
const RECALL = `query Recall($threadId: ID!, $first: Int, $after: Cursor, $query: String, $match: JSON) {
  recall(threadId: $threadId, first: $first, after: $after, query: $query, match: $match) {
    nodes { id payload thread { id } run { id } sources { id } } pageInfo { hasNextPage endCursor } } }`;
const DELIVERY =
  'channel deliveryId pendingCount notice ended thread { id } events { id } changes { __typename }';
const EXECUTE =
  'mutation Execute($input: ExecuteToolInput!) { executeTool(input: $input) { output isError } }';

interface Delegated {
  readonly token: string;
  readonly run: { readonly id: string };
}

/** What agents do and are asked, beside one that has worked for long. */
export const exerciseAgents = async (askable: AskableAgents): Promise<void> => {
  await listRuns(askable);
  const run = await workRuns(askable);
  await remember(askable);
  await callTools(askable, run);
  await emptyInbox(askable);
  await listen(askable, run);
  await endRuns(askable, run);
};

const listRuns = async ({ api, apiKey, busy }: AskableAgents): Promise<void> => {
  const filters = [
    {},
    { status: 'FAILED' },
    { status: 'QUEUED' },
    { status: 'IN_PROGRESS' },
    { participantId: busy.agentId },
    { participantId: busy.agentId, status: 'IN_PROGRESS' },
    { threadId: busy.threadId },
    { threadId: busy.threadId, status: 'IN_PROGRESS' },
  ];
  for (const token of [apiKey, busy.token, busy.delegatorToken])
    for (const filter of filters) {
      const { runs } = await api.ask<{ runs: { pageInfo: { endCursor: string | null } } }>(token, RUNS, {
        ...filter,
        first: 50,
      });
      await api.ask(token, RUNS, { ...filter, last: 50 });
      const cursor = runs.pageInfo.endCursor;
      if (cursor === null) continue;
      await api.ask(token, RUNS, { ...filter, first: 50, after: cursor });
      await api.ask(token, RUNS, { ...filter, last: 50, before: cursor });
    }
};

const delegate = async (api: Api, token: string, input: object): Promise<Delegated> => {
  const { delegateRun } = await api.ask<{ delegateRun: Delegated }>(
    token,
    `mutation Delegate($input: DelegateRunInput!) { delegateRun(input: $input) { token run { ${RUN} } } }`,
    { input },
  );
  return delegateRun;
};

/** A run that stays open, with children of which one ends. */
const workRuns = async ({ api, apiKey, busy }: AskableAgents): Promise<Delegated> => {
  const { agentId: participantId, scratchpadId, threadId } = busy;
  await delegate(api, apiKey, { participantId, scratchpadId, idempotencyKey: 'again' });
  await delegate(api, apiKey, { participantId, scratchpadId, idempotencyKey: 'again' });
  const input = { participantId, scratchpadId, conversationThreadId: threadId, input: { task: 'Look.' } };
  const given = await delegate(api, busy.delegatorToken, input);
  const { claimRun: run } = await api.ask<{ claimRun: Delegated }>(
    busy.token,
    `mutation Claim($runId: ID!) { claimRun(input: { runId: $runId }) { token run { ${RUN} } } }`,
    { runId: given.run.id },
  );
  const child = await delegate(api, run.token, {
    participantId,
    parentRunId: run.run.id,
    scratchpadAccess: 'READ',
  });
  for (const token of [apiKey, busy.token, busy.delegatorToken, run.token])
    for (const filter of [{ parentRunId: run.run.id }, {}])
      await api.ask(token, RUNS, { ...filter, first: 50 });
  for (const token of [busy.token, run.token])
    await api.ask(token, `query Run($id: ID!) { run(id: $id) { ${RUN} } viewer { run { id } } }`, {
      id: run.run.id,
    });
  for (const change of [
    { status: 'INPUT_REQUIRED', result: { question: 'Which?' } },
    { status: 'IN_PROGRESS' },
  ])
    await api.ask(run.token, UPDATE_RUN, { input: { runId: run.run.id, ...change } });
  await api.ask(apiKey, UPDATE_RUN, { input: { runId: run.run.id, expiresInSeconds: 600 } });
  await api.ask(busy.token, UPDATE_RUN, { input: { runId: run.run.id, status: 'INPUT_REQUIRED' } });
  await api.ask(apiKey, UPDATE_RUN, { input: { runId: child.run.id, status: 'CANCELLED' } });
  return run;
};

const remember = async ({ api, apiKey, busy }: AskableAgents): Promise<void> => {
  const { agentId, threadId, token } = busy;
  const store =
    'mutation Store($input: StoreMemoryInput!) { storeMemory(input: $input) { entry { id payload } } }';
  await api.ask(token, store, { input: { threadId, payload: { text: 'The plan' } } });
  for (let time = 0; time < 2; time += 1)
    await api.ask(token, store, { input: { threadId, payload: { n: 1 }, idempotencyKey: 'again' } });
  await api.ask(apiKey, store, { input: { as: agentId, payload: { text: 'Everywhere' } } });
  for (const question of [
    {},
    { query: 'review' },
    { query: 'weekly review' },
    { query: 'rare3' },
    { query: 'nowhere' },
    { match: { ticket: 4711 } },
    { match: { type: 'task' } },
  ]) {
    const { recall } = await api.ask<{ recall: { pageInfo: { endCursor: string | null } } }>(token, RECALL, {
      ...question,
      threadId,
      first: 20,
    });
    const after = recall.pageInfo.endCursor;
    if (after !== null) await api.ask(token, RECALL, { ...question, threadId, first: 20, after });
  }
  await api.ask(
    apiKey,
    'query Memory($id: ID!) { participant(id: $id) { memory(first: 50) { nodes { id payload thread { id } } } } }',
    { id: agentId },
  );
  await api.ask(
    apiKey,
    'mutation Clone($id: ID!) { cloneParticipant(input: { participantId: $id, handle: "busy-again" }) { participant { id } } }',
    { id: agentId },
  );
  const search = `query Search($query: String!, $threadId: ID, $after: Cursor) { searchMessages(query: $query, threadId: $threadId, first: 20, after: $after) {
    nodes { id content sender { handle } thread { id } } pageInfo { endCursor } } }`;
  for (const asker of [apiKey, token])
    for (const query of ['think', 'make think', 'nowhere'])
      for (const where of [{ threadId }, {}]) {
        const { searchMessages } = await api.ask<{
          searchMessages: { pageInfo: { endCursor: string | null } };
        }>(asker, search, { query, ...where });
        const after = searchMessages.pageInfo.endCursor;
        if (after !== null) await api.ask(asker, search, { query, ...where, after });
      }
};

const callTools = async (
  { api, busy }: AskableAgents,
  { token: runToken, run }: Delegated,
): Promise<void> => {
  const calls: readonly (readonly [string, object])[] = [
    ['append_scratchpad', { note: 'Seen.' }],
    ['read_scratchpad', {}],
    ['update_scratchpad', { content: 'All of it.' }],
    ['store', { memory: { text: 'A finding' } }],
    ['recall', { query: 'finding' }],
    ['send_message', { content: 'On it.' }],
    ['read_messages', {}],
    ['peek_pending', {}],
    ['next_message', {}],
    ['acknowledge_message', {}],
  ];
  for (const [name, given] of calls)
    for (const [token, where] of [
      [busy.token, { threadId: busy.threadId }],
      [runToken, { runId: run.id }],
    ] as const)
      for (let time = 0; time < 2; time += 1)
        await api.ask(token, EXECUTE, {
          input: { name, arguments: given, toolCallId: `${name} again`, ...where },
        });
};

/** What waits, taken by pulls: notices and messages, of all threads and of one. */
const emptyInbox = async ({ api, apiKey, busy }: AskableAgents): Promise<void> => {
  const take = `mutation Take($input: TakePendingInput!) { takePending(input: $input) { deliveries { ${DELIVERY} } } }`;
  await api.ask(
    apiKey,
    'mutation Policy($threadId: ID!) { setMemoryPolicy(input: { threadId: $threadId, threadOnly: false }) { thread { id } } }',
    { threadId: busy.threadId },
  );
  for (const how of [
    { max: 5 },
    { max: 5, batch: 3 },
    { onlyMentions: true },
    { threadId: busy.threadId, waitSeconds: 1 },
  ]) {
    const { takePending } = await api.ask<{
      takePending: {
        deliveries: { deliveryId: string | null; thread: { id: string } | null }[];
      };
    }>(busy.token, take, { input: how });
    for (const { deliveryId, thread } of takePending.deliveries) {
      if (deliveryId === null) continue;
      await api.ask(
        busy.token,
        'mutation Done($input: AcknowledgeInput!) { acknowledge(input: $input) { pendingCount } }',
        { input: { threadId: thread?.id, deliveryId } },
      );
    }
  }
};

/** Streams of an inbox (until its digest has come round), of a run and of signals; what is said to them; who is there. */
const listen = async (
  { api, port, apiKey, busy }: AskableAgents,
  { token, run }: Delegated,
): Promise<void> => {
  const { threadId } = busy;
  const sockets = [];
  for (const one of [busy.token, token]) {
    const socket = await openSocket(port, one);
    sockets.push(socket);
    const follow = (query: string, variables: Readonly<Record<string, unknown>> = {}) =>
      subscribe(socket, { query, variables });
    await follow(`subscription { inbox(batch: 2) { ${DELIVERY} } }`);
    await follow(`subscription ($id: ID!) { run(runId: $id) { ended activity run { ${RUN} } } }`, {
      id: run.id,
    });
    await follow('subscription ($id: ID!) { signals(threadId: $id) { ended signal { kind } } }', {
      id: threadId,
    });
  }
  await api.ask(
    busy.token,
    'mutation ($id: ID!) { signal(input: { threadId: $id, kind: "working" }) { delivered } }',
    { id: threadId },
  );
  await api.ask(
    apiKey,
    'query ($id: ID!) { thread(id: $id) { participants { activity participant { handle } } } }',
    { id: threadId },
  );
  await new Promise((resolve) => setTimeout(resolve, 7_000));
  for (const socket of sockets) socket.terminate();
};

/** One by its deadline, one by its worker; and the server looks for what there is to empty. */
const endRuns = async ({ api, apiKey, busy }: AskableAgents, { token, run }: Delegated): Promise<void> => {
  const due = await delegate(api, apiKey, { participantId: busy.agentId, expiresInSeconds: 1 });
  let conversation = '';
  for (;;) {
    const answer = await api.ask<{ run: { status: string; conversationThreadId: string } }>(
      apiKey,
      'query ($id: ID!) { run(id: $id) { status conversationThreadId } }',
      { id: due.run.id },
    );
    conversation = answer.run.conversationThreadId;
    if (answer.run.status === 'EXPIRED') break;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  await api.ask(token, UPDATE_RUN, { input: { runId: run.id, status: 'COMPLETED', result: { found: 1 } } });
  await api.ask(apiKey, 'mutation ($id: ID!) { deleteThread(input: { threadId: $id }) { deletedId } }', {
    id: conversation,
  });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
};
