import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Answer,
  createTenant,
  type Server,
  startApp,
  startProcess,
  type Tenant,
} from '../support/app.ts';
import { subscribe } from '../support/subscribe.ts';
import { until } from '../support/until.ts';
import { watchSocket } from '../support/watchers.ts';

let server: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  server = await startApp();
});
afterAll(() => server.close());

const RUN =
  'id status error result toolCalls maxToolCalls expiresAt conversationThreadId metaData scratchpadAccess';
interface RunFields {
  readonly maxToolCalls: number;
  readonly id: string;
  readonly status: string;
  readonly error: string | null;
  readonly result: unknown;
  readonly expiresAt: string | null;
  readonly conversationThreadId: string | null;
  readonly metaData: Readonly<Record<string, unknown>>;
}
interface Delegated {
  readonly run: RunFields;
  readonly token: string;
}

const codeOf = ({ errors }: Answer): string => errors?.[0]?.extensions?.code ?? 'OK';
type Input = Readonly<Record<string, unknown>>;
const mutate = (token: string, name: string, input: Input, fields: string, at: Server = server) => {
  const type = `${name.charAt(0).toUpperCase()}${name.slice(1)}Input`;
  return at.graphql<Record<string, never>>(
    token,
    `mutation($input: ${type}!) { ${name}(input: $input) { ${fields} } }`,
    { input },
  );
};
/** The payload of a mutation, or its code. */
const done = async <T>(token: string, name: string, input: Input, fields: string): Promise<T | string> => {
  const answer = await mutate(token, name, input, fields);
  return (answer.data?.[name] as T | undefined) ?? codeOf(answer);
};
const must = <T>(value: T | string): T => {
  if (typeof value === 'string') throw new Error(`It answered ${value}.`);
  return value;
};

const delegate = (token: string, input: Input): Promise<Delegated | string> =>
  done<Delegated>(token, 'delegateRun', input, `run { ${RUN} } token`);
const update = async (token: string, input: Input): Promise<RunFields | string> => {
  const payload = await done<{ run: RunFields }>(token, 'updateRun', input, `run { ${RUN} }`);
  return typeof payload === 'string' ? payload : payload.run;
};
const statusAfter = async (token: string, input: Input): Promise<string> => {
  const run = await update(token, input);
  return typeof run === 'string' ? run : run.status;
};
const claim = (token: string, runId: string): Promise<Delegated | string> =>
  done<Delegated>(token, 'claimRun', { runId }, `run { ${RUN} } token`);
const append = async (token: string, scratchpadId: string, content: string): Promise<string> =>
  codeOf(await mutate(token, 'appendScratchpadEntry', { scratchpadId, content }, 'entry { id }'));
const isDead = async (token: string, at: Server = server): Promise<boolean> =>
  codeOf(await at.graphql(token, '{ viewer { run { id } } }')) === 'UNAUTHENTICATED';

interface PadView {
  readonly content: { readonly text: string } | null;
  readonly entries: { readonly nodes: readonly { readonly content: string }[] } | null;
  readonly thread: object | null;
}
const padOf = async (token: string, id: string): Promise<PadView | null> => {
  const query =
    'query($id: ID!) { scratchpad(id: $id) { content { text } entries { nodes { content } } thread { id } } }';
  return (
    (await server.graphql<{ scratchpad: PadView | null }>(token, query, { id })).data?.scratchpad ?? null
  );
};
const entriesOf = async (token: string, id: string): Promise<string[]> =>
  (await padOf(token, id))?.entries?.nodes.map(({ content }) => content) ?? [];

/** A team with a pad; the agents out and far are in no thread of it, and listed. */
interface Scene {
  readonly tenant: Tenant;
  readonly threadId: string;
  readonly padId: string;
  readonly id: (handle: string) => string;
  readonly token: (handle: string) => string;
}
const createScene = async (): Promise<Scene> => {
  const tenant = await createTenant(server, {
    ann: 'HUMAN',
    boss: 'AGENT',
    mate: 'AGENT',
    out: 'AGENT',
    far: 'AGENT',
  });
  const id = (handle: string): string => tenant.participants[handle]?.id ?? '';
  const token = (handle: string): string => tenant.participants[handle]?.token ?? '';
  for (const handle of ['out', 'far'])
    await mutate(
      tenant.apiKey,
      'updateParticipant',
      { participantId: id(handle), listed: true },
      'participant { id }',
    );
  const members = [id('ann'), id('boss'), id('mate')];
  const opened = must(
    await done<{ thread: { id: string } }>(
      tenant.apiKey,
      'openThread',
      { participantIds: members },
      'thread { id }',
    ),
  );
  const threadId = opened.thread.id;
  const made = must(
    await done<{ scratchpad: { id: string } }>(
      tenant.apiKey,
      'createScratchpad',
      { threadId },
      'scratchpad { id }',
    ),
  );
  return { tenant, threadId, padId: made.scratchpad.id, id, token };
};
const change = async (
  { tenant, threadId, id }: Scene,
  handle: string,
  to: 'remove' | 'readd',
): Promise<string> =>
  codeOf(
    await server.graphql(
      tenant.apiKey,
      `mutation($input: ParticipantStateInput!) { ${to}Participant(input: $input) { cursor } }`,
      { input: { threadId, participantId: id(handle) } },
    ),
  );

const openThread = async ({ tenant, id }: Scene, handles: readonly string[]): Promise<string> =>
  must(
    await done<{ thread: { id: string } }>(
      tenant.apiKey,
      'openThread',
      { participantIds: handles.map(id) },
      'thread { id }',
    ),
  ).thread.id;

describe('a run', () => {
  test('is delegated with a private conversation, claimed once, worked and completed, and its tokens die with it', async () => {
    const scene = await createScene();
    const { padId, id, token, threadId } = scene;
    const { run, token: first } = must(
      await delegate(token('boss'), {
        participantId: id('out'),
        scratchpadId: padId,
        input: { task: 'look' },
        metaData: { note: 1, scratchpad_id: 'sp_forged', batfish_owner_user_id: 'user_forged' },
      }),
    );
    expect(run).toMatchObject({
      status: 'QUEUED',
      maxToolCalls: 200,
      scratchpadAccess: 'WRITE',
      // The delegator does not know where it works.
      conversationThreadId: null,
      metaData: {
        note: 1,
        scratchpad_id: padId,
        scratch_pad_thread: threadId,
        batfish_owner_user_id: scene.tenant.userId,
      },
    });
    const claims = await Promise.all([1, 2, 3].map(() => claim(token('out'), run.id)));
    const won = claims.filter((one) => typeof one !== 'string');
    expect(won).toHaveLength(1);
    expect(claims.filter((one) => one === 'INVALID_TRANSITION')).toHaveLength(2);
    const { token: second, run: claimed } = must(won[0] ?? '');
    // The worker has it now, and nobody else.
    await until(() => isDead(first));
    expect(claimed.conversationThreadId).toMatch(/^thread_/);
    expect(await append(second, padId, 'found')).toBe('OK');
    expect(await entriesOf(token('boss'), padId)).toEqual(['found']);
    expect(
      await statusAfter(second, { runId: run.id, status: 'INPUT_REQUIRED', result: { ask: 'which?' } }),
    ).toBe('INPUT_REQUIRED');
    expect(await statusAfter(second, { runId: run.id, status: 'IN_PROGRESS' })).toBe('IN_PROGRESS');
    expect(await update(second, { runId: run.id, status: 'COMPLETED', result: [42] })).toMatchObject({
      status: 'COMPLETED',
      result: [42],
    });
    await until(() => isDead(second));
    expect(await append(second, padId, 'late')).toBe('UNAUTHENTICATED');
    expect(await entriesOf(token('boss'), padId)).toEqual(['found']);
    expect(await statusAfter(token('boss'), { runId: run.id, status: 'CANCELLED' })).toBe(
      'INVALID_TRANSITION',
    );
  });

  test('goes no way but its own, and only for those whose it is to say', async () => {
    const { padId, id, token, tenant } = await createScene();
    const start = async (): Promise<Delegated> =>
      must(await delegate(token('boss'), { participantId: id('out'), scratchpadId: padId }));
    const { run, token: worker } = await start();
    const say = (by: string, status: string, more: Input = {}) =>
      statusAfter(by, { runId: run.id, status, ...more });
    for (const status of ['COMPLETED', 'FAILED', 'INPUT_REQUIRED'])
      expect([status, await say(worker, status)]).toEqual([status, 'INVALID_TRANSITION']);
    for (const status of ['IN_PROGRESS', 'COMPLETED', 'FAILED']) {
      expect(await say(token('boss'), status)).toBe('FORBIDDEN');
      expect(await say(tenant.apiKey, status)).toBe('FORBIDDEN');
    }
    expect(await say(worker, 'CANCELLED')).toBe('FORBIDDEN');
    expect(await say(token('out'), 'CANCELLED')).toBe('FORBIDDEN');
    expect(await say(worker, 'QUEUED')).toBe('INVALID_TRANSITION');
    expect(await say(worker, 'EXPIRED')).toBe('INVALID_TRANSITION');
    for (const stranger of ['far', 'ann', 'mate'])
      expect(await say(token(stranger), 'CANCELLED')).toBe('NOT_FOUND');
    expect(await statusAfter(worker, { runId: run.id })).toBe('BAD_USER_INPUT');
    const later = { expiresInSeconds: 60 };
    for (const by of [worker, token('out')])
      expect(await statusAfter(by, { runId: run.id, ...later })).toBe('FORBIDDEN');
    expect(await say(worker, 'IN_PROGRESS', later)).toBe('FORBIDDEN');
    expect(await say(worker, 'IN_PROGRESS')).toBe('IN_PROGRESS');
    expect(await say(worker, 'IN_PROGRESS')).toBe('INVALID_TRANSITION');
    // What a worker that fails had so far is not taken for a result.
    const failed = await update(token('out'), {
      runId: run.id,
      status: 'FAILED',
      error: 'no luck',
      result: 'half',
    });
    expect(failed).toMatchObject({ status: 'FAILED', error: 'no luck', result: null });
  });

  test('is the only open one of its worker in a conversation', async () => {
    const scene = await createScene();
    const { padId, id, token } = scene;
    const conversationThreadId = await openThread(scene, ['boss', 'mate']);
    const input = { participantId: id('mate'), scratchpadId: padId, conversationThreadId };
    const all = await Promise.all([1, 2, 3, 4].map(() => delegate(token('boss'), input)));
    expect(all.filter((one) => one === 'CONFLICT')).toHaveLength(3);
    const open = must(all.find((one) => typeof one !== 'string') ?? '');
    expect(await statusAfter(token('boss'), { runId: open.run.id, status: 'CANCELLED' })).toBe('CANCELLED');
    expect(typeof (await delegate(token('boss'), input))).toBe('object');
    expect(await delegate(token('boss'), { ...input, participantId: id('out') })).toBe('BAD_USER_INPUT');
  });

  test('is the same again for the same key, with a new token for the former', async () => {
    const scene = await createScene();
    const { padId, id, token } = scene;
    const input = { participantId: id('out'), scratchpadId: padId, idempotencyKey: 'once' };
    const first = must(await delegate(token('boss'), input));
    expect(await isDead(first.token)).toBe(false);
    expect(await delegate(token('boss'), { ...input, maxToolCalls: 3 })).toBe('IDEMPOTENCY_KEY_REUSED');
    const again = must(await delegate(token('boss'), input));
    expect(again.run.id).toBe(first.run.id);
    await until(() => isDead(first.token));
    expect(await isDead(again.token)).toBe(false);
    // Also where the run has ended meanwhile: then its token is dead from the beginning.
    expect(await change(scene, 'boss', 'remove')).toBe('OK');
    const late = must(await delegate(token('boss'), input));
    expect(late.run).toMatchObject({ id: first.run.id, status: 'CANCELLED' });
    expect(await isDead(late.token)).toBe(true);
  });

  test('is its worker’s alone once it was claimed, also for who delegates it again with its key', async () => {
    const { padId, id, token } = await createScene();
    const input = { participantId: id('out'), scratchpadId: padId, idempotencyKey: 'once' };
    const { run } = must(await delegate(token('boss'), input));
    const claimed = must(await claim(token('out'), run.id));
    const again = must(await delegate(token('boss'), input));
    expect(again.run).toMatchObject({ id: run.id, status: 'IN_PROGRESS' });
    expect(await isDead(again.token)).toBe(true);
    expect(await append(again.token, padId, 'as its worker')).toBe('UNAUTHENTICATED');
    expect(await append(claimed.token, padId, 'by its worker')).toBe('OK');
  });

  test('is answered again whoever cannot be seen any more, and whatever scratchpad is gone', async () => {
    const scene = await createScene();
    const { padId, id, token, tenant, threadId } = scene;
    const met = await openThread(scene, ['boss', 'far']);
    await mutate(
      tenant.apiKey,
      'updateParticipant',
      { participantId: id('far'), listed: false },
      'participant { id }',
    );
    const inputs = [
      { participantId: id('far'), scratchpadId: padId, idempotencyKey: 'met' },
      { participantId: id('mate'), metaData: { scratch_pad_thread: threadId }, idempotencyKey: 'located' },
    ];
    const first = await Promise.all(inputs.map(async (input) => must(await delegate(token('boss'), input))));
    for (const conversation of [met, threadId])
      await mutate(tenant.apiKey, 'deleteThread', { threadId: conversation }, 'deletedId');
    for (const [index, input] of inputs.entries()) {
      const again = must(await delegate(token('boss'), input));
      expect(again.run.id).toBe(first[index]?.run.id);
      expect(await delegate(token('boss'), { ...input, idempotencyKey: 'another' })).toBe('NOT_FOUND');
    }
  });

  test('is found by no thread and no run that whoever asks may not know of', async () => {
    const scene = await createScene();
    const { padId, threadId, id, token, tenant } = scene;
    const { apiKey } = tenant;
    const parent = must(await delegate(token('boss'), { participantId: id('out'), scratchpadId: padId }));
    const child = must(await delegate(parent.token, { participantId: id('far') }));
    const found = async (by: string, filter: Input): Promise<string[]> => {
      const { data } = await server.graphql<{ runs: { nodes: { id: string }[] } }>(
        by,
        'query($thread: ID, $parent: ID) { runs(threadId: $thread, parentRunId: $parent) { nodes { id } } }',
        filter,
      );
      return data?.runs.nodes.map((run) => run.id) ?? ['none'];
    };
    const byThread = { thread: threadId };
    expect(await found(apiKey, byThread)).toEqual([parent.run.id, child.run.id]);
    expect(await found(token('boss'), byThread)).toEqual([parent.run.id]);
    for (const outside of [token('out'), token('far'), parent.token, child.token])
      expect(await found(outside, byThread)).toEqual([]);
    const byParent = { parent: parent.run.id };
    for (const by of [apiKey, token('out'), parent.token])
      expect(await found(by, byParent)).toEqual([child.run.id]);
    for (const outside of [token('far'), child.token]) expect(await found(outside, byParent)).toEqual([]);
    // As deleteThread begins.
    await server.services.database.script(
      `UPDATE threads SET deleted_at = now(), set_hash = NULL WHERE id = '${threadId}';
       DELETE FROM thread_heads WHERE thread_id = '${threadId}'`,
    );
    for (const by of [apiKey, token('boss')]) expect(await found(by, byThread)).toEqual([]);
  });

  test('says where it stands and where it may go, wherever it is refused', async () => {
    const { padId, id, token } = await createScene();
    const { run, token: worker } = must(
      await delegate(token('boss'), { participantId: id('out'), scratchpadId: padId }),
    );
    const refusal = async (by: string, name: string, input: Input, fields: string) =>
      (await mutate(by, name, { runId: run.id, ...input }, fields)).errors?.[0];
    const queued = ['IN_PROGRESS', 'CANCELLED'];
    expect(await refusal(worker, 'updateRun', { status: 'COMPLETED' }, 'run { id }')).toMatchObject({
      message: 'The run is QUEUED: from there it may become IN_PROGRESS or CANCELLED.',
      extensions: { code: 'INVALID_TRANSITION', status: 'QUEUED', allowed: queued },
    });
    must(await update(worker, { runId: run.id, status: 'IN_PROGRESS' }));
    expect(await refusal(token('out'), 'claimRun', {}, 'token')).toMatchObject({
      message:
        'The run is IN_PROGRESS: from there it may become INPUT_REQUIRED, COMPLETED, FAILED or CANCELLED. Only one that is QUEUED can be claimed.',
      extensions: { code: 'INVALID_TRANSITION', status: 'IN_PROGRESS' },
    });
    must(await update(token('out'), { runId: run.id, status: 'COMPLETED' }));
    const ended = { code: 'INVALID_TRANSITION', status: 'COMPLETED', allowed: [] };
    expect(await refusal(token('boss'), 'updateRun', { status: 'CANCELLED' }, 'run { id }')).toMatchObject({
      message: 'The run is COMPLETED: it has ended, and stays so.',
      extensions: ended,
    });
    const call = { name: 'read_scratchpad', arguments: {} };
    expect(await refusal(token('out'), 'executeTool', call, 'output')).toMatchObject({
      message: 'The run is COMPLETED: it has ended, and stays so. It makes no more tool calls.',
      extensions: ended,
    });
    const child = await mutate(
      token('out'),
      'delegateRun',
      { participantId: id('far'), parentRunId: run.id },
      'token',
    );
    expect(child.errors?.[0]).toMatchObject({
      message: 'The run is COMPLETED: it has ended, and stays so. It delegates no more.',
      extensions: ended,
    });
  });
});

describe('who may delegate on a scratchpad', () => {
  test('is whoever may write to it now', async () => {
    const scene = await createScene();
    const { padId, id, token, tenant, threadId } = scene;
    const input = { participantId: id('far'), scratchpadId: padId };
    expect(await delegate(token('out'), input)).toBe('NOT_FOUND');
    expect(await delegate(token('boss'), { participantId: id('far') })).toBe('BAD_USER_INPUT');
    expect(await delegate(token('boss'), { ...input, participantId: id('ann') })).toBe('BAD_USER_INPUT');
    expect(
      await delegate(token('out'), { participantId: id('far'), metaData: { scratch_pad_thread: threadId } }),
    ).toBe('NOT_FOUND');
    expect(typeof (await delegate(tenant.apiKey, input))).toBe('object');
    const legacy = must(
      await delegate(token('ann'), { participantId: id('far'), metaData: { scratch_pad_thread: threadId } }),
    );
    expect(legacy.run.metaData).toMatchObject({ scratchpad_id: padId, scratch_pad_thread: threadId });
    await change(scene, 'boss', 'remove');
    expect(await delegate(token('boss'), input)).toBe('PARTICIPANT_NOT_ACTIVE');
    await change(scene, 'boss', 'readd');
    expect(typeof (await delegate(token('boss'), input))).toBe('object');
  });
});

describe('windows', () => {
  test('are not got around by a run delegated to oneself', async () => {
    const scene = await createScene();
    const { padId, id, token, tenant, threadId } = scene;
    await append(token('ann'), padId, 'seen');
    await change(scene, 'mate', 'remove');
    await append(token('ann'), padId, 'missed');
    await change(scene, 'mate', 'readd');
    await append(token('ann'), padId, 'seen again');
    const self = must(await delegate(token('mate'), { participantId: id('mate'), scratchpadId: padId }));
    expect(await entriesOf(self.token, padId)).toEqual(['seen', 'seen again']);
    // Nor by somebody else who delegates to it, be it the user.
    const byUser = must(await delegate(tenant.apiKey, { participantId: id('mate'), scratchpadId: padId }));
    expect(await entriesOf(byUser.token, padId)).toEqual(['seen', 'seen again']);
    await change(scene, 'mate', 'remove');
    expect(await padOf(byUser.token, padId)).toMatchObject({ content: null });
    expect(await append(byUser.token, padId, 'no')).toBe('PARTICIPANT_NOT_ACTIVE');
    // Its own delegation ended with its removal.
    await until(() => isDead(self.token));
    expect((await padOf(byUser.token, padId))?.thread ?? null).toBe(null);
    expect(threadId).toBeTruthy();
  });

  test('are its delegator’s for an outsider, who is out with it', async () => {
    const scene = await createScene();
    const { padId, id, token, tenant } = scene;
    await append(token('ann'), padId, 'seen');
    await change(scene, 'boss', 'remove');
    await append(token('ann'), padId, 'missed');
    await change(scene, 'boss', 'readd');
    const { token: worker } = must(
      await delegate(token('boss'), { participantId: id('out'), scratchpadId: padId }),
    );
    const { token: users } = must(
      await delegate(tenant.apiKey, { participantId: id('far'), scratchpadId: padId }),
    );
    expect(await entriesOf(worker, padId)).toEqual(['seen']);
    expect(await entriesOf(users, padId)).toEqual(['seen', 'missed']);
    expect((await padOf(worker, padId))?.thread).toBe(null);
    // By its own token the worker knows nothing of the scratchpad.
    expect(await padOf(token('out'), padId)).toBe(null);
    expect(await append(worker, padId, 'by the worker')).toBe('OK');
    await using socket = subscribe<{ scratchpad: { ended: string | null; change: object | null } }>(
      server,
      worker,
      'subscription($id: ID) { scratchpad(scratchpadId: $id) { ended change { __typename } } }',
      { id: padId },
    );
    await socket.until((all) => all.length > 0);
    await change(scene, 'boss', 'remove');
    expect(await append(worker, padId, 'too late')).not.toBe('OK');
    await socket.until((all) => all.at(-1)?.scratchpad.ended === 'RUN_CLOSED');
    await until(() => isDead(worker));
    expect(await entriesOf(users, padId)).toEqual(['seen', 'missed', 'by the worker']);
  });

  test('are not got around by the token of somebody who saw more', async () => {
    const scene = await createScene();
    const { padId, id, token } = scene;
    const whole = { participantId: id('mate'), scratchpadId: padId };
    const before = must(await delegate(token('boss'), whole));
    expect(await isDead(before.token)).toBe(false);
    await change(scene, 'boss', 'remove');
    await append(token('ann'), padId, 'missed');
    await change(scene, 'boss', 'readd');
    const { run, token: wider } = must(await delegate(token('boss'), whole));
    expect(await isDead(wider)).toBe(true);
    // The worker itself takes it, and sees what it always saw.
    expect(await entriesOf(must(await claim(token('mate'), run.id)).token, padId)).toEqual(['missed']);
  });

  test('are not got around in a conversation that was there before, nor in what the worker remembers', async () => {
    const scene = await createScene();
    const { padId, id, token, tenant } = scene;
    const conversationThreadId = await openThread(scene, ['boss', 'mate', 'far']);
    const elsewhere = await openThread(scene, ['mate', 'far']);
    await mutate(
      tenant.apiKey,
      'setMemoryPolicy',
      { threadId: elsewhere, threadOnly: false },
      'thread { id }',
    );
    const remembered = { threadId: elsewhere, payload: { note: 'of another thread' } };
    expect(codeOf(await mutate(token('mate'), 'storeMemory', remembered, 'entry { id }'))).toBe('OK');
    const input = { participantId: id('mate'), scratchpadId: padId };
    const held = must(await delegate(token('boss'), { ...input, conversationThreadId }));
    expect(await isDead(held.token)).toBe(true);

    const { token: handed, run } = must(await delegate(token('boss'), input));
    const viewer = await server.graphql<{ viewer: { run: { conversationThreadId: string } } }>(
      handed,
      '{ viewer { run { conversationThreadId } } }',
    );
    const threadId = viewer.data?.viewer.run.conversationThreadId ?? '';
    const recalled = async (by: string): Promise<unknown> =>
      (
        await server.graphql<{ recall: { nodes: readonly { payload: unknown }[] } }>(
          by,
          'query($id: ID!) { recall(threadId: $id, query: "") { nodes { payload } } }',
          { id: threadId },
        )
      ).data?.recall.nodes.map(({ payload }) => payload);
    expect(await recalled(handed)).toEqual([]);
    const own = { threadId, payload: { note: 'of this run' } };
    expect(codeOf(await mutate(handed, 'storeMemory', own, 'entry { id }'))).toBe('OK');
    expect(await recalled(handed)).toEqual([own.payload]);
    expect(await recalled(must(await claim(token('mate'), run.id)).token)).toEqual([
      own.payload,
      remembered.payload,
    ]);
  });

  test('let a run do with its scratchpad what its access says, and never clear it', async () => {
    const { padId, id, token } = await createScene();
    const expected = {
      READ: ['FORBIDDEN', 'FORBIDDEN', false],
      APPEND: ['OK', 'FORBIDDEN', true],
      WRITE: ['OK', 'OK', true],
    } as const;
    for (const [scratchpadAccess, [appending, writing, mayWrite]] of Object.entries(expected)) {
      const { token: worker } = must(
        await delegate(token('boss'), { participantId: id('out'), scratchpadId: padId, scratchpadAccess }),
      );
      expect(await append(worker, padId, 'x')).toBe(appending);
      const set = await mutate(worker, 'setScratchpadContent', { scratchpadId: padId, text: 'y' }, 'cursor');
      expect(codeOf(set)).toBe(writing);
      const cleared = await server.graphql(
        worker,
        'mutation($id: ID!) { clearScratchpad(input: { scratchpadId: $id }) { scratchpad { id } } }',
        { id: padId },
      );
      expect(codeOf(cleared)).toBe('FORBIDDEN');
      const asked = await server.graphql<{ scratchpad: { viewerMayWrite: boolean } }>(
        worker,
        'query($id: ID!) { scratchpad(id: $id) { viewerMayWrite } }',
        { id: padId },
      );
      expect(asked.data?.scratchpad.viewerMayWrite).toBe(mayWrite);
    }
  });
});

describe('a run of a run', () => {
  test('is no wider and lives no longer than its parent, and ends with it', async () => {
    const { padId, id, token } = await createScene();
    const parent = must(
      await delegate(token('boss'), {
        participantId: id('out'),
        scratchpadId: padId,
        scratchpadAccess: 'APPEND',
        expiresInSeconds: 600,
      }),
    );
    const child = (input: Input) => delegate(parent.token, { participantId: id('far'), ...input });
    expect(await child({ scratchpadAccess: 'WRITE' })).toBe('FORBIDDEN');
    expect(await child({ expiresInSeconds: 700 })).toBe('FORBIDDEN');
    expect(await child({ scratchpadId: `sp_${'0'.repeat(26)}` })).toBe('NOT_FOUND');
    expect(await child({ participantId: id('ann') })).toBe('NOT_FOUND');
    const made = must(await child({}));
    expect(made.run).toMatchObject({ expiresAt: parent.run.expiresAt });
    expect(await append(made.token, padId, 'by the child')).toBe('OK');
    const tree = await server.graphql<{
      runs: { nodes: { id: string; parentRun: { id: string } | null }[] };
    }>(parent.token, '{ runs { nodes { id parentRun { id } delegator { handle } } } }');
    expect(tree.data?.runs.nodes).toEqual([
      { id: parent.run.id, parentRun: null, delegator: { handle: 'boss' } },
      { id: made.run.id, parentRun: { id: parent.run.id }, delegator: { handle: 'out' } },
    ]);
    await statusAfter(token('boss'), { runId: parent.run.id, status: 'CANCELLED' });
    await until(async () => (await isDead(parent.token)) && (await isDead(made.token)));
    expect(await child({})).toBe('UNAUTHENTICATED');
  });

  test('makes no more tool calls than its parent has left', async () => {
    const { padId, id, token } = await createScene();
    const { token: parent } = must(
      await delegate(token('boss'), { participantId: id('out'), scratchpadId: padId, maxToolCalls: 3 }),
    );
    const child = async (input: Input): Promise<number | string> => {
      const made = await delegate(parent, { participantId: id('far'), ...input });
      return typeof made === 'string' ? made : made.run.maxToolCalls;
    };
    expect(await child({ maxToolCalls: 4 })).toBe('FORBIDDEN');
    expect(await child({ maxToolCalls: 3 })).toBe(3);
    for (const left of [2, 1]) {
      await mutate(parent, 'executeTool', { name: 'read_scratchpad', arguments: {} }, 'output');
      expect(await child({})).toBe(left);
      expect(await child({ maxToolCalls: left + 1 })).toBe('FORBIDDEN');
    }
    await mutate(parent, 'executeTool', { name: 'read_scratchpad', arguments: {} }, 'output');
    expect(await child({})).toBe('FORBIDDEN');
  });

  test('makes none that its parent has not, with all who work for it at once', async () => {
    const { tenant, padId, id, token } = await createScene();
    await using other = await startProcess(server.stores);
    const made = must(
      await delegate(token('boss'), { participantId: id('out'), scratchpadId: padId, maxToolCalls: 7 }),
    );
    const children = await Promise.all(
      [1, 2].map(async () => must(await delegate(made.token, { participantId: id('far') }))),
    );
    const below = must(await delegate(children[0]?.token ?? '', { participantId: id('far') }));
    const call = async (worker: string, at: Server): Promise<boolean | undefined> => {
      const input = { name: 'read_scratchpad', arguments: {} };
      const { data } = await mutate(worker, 'executeTool', input, 'isError', at);
      return (data?.executeTool as { isError: boolean } | undefined)?.isError;
    };
    const workers = [made, below, ...children].map((one) => one.token);
    const answers = await Promise.all(
      [server, other, server, other].flatMap((at) => workers.map((worker) => call(worker, at))),
    );
    expect(answers.filter((isError) => isError === false)).toHaveLength(7);
    expect(answers.filter((isError) => isError === true)).toHaveLength(9);
    const counted = await server.graphql<{ run: { status: string; toolCalls: number } }>(
      tenant.apiKey,
      'query($id: ID!) { run(id: $id) { status toolCalls } }',
      { id: made.run.id },
    );
    expect(counted.data?.run.toolCalls).toBe(7);
  });
});

describe('an ending', () => {
  test('is known to sockets and processes everywhere within a second, of whatever kind it is', async () => {
    const scene = await createScene();
    const { padId, id, token, tenant } = scene;
    await using other = await startProcess(server.stores);
    const endings: [string, (runId: string, worker: string) => Promise<unknown>][] = [
      [
        'COMPLETED',
        async (runId, worker) => {
          await statusAfter(worker, { runId, status: 'IN_PROGRESS' });
          return statusAfter(worker, { runId, status: 'COMPLETED' });
        },
      ],
      ['CANCELLED', (runId) => statusAfter(tenant.apiKey, { runId, status: 'CANCELLED' })],
      ['EXPIRED', (runId) => update(token('boss'), { runId, expiresInSeconds: 1 })],
    ];
    for (const [status, end] of endings) {
      const { run, token: worker } = must(
        await delegate(token('boss'), {
          participantId: id('out'),
          scratchpadId: padId,
          expiresInSeconds: 600,
        }),
      );
      expect(await isDead(worker, other)).toBe(false);
      const watching = subscribe<{ run: { run: { status: string }; ended: string | null } }>(
        other,
        token('boss'),
        'subscription($id: ID!) { run(runId: $id) { run { status } ended } }',
        { id: run.id },
      );
      await watching.until((all) => all.length > 0);
      const own = await server.graphql<{ viewer: { run: RunFields } }>(
        worker,
        `{ viewer { run { ${RUN} } } }`,
      );
      const conversation = own.data?.viewer.run.conversationThreadId ?? '';
      const socket = await watchSocket(other, worker, conversation);
      await end(run.id, worker);
      // Of a deadline: which is a second away at most.
      const answered = performance.now();
      const last = await watching.until((all) => all.at(-1)?.run.ended === 'RUN_CLOSED');
      expect(last.at(-1)?.run.run.status).toBe(status);
      await until(() => isDead(worker, other));
      expect(await socket.over).toMatchObject({ code: 4403 });
      expect(performance.now() - answered).toBeLessThan(status === 'EXPIRED' ? 2_000 : 1_000);
      expect(socket.reason()).toBe('RUN_CLOSED');
      await watching[Symbol.asyncDispose]();
    }
  });

  test('waits for a deadline that is moved to later, on every process', async () => {
    const { padId, id, token } = await createScene();
    await using other = await startProcess(server.stores);
    const { run, token: worker } = must(
      await delegate(token('boss'), { participantId: id('out'), scratchpadId: padId, expiresInSeconds: 3 }),
    );
    const first = performance.now();
    const own = await server.graphql<{ viewer: { run: RunFields } }>(worker, `{ viewer { run { ${RUN} } } }`);
    const conversation = own.data?.viewer.run.conversationThreadId ?? '';
    expect(await isDead(worker, other)).toBe(false);
    const sockets = await Promise.all([server, other].map((at) => watchSocket(at, worker, conversation)));
    must(await update(token('boss'), { runId: run.id, expiresInSeconds: 600 }));
    // Past the old deadline and past every reading of endings since.
    await until(async () => performance.now() - first > 4_000);
    expect(sockets.map(({ reason }) => reason())).toEqual([null, null]);
    expect(await isDead(worker, other)).toBe(false);
    expect(await isDead(worker)).toBe(false);
    must(await update(token('boss'), { runId: run.id, expiresInSeconds: 1 }));
    const moved = performance.now();
    expect(await Promise.all(sockets.map(({ over }) => over))).toMatchObject([
      { code: 4403 },
      { code: 4403 },
    ]);
    expect(performance.now() - moved).toBeLessThan(2_000);
    expect(sockets.map(({ reason }) => reason())).toEqual(['RUN_CLOSED', 'RUN_CLOSED']);
  });

  test('comes with the deletion of its conversation', async () => {
    const { padId, id, token, tenant } = await createScene();
    const { run, token: worker } = must(
      await delegate(token('boss'), { participantId: id('out'), scratchpadId: padId }),
    );
    const found = await server.graphql<{ run: RunFields }>(
      tenant.apiKey,
      `query($id: ID!) { run(id: $id) { ${RUN} } }`,
      {
        id: run.id,
      },
    );
    await mutate(
      tenant.apiKey,
      'deleteThread',
      { threadId: found.data?.run.conversationThreadId },
      'deletedId',
    );
    await until(() => isDead(worker));
    const after = await server.graphql<{ run: RunFields }>(
      token('boss'),
      `query($id: ID!) { run(id: $id) { ${RUN} } }`,
      {
        id: run.id,
      },
    );
    expect(after.data?.run).toMatchObject({ status: 'CANCELLED', error: 'Its conversation was deleted.' });
  });

  test('comes with a deletion that is not cleared up yet, and the conversation is not told any more', async () => {
    const { padId, id, token, tenant } = await createScene();
    const { run } = must(await delegate(tenant.apiKey, { participantId: id('out'), scratchpadId: padId }));
    const threadId = run.conversationThreadId ?? '';
    const query = `query($id: ID!, $thread: ID!) {
      run(id: $id) { status conversationThreadId conversationThread { id } }
      runs(threadId: $thread) { nodes { id } } }`;
    const look = async (by: string) =>
      (await server.graphql(by, query, { id: run.id, thread: threadId })).data;
    for (const by of [tenant.apiKey, token('out')])
      expect(await look(by)).toEqual({
        run: { status: 'QUEUED', conversationThreadId: threadId, conversationThread: { id: threadId } },
        runs: { nodes: [{ id: run.id }] },
      });
    // As deleteThread begins.
    await server.services.database.script(
      `UPDATE threads SET deleted_at = now(), set_hash = NULL WHERE id = '${threadId}';
       DELETE FROM thread_heads WHERE thread_id = '${threadId}'`,
    );
    for (const by of [tenant.apiKey, token('out')])
      expect(await look(by)).toEqual({
        run: { status: 'CANCELLED', conversationThreadId: null, conversationThread: null },
        runs: { nodes: [] },
      });
  });
});
