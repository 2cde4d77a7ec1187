import { spawn } from 'node:child_process';
import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type ExecutionResult, Kind, OperationTypeNode, parse, validate } from 'graphql';
import { createClient } from 'graphql-ws';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { resumable, steady } from '../../src/client/index.ts';
import { CONFIG_VARIABLES, readConfig } from '../../src/config.ts';
import { BODY_LIMIT } from '../../src/graphql/door.ts';
import { createSchema } from '../../src/graphql/schema.ts';
import { WEBSOCKET_LIMITS } from '../../src/graphql/websocket.ts';
import { VIEW_CHARACTERS } from '../../src/scratchpads/formatted.ts';
import { PAD_LIMITS } from '../../src/scratchpads/pad.ts';
import { ERROR_STATUS } from '../../src/shared/errors.ts';
import { LIMITS } from '../../src/shared/input.ts';
import { createTenant, type Server, startApp, type Tenant } from '../support/app.ts';
import { ADMIN_TOKEN } from '../support/identity.ts';
import { type Block, blocksOf, codeIn, linksOf, tableOf } from '../support/markdown.ts';

const FILES = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'examples/README.md',
  ...(await readdir('docs')).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
];
const BLOCKS = (await Promise.all(FILES.map(blocksOf))).flat();

let server: Server;
beforeAll(async () => {
  server = await startApp();
});
afterAll(() => server.close());

/** What the examples are filled in with. */
interface Place {
  readonly tenant: Tenant;
  readonly threadId: string;
  readonly messageId: string;
  readonly scratchpadId: string;
  /** A thread without a scratchpad. */
  readonly newThreadId: string;
}

const idOf = ({ participants }: Tenant, handle: string): string => {
  const id = participants[handle]?.id;
  if (id === undefined) throw new Error(`Nobody is called ${handle}.`);
  return id;
};

const ask = async <Data>(token: string, query: string, variables: Record<string, unknown>): Promise<Data> => {
  const { data, errors } = await server.graphql<Data>(token, query, variables);
  if (errors !== undefined || !data) throw new Error(JSON.stringify(errors));
  return data;
};

const makePlace = async (): Promise<Place> => {
  const tenant = await createTenant(server, { ada: 'HUMAN', scout: 'AGENT', nora: 'HUMAN' });
  const [ada, scout, nora] = [idOf(tenant, 'ada'), idOf(tenant, 'scout'), idOf(tenant, 'nora')];
  const open = async (...ids: string[]): Promise<string> => {
    const { openThread } = await ask<{ openThread: { thread: { id: string } } }>(
      tenant.apiKey,
      'mutation Open($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
      { ids },
    );
    return openThread.thread.id;
  };
  const [threadId, newThreadId] = [await open(ada, scout), await open(ada, nora)];
  const { createScratchpad } = await ask<{ createScratchpad: { scratchpad: { id: string } } }>(
    tenant.apiKey,
    'mutation ($id: ID!) { createScratchpad(input: { threadId: $id }) { scratchpad { id } } }',
    { id: threadId },
  );
  const scratchpadId = createScratchpad.scratchpad.id;
  const { postMessage } = await ask<{ postMessage: { message: { id: string } } }>(
    tenant.apiKey,
    'mutation Post($id: ID!, $as: ID!) { postMessage(input: { threadId: $id, as: $as, content: "Hello" }) { message { id } } }',
    { id: threadId, as: ada },
  );
  return { tenant, threadId, newThreadId, scratchpadId, messageId: postMessage.message.id };
};

const FOLLOW =
  'subscription ($threadId: ID!) { timeline(threadId: $threadId) { cursor event { seq } ended } }';

/** What `scout` takes for an example that finishes it, in a thread in which nothing is in hand yet. */
const deliveryFor = async (text: string, { tenant }: Place): Promise<Record<string, string>> => {
  if (!text.includes('$deliveryId')) return {};
  const [ada, scout, nora] = [idOf(tenant, 'ada'), idOf(tenant, 'scout'), idOf(tenant, 'nora')];
  const { openThread } = await ask<{ openThread: { thread: { id: string } } }>(
    tenant.apiKey,
    'mutation ($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
    { ids: [ada, scout, nora] },
  );
  const threadId = openThread.thread.id;
  const { takePending } = await ask<{ takePending: { deliveries: { deliveryId: string | null }[] } }>(
    tenant.apiKey,
    `mutation ($id: ID!, $ada: ID!, $scout: ID!) {
      postMessage(input: { threadId: $id, as: $ada, content: "And?" }) { cursor }
      takePending(input: { as: $scout, threadId: $id }) { deliveries { deliveryId } }
    }`,
    { id: threadId, ada, scout },
  );
  const deliveryId = takePending.deliveries.find((one) => one.deliveryId !== null)?.deliveryId;
  if (!deliveryId) throw new Error('Nothing was taken.');
  return { threadId, deliveryId };
};

/** A value for each variable that an example declares, by its name. */
const variablesFor = async (text: string, place: Place) => {
  const { tenant, threadId, newThreadId, scratchpadId, messageId } = place;
  const { thread } = await ask<{ thread: { timeline: { end: string } } }>(
    tenant.apiKey,
    'query End($id: ID!, $as: ID!) { thread(id: $id) { timeline(as: $as) { end } } }',
    { id: threadId, as: idOf(tenant, 'scout') },
  );
  const known: Record<string, unknown> = {
    threadId,
    newThreadId,
    scratchpadId,
    etag: '',
    messageId,
    userId: tenant.userId,
    ada: idOf(tenant, 'ada'),
    scout: idOf(tenant, 'scout'),
    end: thread.timeline.end,
    before: null,
    after: null,
    followQuery: FOLLOW,
    followVariables: { threadId },
    ...(await deliveryFor(text, place)),
  };
  const [operation] = parse(text).definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION) throw new Error('An example is one operation.');
  const names = operation.variableDefinitions?.map(({ variable }) => variable.name.value) ?? [];
  for (const name of names) if (!(name in known)) throw new Error(`No example value for $${name}.`);
  return {
    kind: operation.operation,
    variables: Object.fromEntries(names.map((name) => [name, known[name]])),
  };
};

const firstPayload = async (token: string, query: string, variables: Record<string, unknown>) => {
  const client = resumable(
    createClient({
      url: server.socketUrl,
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${token}` },
      ...steady,
    }),
  );
  try {
    for await (const result of client.iterate({ query, variables })) return result as ExecutionResult;
    throw new Error('The stream ended before its first payload.');
  } finally {
    await client.dispose();
  }
};

const schema = createSchema();

describe.each(FILES.map((file) => ({ file })))('$file', ({ file }) => {
  const blocks = BLOCKS.filter((block) => block.file === file);
  const inGraphQL = blocks.filter(({ language }) => language === 'graphql');
  let place: Place;
  beforeAll(async () => {
    place = await makePlace();
  });

  test('leads only to what is there', async () => {
    for (const target of await linksOf(file)) {
      if (/^[a-z]+:/.test(target)) continue;
      await expect(stat(join(dirname(file), target)), target).resolves.toBeDefined();
    }
  });

  for (const { line, text } of inGraphQL)
    test(`the operation at line ${line} runs`, async () => {
      const refusal = /^# refused: (\w+)$/m.exec(text)?.[1];
      expect(validate(schema, parse(text))).toEqual([]);
      const { kind, variables } = await variablesFor(text, place);
      const token = /^# with the administrator’s|^# with the administrator's/m.test(text)
        ? ADMIN_TOKEN
        : place.tenant.apiKey;
      const { errors } =
        kind === OperationTypeNode.SUBSCRIPTION
          ? await firstPayload(token, text, variables)
          : await server.graphql(token, text, variables);
      expect(errors?.[0]?.extensions?.code).toBe(refusal);
    });

  for (const block of blocks.filter(({ words }) => words.includes('run')))
    test(`the ${block.language} at line ${block.line} runs`, () => runBlock(block, place));
});

/** Runs what a reader would paste, against this server. */
const runBlock = async (
  { language, text }: Block,
  { tenant, threadId, scratchpadId }: Place,
): Promise<void> => {
  const here = new URL(server.url).host;
  const pasted = text.replaceAll('127.0.0.1:4000', here);
  const env = {
    ...process.env,
    URL: new URL(server.url).origin,
    KEY: tenant.apiKey,
    THREAD: threadId,
    PAD: scratchpadId,
  };
  const child =
    language === 'sh'
      ? spawn('sh', ['-c', pasted], { env, stdio: ['ignore', 'pipe', 'inherit'] })
      : spawn(process.execPath, ['--input-type=module', '-e', pasted], {
          env,
          stdio: ['ignore', 'pipe', 'inherit'],
        });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done) throw new Error('It ended without saying so much.');
    return value;
  };
  try {
    if (language === 'sh') {
      const answer: unknown = JSON.parse(await nextLine());
      expect(answer).not.toHaveProperty('errors');
      expect(answer).not.toHaveProperty('detail');
      expect(answer).not.toHaveProperty('status', 'not ready');
      return;
    }
    expect(await nextLine()).toBe('listening');
    await ask(
      tenant.participants.scout?.token ?? '',
      'mutation ($id: ID!) { postMessage(input: { threadId: $id, content: "Here." }) { cursor } }',
      { id: threadId },
    );
    expect(await nextLine()).toMatch(/^\d+ scout: Here\.$/);
  } finally {
    child.kill();
  }
};

/** Where the documents name each limit. */
const NAMED: Readonly<Record<keyof typeof LIMITS, string>> = {
  messageContent: 'message `content`',
  messageData: 'message `data`',
  messageContext: 'message `context`',
  memoryPayload: '`payload` of a memory',
  signalText: '`text` of a signal',
  signalData: '`data` of a signal',
  query: '`query` of a search',
  match: '`match` of `recall`',
  metaData: '`metaData`',
  tools: '`tools`',
  runData: '`input`, `result` of a run, each',
  runError: '`error` of a run',
  maxToolCalls: '`maxToolCalls` of a run',
  reason: '`reason` of a retraction',
  ticketOperation: '`query`, `variables`, `operationName` of a ticket, each',
  handle: '`handle`',
  label: '`label` of a credential',
  task: '`task` of a message’s context',
  kind: '`kind` of a message’s context',
  displayName: '`displayName`',
  name: '`name` of a user',
  idempotencyKey: '`idempotencyKey`',
  expiresInSeconds: '`expiresInSeconds`',
  ttlSeconds: '`ttlSeconds` of a scratchpad',
  minParticipants: '`participantIds` of a thread, distinct, at least',
  maxParticipants: '`participantIds` of a thread, distinct, at most',
  mentions: '`mentionIds`',
  sources: '`sourceIds`',
  pageSize: '`first`, `last`',
  defaultPageSize: 'a page without `first` and `last`',
  nodes: '`ids` of `nodes`',
  jsonDepth: 'levels of a JSON value',
};

const UNITS: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2 };

/** `256 KiB`, `128 characters`, `315,360,000 (ten years)`. */
const amountIn = (cell: string): number => {
  const [, digits = '', unit = ''] = /^([\d,]+) ?(\w*)/.exec(cell) ?? [];
  return Number(digits.replaceAll(',', '')) * (UNITS[unit] ?? 1);
};

describe('what the documents list', () => {
  test('every limit, with its amount', async () => {
    const limits = Object.entries(LIMITS) as [keyof typeof LIMITS, number][];
    expect(
      Object.fromEntries(
        (await tableOf('docs/api.md', 'what')).map(([what = '', limit = '']) => [what, amountIn(limit)]),
      ),
    ).toEqual({
      ...Object.fromEntries(limits.map(([name, limit]) => [NAMED[name], limit])),
      'the body of a scratchpad': PAD_LIMITS.content,
      'an entry of a scratchpad': PAD_LIMITS.entry,
      'entries appended in one call': PAD_LIMITS.batchEntries,
      'entries appended in one call, together': PAD_LIMITS.batchBytes,
      'entries in a scratchpad': PAD_LIMITS.entries,
      'entries in a scratchpad, together': PAD_LIMITS.bytes,
      '`maxChars` of `formattedView`': VIEW_CHARACTERS.most,
      'a request’s body': BODY_LIMIT,
      'a WebSocket message': WEBSOCKET_LIMITS.message,
    });
  });

  test('every configuration variable, with its default', async () => {
    const rows = await tableOf('docs/operations.md', 'variable');
    expect(rows.map(([name = '']) => codeIn(name)).sort()).toEqual([...CONFIG_VARIABLES].sort());
    const defaults = readConfig({});
    for (const [name = '', value = ''] of rows) {
      const stated = codeIn(value);
      if (stated !== undefined) expect(readConfig({ [codeIn(name) ?? '']: stated }), name).toEqual(defaults);
    }
  });

  test('every error code, with its status', async () => {
    const rows = await tableOf('docs/api.md', 'code');
    const listed = Object.fromEntries(rows.map(([code = '', status]) => [codeIn(code), Number(status)]));
    expect(listed).toEqual({
      ...ERROR_STATUS,
      BAD_REQUEST: 400,
      GRAPHQL_PARSE_FAILED: 400,
      GRAPHQL_VALIDATION_FAILED: 400,
    });
  });

  test('every metric', async () => {
    const rows = await tableOf('docs/operations.md', 'metric');
    const text = await (await fetch(new URL('/metrics', server.url))).text();
    const offered = [...text.matchAll(/^# TYPE (threadpad_\w+)/gm)].map(([, name]) => name);
    expect(rows.map(([name = '']) => codeIn(name)).sort()).toEqual(offered.sort());
  });
});

test('a ticket opens the stream that the documents show, by GET and without a header', async () => {
  const { tenant, threadId } = await makePlace();
  const variables = { threadId };
  const { createConnectionTicket } = await ask<{ createConnectionTicket: { ticket: string } }>(
    tenant.apiKey,
    'mutation ($query: String!, $variables: JSON) { createConnectionTicket(input: { query: $query, variables: $variables }) { ticket } }',
    { query: FOLLOW, variables },
  );
  const url = new URL(server.url);
  url.search = new URLSearchParams({
    query: FOLLOW,
    variables: JSON.stringify(variables),
    ticket: createConnectionTicket.ticket,
  }).toString();
  const stop = new AbortController();
  const response = await fetch(url, { headers: { accept: 'text/event-stream' }, signal: stop.signal });
  expect(response.status).toBe(200);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let read = '';
  while (!/event: next\nid: \S+\ndata: .*\n\n/.test(read)) read += (await reader?.read())?.value ?? '';
  stop.abort();
});
