import { type GraphQLInterfaceType, getNamedType, isObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSchema } from '../../src/graphql/schema.ts';
import { timelineCursor } from '../../src/shared/cursors.ts';
import { newId } from '../../src/shared/ids.ts';
import { startApp } from '../support/app.ts';
import { ask, bearerOf, type Caller, type Reply } from '../support/asking.ts';
import { ADMIN_TOKEN } from '../support/identity.ts';
import {
  argumentsOf,
  type Leaf,
  leavesOf,
  type RootField,
  rootFields,
  selectionOf,
  type Variables,
  variablesOf,
} from '../support/operations.ts';
import { openRawSocket } from '../support/rawSocket.ts';
import {
  entryCursorsOf,
  isEither,
  isGiven,
  isReference,
  type References,
  type Refers,
  referencesIn,
  refersTo,
  sampleOf,
  unknown,
} from '../support/samples.ts';
import { createWorld, cursorOf, rowsOf, type World } from '../support/world.ts';

const schema = createSchema();

/** Where to find an object whose fields take arguments. A type that is not here fails the tests. */
const REACH: Readonly<Record<string, (field: string) => string>> = {
  Thread: (field) => `thread(id: $reach) { ${field} }`,
  Scratchpad: (field) => `thread(id: $reach) { scratchpad { ${field} } }`,
  Participant: (field) => `thread(id: $reach) { participants { participant { ${field} } } }`,
  Timeline: (field) => `thread(id: $reach) { timeline { ${field} } }`,
};

/** Fields below the root that take an id or a cursor, each as an operation of its own. */
const innerFields = (): RootField[] =>
  Object.values(schema.getTypeMap()).flatMap((type) => {
    if (!isObjectType(type) || ['Query', 'Mutation', 'Subscription'].includes(type.name)) return [];
    return Object.values(type.getFields()).flatMap((field) => {
      const leaves = leavesOf(field, type.name);
      if (!leaves.some(isReference)) return [];
      const reach = REACH[type.name];
      if (reach === undefined)
        throw new Error(`${type.name}.${field.name} takes an id: say in REACH how to get there.`);
      const { declared, passed } = argumentsOf(field);
      const inner = `${field.name}${passed}${selectionOf(schema, getNamedType(field.type), 2)}`;
      const document = `query${declared.replace('(', '($reach: ID!, ')} { ${reach(inner)} }`;
      return [{ root: 'query' as const, name: `${type.name}.${field.name}`, field, leaves, document }];
    });
  });

const FIELDS = [...rootFields(schema, 2), ...innerFields()];

let server: Awaited<ReturnType<typeof startApp>>;
let own: World;
let foreign: World;
beforeAll(async () => {
  // Everything there is of a type is asked for at once.
  server = await startApp({ MAX_QUERY_COST: '100000000' });
  own = await createWorld(server.services, 'ourmark');
  foreign = await createWorld(server.services, 'theirmark');
});
afterAll(() => server.close());

/** Somebody who asks, and what must not exist for it. */
interface Scene {
  readonly caller: Caller;
  readonly hidden: References;
  /** What must not stand in any answer. */
  readonly secrets: readonly string[];
  /** Whoever asks, as a participant; ada if absent. */
  readonly self?: string;
  /** Who acts, where somebody must be named. */
  readonly as?: string;
  /** Whose view is asked for, wherever that can be said. */
  readonly looksAs?: string;
}

const only = (references: References, ...kinds: Refers[]): References =>
  Object.fromEntries(kinds.map((kind) => [kind, references[kind] ?? []]));

const SCENES = [
  'another tenant’s, with an API key',
  'another tenant’s, acting as a participant',
  'another tenant’s, with a participant’s token',
  'a thread one is no member of',
  'a thread that whom one acts as is no member of',
  'a thread that whom one looks as is no member of',
  'what was said while one was removed',
  'what only others of one’s tenant hold',
  'what a run does not reach',
  'everything, for the administrator',
] as const;

const scenes = (): Record<(typeof SCENES)[number], Scene> => {
  const { ada, scout, rex, nora, lil } = own.people;
  const theirs = referencesIn(foreign);
  const ours = referencesIn(own);
  const inThread = only(
    ours,
    'Thread',
    'Event',
    'Engagement',
    'Scratchpad',
    'ScratchpadEntry',
    'MemoryEntry',
    'Run',
    'Position',
    'PadPosition',
    'EntryPosition',
  );
  const words = [own.message, own.reply, own.late].map(({ id }) => id);
  const beyond = [own.late, own.retraction];
  return {
    'another tenant’s, with an API key': {
      caller: bearerOf('key', own.apiKey),
      hidden: theirs,
      secrets: ['theirmark'],
      as: ada.id,
    },
    'another tenant’s, acting as a participant': {
      caller: bearerOf('acting', own.apiKey, ada.id),
      hidden: theirs,
      secrets: ['theirmark'],
    },
    'another tenant’s, with a participant’s token': {
      caller: bearerOf('ada', ada.token),
      hidden: theirs,
      secrets: ['theirmark'],
    },
    'a thread one is no member of': {
      caller: bearerOf('nora', nora.token),
      self: nora.id,
      hidden: {
        ...inThread,
        Participant: [ada.id, scout.id, rex.id],
        Credential: [ada.credentialId, scout.credentialId, own.owner.credentialId],
      },
      secrets: ['ourmark-ada', 'ourmark-scout', 'Is anybody', ...words],
    },
    'a thread that whom one acts as is no member of': {
      caller: bearerOf('acting as nora', own.apiKey, nora.id),
      self: nora.id,
      hidden: inThread,
      secrets: ['Is anybody', ...words],
    },
    'a thread that whom one looks as is no member of': {
      caller: bearerOf('key', own.apiKey),
      hidden: inThread,
      secrets: ['Is anybody', ...words],
      looksAs: nora.id,
    },
    'what was said while one was removed': {
      caller: bearerOf('rex', rex.token),
      self: rex.id,
      hidden: {
        Run: [own.runId],
        Event: beyond.map(({ id }) => id),
        Position: beyond.map(cursorOf),
        ScratchpadEntry: [own.lateNote.id],
        PadPosition: own.padCursors.slice(1),
        EntryPosition: entryCursorsOf(own).slice(1),
        Participant: [nora.id],
      },
      secrets: ['Rex is gone', 'regret', 'lost it', 'ourmark plan', ...beyond.map(({ id }) => id)],
    },
    'what only others of one’s tenant hold': {
      caller: bearerOf('lil', lil.token),
      self: lil.id,
      hidden: {
        Credential: [ada.credentialId, own.owner.credentialId],
        Participant: [nora.id],
        Run: [own.runId],
      },
      secrets: ['ourmark-nora'],
    },
    'what a run does not reach': {
      caller: bearerOf('run', own.runToken),
      hidden: {
        Thread: [own.laterThreadId],
        Credential: [ada.credentialId, scout.credentialId, own.owner.credentialId],
        Participant: [nora.id],
        MemoryEntry: [own.known.id],
      },
      secrets: ['ourmark-nora', own.laterThreadId],
    },
    'everything, for the administrator': {
      caller: bearerOf('admin', ADMIN_TOKEN),
      hidden: { ...ours, User: [], 'List:user': [] },
      secrets: ['ourmark', 'theirmark'],
    },
  };
};

/** Values that never existed; a position is one in this thread. */
const never =
  (threadId: string) =>
  (refers: Refers): string => {
    if (refers === 'Thread') return threadId;
    return refers === 'Position' ? timelineCursor(threadId, 99, newId('Event')) : unknown(refers);
  };

/** A call that would do its work, but for the values at some paths. */
const callWith = (
  { leaves, document }: RootField,
  scene: Scene,
  replaced: ReadonlyMap<Leaf, string>,
): Variables => {
  const threadId = [...replaced].find(([{ name }]) => name === 'threadId')?.[1];
  const given = (leaf: Leaf): unknown => {
    const value = replaced.get(leaf);
    if (value !== undefined) return leaf.isList ? listWith(scene, leaf, value) : value;
    if (leaf.name === 'as') return scene.looksAs ?? scene.as;
    // A position in another thread than is asked about would be refused for that alone.
    if (leaf.name === 'upTo' && threadId !== undefined) return timelineCursor(threadId, 1, newId('Event'));
    return sampleOf(leaf, own);
  };
  const isThere = (leaf: Leaf): boolean =>
    replaced.has(leaf) ||
    (leaf.name === 'as' && scene.looksAs !== undefined) ||
    (isGiven(leaf, scene.as !== undefined) && ![...replaced.keys()].some((other) => isEither(leaf, other)));
  const values = leaves.filter(isThere).map((leaf) => [leaf.path, given(leaf)] as const);
  return { ...variablesOf(values), ...(document.includes('$reach') ? { reach: own.threadId } : {}) };
};

/** Beside somebody who is there, so that it alone decides. */
const listWith = ({ self }: Scene, { name }: Leaf, value: string): string[] =>
  name === 'participantIds' || name === 'mentionIds' ? [self ?? own.people.ada.id, value] : [value];

/** What a new object has of its own. */
const alike = ({ status, text }: Reply): string =>
  `${status} ${text}`
    .replace(/\b(event|thread|part|cred|eng|sp|user|mem|run)_[0-9a-z]{26}/g, '<$1>')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replace(/"(\w*[cC]ursor|after|end)":"[\w-]+"/g, '"$1":"<cursor>"')
    .replace(/"tp_\w+_[\w-]+"/g, '"<secret>"')
    .replace(/"lastUsedAt":(null|"<time>")/g, '"lastUsedAt":"<time>"')
    .replace(/\bentry_[0-9a-z]+/g, '<entry>')
    .replace(/"etag":"[^"]*"/g, '"etag":"<etag>"')
    .replace(/"(seq|threadSeq|version|unreadCount)":\d+/g, '"$1":0');

describe('what may not be seen answers as what never existed', () => {
  test.for(SCENES)('%s', async (name) => {
    const scene = scenes()[name];
    const before = await rowsOf(server.services, foreign.userId);
    let compared = 0;
    for (const field of FIELDS) {
      const leaves = field.leaves.filter(isReference);
      // The full record is the user's.
      if (scene.looksAs !== undefined && !leaves.some(({ name }) => name === 'as')) continue;
      for (const leaf of leaves)
        for (const refers of refersTo(leaf)) {
          // Events differ in kind, wherever one can be named; of everything else two are as good as all.
          const hidden = (scene.hidden[refers] ?? []).slice(0, refers === 'Event' ? 6 : 2);
          if (hidden.length === 0) continue;
          // Beside a thread that is asked about, a position of ours could only be one of it.
          const isOurs = refers === 'Position' && !hidden.includes(cursorOf(foreign.message));
          const threadId = isOurs ? own.threadId : newId('Thread');
          const reference = await ask(
            server,
            scene.caller,
            field,
            callWith(field, scene, new Map([[leaf, never(threadId)(refers)]])),
          );
          for (const value of hidden) {
            const variables = callWith(field, scene, new Map([[leaf, value]]));
            const reply = await ask(server, scene.caller, field, variables);
            const where = `${field.root} ${field.name}, ${leaf.path.join('.')}: ${refers} ${value}`;
            expect(`${where} ${alike(reply)}`).toBe(`${where} ${alike(reference)}`);
            expect(where + secretsIn(reply, scene.secrets)).toBe(where);
            compared += 1;
          }
        }
      // All of them at once, as somebody would who found them in a log.
      const all = (pick: (refers: Refers) => string | undefined): Map<Leaf, string> =>
        new Map(
          leaves.flatMap((leaf) => {
            const value = refersTo(leaf)
              .map(pick)
              .find((candidate) => candidate !== undefined);
            return value === undefined ? [] : [[leaf, value] as const];
          }),
        );
      const made = never(scene.hidden.Thread === undefined ? own.threadId : newId('Thread'));
      const [known, invented] = [
        all((refers) => scene.hidden[refers]?.[0]),
        all((refers) => (scene.hidden[refers]?.length ? made(refers) : undefined)),
      ];
      if (known.size < 2) continue;
      const [reply, reference] = [
        await ask(server, scene.caller, field, callWith(field, scene, known)),
        await ask(server, scene.caller, field, callWith(field, scene, invented)),
      ];
      expect(`${field.name} ${alike(reply)}`).toBe(`${field.name} ${alike(reference)}`);
      compared += 1;
    }
    expect(compared).toBeGreaterThan(10);
    expect(await rowsOf(server.services, foreign.userId)).toEqual(before);
  });
});

const secretsIn = ({ text }: Reply, secrets: readonly string[]): string =>
  secrets.filter((secret) => text.includes(secret)).join(', ');

describe('a node', () => {
  /** One of each type; a type that is not here fails the test. */
  const nodes = (world: World): Record<string, string> => ({
    User: world.userId,
    Participant: world.people.ada.id,
    Credential: world.people.ada.credentialId,
    Thread: world.threadId,
    Engagement: world.engagementId,
    Scratchpad: world.scratchpadId,
    ScratchpadEntry: world.note.id,
    MemoryEntry: world.known.id,
    Run: world.runId,
    Message: world.reply.id,
    ParticipantStateChanged: world.removal.id,
    Retraction: world.retraction.id,
    SystemEvent: world.opening.id,
  });
  /** What each does not see; the user itself sees all. */
  const hiddenFrom: Readonly<Record<string, (type: string) => boolean>> = {
    ada: (type) => type === 'MemoryEntry',
    scout: (type) => type === 'Credential' || type === 'Run',
    rex: (type) => ['Credential', 'Retraction', 'MemoryEntry', 'Run'].includes(type),
    nora: (type) => type !== 'User',
    stranger: () => true,
    'the stranger’s user': () => true,
  };

  test('of each type is seen by those who may, and is nothing to all others', async () => {
    const byType = nodes(own);
    const types = schema
      .getPossibleTypes(schema.getType('Node') as GraphQLInterfaceType)
      .map(({ name }) => name);
    expect(types.sort()).toEqual(Object.keys(byType).sort());
    const callers: Record<string, Caller> = {
      ada: bearerOf('ada', own.people.ada.token),
      scout: bearerOf('scout', own.people.scout.token),
      rex: bearerOf('rex', own.people.rex.token),
      nora: bearerOf('nora', own.people.nora.token),
      stranger: bearerOf('stranger', foreign.people.ada.token),
      'the stranger’s user': bearerOf('key', foreign.apiKey),
    };
    const document = 'query($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }';
    const ids = Object.values(byType);
    const seenBy = async (caller: Caller): Promise<string[]> => {
      const { text } = await ask(server, caller, { root: 'query', document }, { ids });
      const { data } = JSON.parse(text) as { data: { nodes: ({ __typename: string; id: string } | null)[] } };
      return data.nodes.flatMap((node, index) => {
        if (node !== null) expect(node.id).toBe(ids[index]);
        return node === null ? [] : [node.__typename];
      });
    };
    expect(await seenBy(bearerOf('key', own.apiKey))).toEqual(Object.keys(byType));
    for (const [who, caller] of Object.entries(callers)) {
      const seen = types.filter((type) => hiddenFrom[who]?.(type) === false);
      expect([who, (await seenBy(caller)).sort()]).toEqual([who, seen]);
    }
  });
});

test('nobody acts for another tenant’s participant, over HTTP or on a socket, nor learns that there is one', async () => {
  const viewer = { root: 'query' as const, document: '{ viewer { participant { id } } }' };
  for (const token of [own.apiKey, own.people.ada.token, ADMIN_TOKEN]) {
    const answers = new Set<string>();
    for (const id of [foreign.people.ada.id, unknown('Participant'), 'x', foreign.userId, own.threadId]) {
      const { status, text, code } = await ask(server, bearerOf('', token, id), viewer, {});
      expect(['NOT_FOUND', 'FORBIDDEN']).toContain(code);
      const socket = await openRawSocket(server.socketUrl);
      socket.send({ type: 'connection_init', payload: { authorization: `Bearer ${token}`, 'X-Act-As': id } });
      const { code: closed, reason } = await socket.closed;
      answers.add(`${status} ${text} ${closed} ${reason}`);
      expect(closed).toBe(4403);
    }
    expect(answers.size).toBe(1);
  }
});

test('names, keys and sets of another tenant stand in nobody’s way', async () => {
  const [ours, theirs] = [bearerOf('ours', own.apiKey), bearerOf('theirs', foreign.apiKey)];
  const root = 'mutation';
  const create =
    'mutation($handle: String!) { createParticipant(input: { kind: AGENT, handle: $handle }) { participant { handle } } }';
  for (const caller of [ours, theirs]) {
    const { text } = await ask(server, caller, { root, document: create }, { handle: 'the-same' });
    expect(text).toBe('{"data":{"createParticipant":{"participant":{"handle":"the-same"}}}}');
  }
  const post =
    'mutation($id: ID!, $as: ID!, $text: String!) { postMessage(input: { threadId: $id, as: $as, content: $text, idempotencyKey: "one" }) { message { content } } }';
  for (const [caller, world] of [
    [ours, own],
    [theirs, foreign],
  ] as const) {
    const variables = { id: world.threadId, as: world.people.ada.id, text: world.mark };
    const { text } = await ask(server, caller, { root, document: post }, variables);
    expect(text).toBe(`{"data":{"postMessage":{"message":{"content":"${world.mark}"}}}}`);
  }
});
