import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Scene, toolScene } from '../support/toolScene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await toolScene();
});
afterAll(() => scene.server.close());

const FIELDS = 'id sources { id ... on MemoryEntry { payload sources { id } } }';
interface Source {
  readonly id: string;
  readonly payload?: unknown;
  readonly sources?: readonly Source[];
}
interface Entry {
  readonly id: string;
  readonly sources: readonly Source[];
}

/** Stored by scout, as its own token. */
const store = async (threadId: string, payload: string, sourceIds: readonly string[]): Promise<Entry> =>
  (
    await scene.ask<{ storeMemory: { entry: Entry } }>(
      `mutation ($input: StoreMemoryInput!) { storeMemory(input: $input) { entry { ${FIELDS} } } }`,
      { input: { threadId, payload, sourceIds } },
      scene.tokenOf('scout'),
    )
  ).storeMemory.entry;
const setPolicy = (threadId: string, threadOnly: boolean) =>
  scene.ask('mutation ($input: SetMemoryPolicyInput!) { setMemoryPolicy(input: $input) { thread { id } } }', {
    input: { threadId, threadOnly },
  });

test('what a memory derives from is shown where that is recalled too, after a change of the policy as before', async () => {
  const [here, there] = [await scene.open('scout', 'ada'), await scene.open('scout', 'bo')];
  const local = await store(here, 'of this thread alone', []);
  await setPolicy(here, false);
  const wide = await store(here, 'of all threads', [local.id]);
  const wider = await store(here, 'of all threads too', [wide.id]);
  const token = scene.tokenOf('scout');

  const nested = { id: wide.id, payload: 'of all threads' };
  const inHere = [
    { id: wider.id, sources: [{ ...nested, sources: [{ id: local.id }] }] },
    { id: wide.id, sources: [{ id: local.id, payload: 'of this thread alone', sources: [] }] },
  ];
  const elsewhere = [
    { id: wider.id, sources: [{ ...nested, sources: [] }] },
    { id: wide.id, sources: [] },
  ];
  expect([wider, wide]).toEqual(inHere);

  const recalled = async (threadId: string): Promise<readonly Entry[]> =>
    (
      await scene.ask<{ recall: { nodes: Entry[] } }>(
        `query ($t: ID!) { recall(threadId: $t, first: 2) { nodes { ${FIELDS} } } }`,
        { t: threadId },
        token,
      )
    ).recall.nodes;
  expect(await recalled(here)).toEqual(inHere);
  expect(await recalled(there)).toEqual(elsewhere);

  const ids = [wider.id, wide.id];
  const byId = async (by: string): Promise<readonly Entry[]> =>
    (
      await scene.ask<{ nodes: Entry[] }>(
        `query ($ids: [ID!]!) { nodes(ids: $ids) { ... on MemoryEntry { ${FIELDS} } } }`,
        { ids },
        by,
      )
    ).nodes;
  expect(await byId(token)).toEqual(elsewhere);
  // The owner sees all.
  expect(await byId(scene.tenant.apiKey)).toEqual(inHere);
});
