import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { restAt } from '../support/rest.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';
import { until } from '../support/until.ts';

// Rex delegates, scout works. Until scout claims the run, its token is rex's to use: what scout stored elsewhere is not.

const SECRET = 'recalled everywhere';
const HERE = 'of this conversation';

let scene: Scene;
let padId: string;
let secretId: string;
beforeAll(async () => {
  scene = await toolScene();
  padId = await scene.padOf(await scene.open('scout', 'rex', 'ada'));
  const stored = await done<{ entry: { id: string } }>(scene.tenant.apiKey, 'storeMemory', 'entry { id }', {
    as: scene.idOf('scout'),
    payload: { note: SECRET },
  });
  secretId = stored.entry.id;
});
afterAll(() => scene.server.close());

const mutation = (name: string, fields: string): string =>
  `mutation ($input: ${name.charAt(0).toUpperCase()}${name.slice(1)}Input!) { ${name}(input: $input) { ${fields} } }`;
const done = async <Payload>(token: string, name: string, fields: string, input: object): Promise<Payload> =>
  (await scene.ask<Record<string, Payload>>(mutation(name, fields), { input }, token))[name] as Payload;
const codeOf = async (token: string, query: string, variables: object): Promise<unknown> =>
  (await scene.server.graphql(token, query, { ...variables })).errors?.[0]?.extensions?.code ?? 'OK';

interface Delegated {
  readonly token: string;
  readonly run: { readonly id: string };
}
const delegate = (token: string, input: object = {}): Promise<Delegated> =>
  done(token, 'delegateRun', 'token run { id }', { participantId: scene.idOf('scout'), ...input });
const claim = (runId: string): Promise<Delegated> =>
  done(scene.tokenOf('scout'), 'claimRun', 'token run { id }', { runId });
const delegated = async (): Promise<Delegated & { readonly conversation: string }> => {
  const made = await delegate(scene.tokenOf('rex'), { scratchpadId: padId });
  const { viewer } = await scene.ask<{ viewer: { run: { conversationThreadId: string } } }>(
    '{ viewer { run { conversationThreadId } } }',
    {},
    made.token,
  );
  return { ...made, conversation: viewer.run.conversationThreadId };
};
const toolAs = (token: string, input: object): Promise<{ output: string; isError: boolean }> =>
  done(token, 'executeTool', 'output isError', input);
const recallAs = async (token: string, more: object = {}): Promise<string> =>
  (await toolAs(token, { name: 'recall', arguments: { query: '' }, ...more })).output;
/** Without a tool call: a queued run stays queued. */
const knowsSecret = async (token: string): Promise<boolean> =>
  (
    await scene.ask<{ node: object | null }>(
      'query ($id: ID!) { node(id: $id) { id } }',
      { id: secretId },
      token,
    )
  ).node !== null;
const isDead = async (token: string): Promise<boolean> =>
  (await codeOf(token, '{ viewer { run { id } } }', {})) === 'UNAUTHENTICATED';

describe('what a delegator’s token delegates', () => {
  test('is a delegator’s too, whoever works there, and ends with the claim of the run; the runs stay', async () => {
    const { token, run } = await delegated();
    const own = await delegate(token);
    const below = await delegate(own.token);
    for (const one of [own, below]) expect(await knowsSecret(one.token)).toBe(false);
    expect(await recallAs(own.token)).not.toContain(SECRET);
    // With its own credential the worker delegates to itself, and holds what it gets.
    const workers = await delegate(scene.tokenOf('scout'), { parentRunId: run.id, idempotencyKey: 'own' });
    expect(await knowsSecret(workers.token)).toBe(true);
    await claim(run.id);
    for (const one of [{ token }, own, below]) await until(() => isDead(one.token));
    expect(await isDead(workers.token)).toBe(false);
    expect(await knowsSecret((await claim(below.run.id)).token)).toBe(true);
  });

  test('is so also where it repeats what the worker delegated', async () => {
    const { token, run } = await delegated();
    const given = { parentRunId: run.id, idempotencyKey: 'repeated' };
    const own = await delegate(scene.tokenOf('scout'), given);
    const again = await delegate(token, given);
    expect(again.run.id).toBe(own.run.id);
    expect(await recallAs(again.token)).not.toContain(SECRET);
    await claim(run.id);
    await until(() => isDead(again.token));
  });
});

describe('a delegator’s token', () => {
  const READ = `query ($m: ID!, $p: ID!, $t: ID!, $who: ID!) {
    node(id: $m) { ... on MemoryEntry { payload } }
    scratchpad(id: $p) { entries { nodes { sources { ... on MemoryEntry { payload } } } } }
    recall(threadId: $t, query: "") { nodes { payload } }
    thread(id: $t) { timeline { events { nodes { ... on SystemEvent { data }
      ... on Message { content sources { ... on MemoryEntry { payload } } } } } } }
    participant(id: $who) { memory { nodes { payload } } }
    runs { nodes { id input result } }
    threads { nodes { id } }
    searchMessages(query: "everywhere") { nodes { content } } }`;
  const readAs = async (token: string, conversation: string): Promise<string> =>
    JSON.stringify(
      (
        await scene.server.graphql(token, READ, {
          m: secretId,
          p: padId,
          t: conversation,
          who: scene.idOf('scout'),
        })
      ).data,
    );

  test('shows none of the worker’s memory but that of its conversation, and derives from no other', async () => {
    const { token, conversation, run } = await delegated();
    const here = await done<{ entry: { id: string } }>(token, 'storeMemory', 'entry { id }', {
      payload: { note: HERE },
    });
    for (const sourceId of [secretId, here.entry.id])
      await done(scene.tokenOf('scout'), 'postMessage', 'cursor', {
        threadId: conversation,
        content: 'derived',
        sourceIds: [sourceId],
      });
    await done(scene.tokenOf('scout'), 'appendScratchpadEntry', 'cursor', {
      scratchpadId: padId,
      content: 'derived',
      sourceIds: [secretId],
    });
    const seen = await readAs(token, conversation);
    expect(seen).not.toContain(SECRET);
    expect(seen.split(HERE).length - 1).toBe(2);
    const places = {
      postMessage: { threadId: conversation, content: 'x' },
      appendScratchpadEntry: { scratchpadId: padId, content: 'x' },
      storeMemory: { payload: 'x' },
    };
    const fields = { postMessage: 'cursor', appendScratchpadEntry: 'cursor', storeMemory: 'entry { id }' };
    for (const name of ['postMessage', 'appendScratchpadEntry', 'storeMemory'] as const) {
      const cite = (id: string, by: string) =>
        codeOf(by, mutation(name, fields[name]), { input: { ...places[name], sourceIds: [id] } });
      expect([await cite(secretId, token), await cite(here.entry.id, token)]).toEqual(['NOT_FOUND', 'OK']);
    }
    const rest = restAt(new URL(scene.server.url).origin);
    const bearer = { authorization: `Bearer ${token}` };
    const restful = await rest(bearer, 'GET', `/v1/threads/${conversation}/events`);
    expect([restful.status, JSON.stringify(restful.body).includes(SECRET)]).toEqual([200, false]);
    // The worker's own token derives from all that it recalls.
    expect(await readAs((await claim(run.id)).token, conversation)).toContain(SECRET);
  });

  test('is not told what the worker’s own credential read in the run, nor by the same call again', async () => {
    const { token, conversation, run } = await delegated();
    const scout = scene.tokenOf('scout');
    await toolAs(token, { name: 'store', arguments: { memory: HERE } });
    expect(await recallAs(token, { toolCallId: 'by rex' })).toContain(HERE);
    expect(await readAs(token, conversation)).toContain(`memory\\":\\"${HERE}`);
    const own = { runId: run.id, toolCallId: 'by scout' };
    expect(await recallAs(scout, own)).toContain(SECRET);
    expect(await readAs(token, conversation)).not.toContain(SECRET);
    const again = await toolAs(token, { name: 'recall', arguments: { query: '' }, toolCallId: 'by scout' });
    expect(again).toEqual({ isError: true, output: expect.not.stringContaining(SECRET) });
    // Each is answered again what it was told itself.
    expect(await recallAs(scout, own)).toContain(SECRET);
    expect(await recallAs(token, { toolCallId: 'by rex' })).toContain(HERE);
    // What is no secret is answered to both.
    const said = { name: 'send_message', arguments: { content: 'hello' }, toolCallId: 'said' };
    expect(await toolAs(token, said)).toEqual(await toolAs(scout, { ...said, runId: run.id }));
  });

  test('is dead once the run is claimed, and what is read then stands in the conversation again', async () => {
    const { token, conversation, run } = await delegated();
    const claimed = await claim(run.id);
    await recallAs(claimed.token);
    expect(await readAs(claimed.token, conversation)).toContain(SECRET);
    await until(() => isDead(token));
  });
});
