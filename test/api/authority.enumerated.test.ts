import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hashSecret, newSecret } from '../../src/auth/secrets.ts';
import { createSchema } from '../../src/graphql/schema.ts';
import { startApp } from '../support/app.ts';
import { ask, bearerOf, type Caller, NOBODY, type Reply } from '../support/asking.ts';
import { ADMIN_TOKEN } from '../support/identity.ts';
import { type RootField, rootFields, variablesOf } from '../support/operations.ts';
import { isGiven, sampleOf } from '../support/samples.ts';
import { createWorld, rowsOf, type World } from '../support/world.ts';

/**
 * Who may, by credential: `admin` ADMIN_TOKEN; `key` an API key; `acting` one that acts as a member; `token` a
 * member's; `removed` that of a removed member. Whoever is not named is refused.
 */
type Who = 'admin' | 'key' | 'acting' | 'token' | 'removed' | 'run';
const TENANT = ['key', 'acting', 'token', 'removed'] as const;
/** What a run reads is confined to it, and never refused. */
const READERS = [...TENANT, 'run'] as const;
const OWNER = ['key', 'acting'] as const;

/** The table of authority. A root field that is not in it fails the tests. */
const MAY: Readonly<Record<string, readonly Who[]>> = {
  'query viewer': ['admin', ...READERS],
  'query users': ['admin'],
  'query node': READERS,
  'query nodes': READERS,
  'query participant': READERS,
  'query participants': READERS,
  'query credentials': TENANT,
  'query thread': READERS,
  'query threadOf': READERS,
  'query threads': READERS,
  'query engagement': READERS,
  'query engagements': READERS,
  'query scratchpad': READERS,
  'query scratchpads': READERS,
  'query recall': TENANT,
  'query hydrateTools': [...TENANT, 'run'],
  'query searchMessages': READERS,
  'query run': READERS,
  'query runs': READERS,
  'mutation createUser': ['admin'],
  'mutation issueApiKey': ['admin'],
  'mutation deleteUser': OWNER,
  'mutation createApiKey': OWNER,
  'mutation createParticipant': OWNER,
  'mutation cloneParticipant': OWNER,
  'mutation updateThread': OWNER,
  'mutation setMemoryPolicy': OWNER,
  'mutation deleteThread': OWNER,
  'mutation removeParticipant': OWNER,
  'mutation readdParticipant': OWNER,
  'mutation updateScratchpad': OWNER,
  'mutation deleteScratchpad': OWNER,
  // Of oneself, and of anybody for the user.
  'mutation createParticipantToken': TENANT,
  'mutation revokeCredential': TENANT,
  'mutation revokeParticipantCredentials': TENANT,
  'mutation updateParticipant': TENANT,
  'mutation createConnectionTicket': TENANT,
  // Only on a socket: refused here whoever asks, with BAD_USER_INPUT.
  'mutation renewConnection': [],
  // Where it need not be an active member, a removed one may.
  'mutation openThread': TENANT,
  'mutation acknowledge': [...TENANT, 'run'],
  'mutation extendThread': ['key', 'acting', 'token'],
  'mutation leaveThread': ['key', 'acting', 'token'],
  'mutation createScratchpad': ['key', 'acting', 'token'],
  // A run as its access says: here it may write.
  'mutation setScratchpadContent': ['key', 'acting', 'token', 'run'],
  'mutation appendScratchpadEntry': ['key', 'acting', 'token', 'run'],
  'mutation appendScratchpadEntries': ['key', 'acting', 'token', 'run'],
  'mutation clearScratchpad': ['key', 'acting', 'token'],
  'mutation clearScratchpadContent': ['key', 'acting', 'token'],
  'mutation clearScratchpadEntries': ['key', 'acting', 'token'],
  'mutation postMessage': ['key', 'acting', 'token', 'run'],
  'mutation retractMessage': ['key', 'acting', 'token', 'run'],
  'mutation storeMemory': ['key', 'acting', 'token'],
  'mutation signal': ['key', 'acting', 'token', 'run'],
  'mutation takePending': TENANT,
  'mutation extendLease': ['key', 'acting', 'token'],
  'query peekPending': TENANT,
  'subscription inbox': TENANT,
  // What it may not do is told to the model.
  'mutation executeTool': [...TENANT, 'run'],
  'subscription timeline': READERS,
  'mutation delegateRun': ['key', 'acting', 'token', 'run'],
  // Of ada’s for herself.
  'mutation claimRun': ['key', 'acting', 'token'],
  'mutation updateRun': ['key', 'acting', 'token'],
  'subscription run': ['key', 'acting', 'token', 'run'],
  'subscription threads': TENANT,
  'subscription signals': READERS,
  'subscription scratchpad': READERS,
};

/** Refused for another reason than who asks. */
const OTHERWISE: Readonly<Record<string, string>> = {
  'removed mutation delegateRun': 'PARTICIPANT_NOT_ACTIVE',
  'removed mutation claimRun': 'NOT_FOUND',
  'removed mutation updateRun': 'NOT_FOUND',
  'removed subscription run': 'NOT_FOUND',
  'removed mutation extendThread': 'PARTICIPANT_NOT_ACTIVE',
  'removed mutation leaveThread': 'INVALID_TRANSITION',
  'removed mutation createScratchpad': 'PARTICIPANT_NOT_ACTIVE',
  'removed mutation setScratchpadContent': 'PARTICIPANT_NOT_ACTIVE',
  'removed mutation appendScratchpadEntry': 'PARTICIPANT_NOT_ACTIVE',
  'removed mutation appendScratchpadEntries': 'PARTICIPANT_NOT_ACTIVE',
  'removed mutation clearScratchpad': 'PARTICIPANT_NOT_ACTIVE',
  'removed mutation clearScratchpadContent': 'PARTICIPANT_NOT_ACTIVE',
  'removed mutation clearScratchpadEntries': 'PARTICIPANT_NOT_ACTIVE',
  'removed mutation postMessage': 'PARTICIPANT_NOT_ACTIVE',
  'removed mutation storeMemory': 'PARTICIPANT_NOT_ACTIVE',
  'removed mutation signal': 'PARTICIPANT_NOT_ACTIVE',
  // The message is beyond its window.
  'removed mutation retractMessage': 'NOT_FOUND',
  // It is another's.
  'removed mutation extendLease': 'CONFLICT',
  'admin mutation renewConnection': 'BAD_USER_INPUT',
  'key mutation renewConnection': 'BAD_USER_INPUT',
  'acting mutation renewConnection': 'BAD_USER_INPUT',
  'token mutation renewConnection': 'BAD_USER_INPUT',
  'removed mutation renewConnection': 'BAD_USER_INPUT',
  'run mutation renewConnection': 'BAD_USER_INPUT',
};

const FIELDS = rootFields(createSchema(), 2);
const labelOf = ({ root, name }: RootField): string => `${root} ${name}`;

let server: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  // Everything there is of a type is asked for at once.
  server = await startApp({ MAX_QUERY_COST: '100000000', INBOX_DIGEST_SECONDS: '1' });
});
afterAll(() => server.close());

const newWorld = (): Promise<World> => createWorld(server.services, `w${randomUUID().slice(0, 8)}`);

const callersIn = async (world: World): Promise<Record<Who, Caller>> => ({
  admin: bearerOf('admin', ADMIN_TOKEN),
  key: bearerOf('key', world.apiKey),
  acting: bearerOf('acting', world.apiKey, world.people.ada.id),
  token: bearerOf('token', world.people.ada.token),
  removed: bearerOf('removed', world.people.rex.token),
  run: bearerOf('run', world.runToken),
});

/** What one may do of oneself is asked of oneself. */
const OWN = new Set([
  'createParticipantToken',
  'revokeCredential',
  'revokeParticipantCredentials',
  'updateParticipant',
]);

/** What only agents and units have: asked of one. */
const AGENTS = new Set(['inbox', 'takePending', 'peekPending', 'extendLease', 'recall', 'storeMemory']);

/** What leaves a world in which others cannot do their work any more. */
const ENDS = new Set([
  'removeParticipant',
  'leaveThread',
  'revokeCredential',
  'revokeParticipantCredentials',
  'deleteScratchpad',
  'deleteThread',
  'deleteUser',
]);
const ends = ({ name }: RootField): boolean => ENDS.has(name);

const call = async (field: RootField, who: Who, caller: Caller, world: World): Promise<Reply> => {
  const isAgents = AGENTS.has(field.name);
  const agent = {
    acting: bearerOf('acting', world.apiKey, world.people.scout.id),
    token: bearerOf('token', world.people.scout.token),
  };
  const asking = isAgents && (who === 'acting' || who === 'token') ? agent[who] : caller;
  const isToken = who === 'token' || who === 'removed' || who === 'run';
  const own = who === 'removed' ? world.people.rex : world.people.ada;
  const values = field.leaves
    .filter((leaf) => isGiven(leaf, !isToken))
    .map((leaf) => {
      const isOwn = isToken && OWN.has(field.name);
      if (isOwn && leaf.name === 'participantId') return [leaf.path, own.id] as const;
      if (isOwn && leaf.name === 'credentialId') return [leaf.path, own.credentialId] as const;
      if (field.name === 'readdParticipant' && leaf.name === 'participantId')
        return [leaf.path, world.people.rex.id] as const;
      if (who === 'removed' && field.name === 'openThread' && leaf.name === 'participantIds')
        return [leaf.path, [own.id, world.people.lil.id]] as const;
      return [leaf.path, sampleOf(leaf, world)] as const;
    });
  return ask(server, asking, field, variablesOf(values));
};

describe('authority', () => {
  test('is laid down for every operation there is', () => {
    expect(FIELDS.map(labelOf).sort()).toEqual(Object.keys(MAY).sort());
  });

  test('refuses whoever is not named, and writes nothing', async () => {
    const world = await newWorld();
    const callers = await callersIn(world);
    const before = await rowsOf(server.services, null);
    for (const field of FIELDS)
      for (const [who, caller] of Object.entries(callers) as [Who, Caller][]) {
        const label = labelOf(field);
        if (MAY[label]?.includes(who)) continue;
        const reply = await call(field, who, caller, world);
        expect([who, label, reply.code]).toEqual([who, label, OTHERWISE[`${who} ${label}`] ?? 'FORBIDDEN']);
        expect(reply.text).not.toContain(world.mark);
      }
    expect(await rowsOf(server.services, null)).toEqual(before);
  });

  test('lets do what the table says', async () => {
    for (const who of ['admin', ...TENANT, 'run'] as const) {
      let world = await newWorld();
      let callers = await callersIn(world);
      for (const field of [...FIELDS].sort((one, other) => Number(ends(one)) - Number(ends(other)))) {
        const label = labelOf(field);
        if (MAY[label]?.includes(who) !== true) continue;
        const { code, text } = await call(field, who, callers[who], world);
        expect([who, label, code, code === 'OK' ? '' : text]).toEqual([who, label, 'OK', '']);
        if (!ends(field)) continue;
        world = await newWorld();
        callers = await callersIn(world);
      }
    }
  });

  test('is not a participant’s over another of the same user', async () => {
    const world = await newWorld();
    const { scout, ada } = world.people;
    const token = bearerOf('scout', scout.token);
    for (const name of OWN) {
      const field = FIELDS.find((candidate) => candidate.name === name);
      if (field === undefined) throw new Error(`${name} is gone.`);
      const values = field.leaves
        .filter((leaf) => isGiven(leaf, false))
        .map((leaf) => {
          if (leaf.name === 'participantId') return [leaf.path, ada.id] as const;
          if (leaf.name === 'credentialId') return [leaf.path, ada.credentialId] as const;
          return [leaf.path, sampleOf(leaf, world)] as const;
        });
      const { code } = await ask(server, token, field, variablesOf(values));
      expect([name, code]).toEqual([name, name === 'revokeCredential' ? 'NOT_FOUND' : 'FORBIDDEN']);
    }
  });

  test('gives no participant more than its display name', async () => {
    const world = await newWorld();
    const field = FIELDS.find(({ name }) => name === 'updateParticipant');
    if (field === undefined) throw new Error('updateParticipant is gone.');
    const others = field.leaves.filter(({ name }) => name !== 'participantId' && name !== 'displayName');
    expect(others.length).toBeGreaterThan(3);
    for (const { name } of others) {
      const value = { tools: [], metaData: {} }[name] ?? true;
      const input = { participantId: world.people.ada.id, [name]: value };
      const { code } = await ask(server, bearerOf('ada', world.people.ada.token), field, { input });
      expect([name, code]).toEqual([name, 'FORBIDDEN']);
    }
  });

  test('speaks as nobody but oneself', async () => {
    const world = await newWorld();
    const { ada, scout } = world.people;
    const before = await rowsOf(server.services, null);
    const callers = [
      bearerOf('token', ada.token),
      bearerOf('acting', world.apiKey, ada.id),
      { name: 'token with X-Act-As', headers: { ...bearerOf('', ada.token).headers, 'x-act-as': scout.id } },
    ];
    for (const field of FIELDS) {
      const as = field.leaves.find(({ name }) => name === 'as');
      if (as === undefined) continue;
      const values = field.leaves
        .filter((leaf) => leaf !== as && isGiven(leaf, false))
        .map((leaf) => [leaf.path, sampleOf(leaf, world)] as const);
      for (const caller of callers) {
        const { code } = await ask(server, caller, field, variablesOf([...values, [as.path, scout.id]]));
        expect([caller.name, field.name, code]).toEqual([caller.name, field.name, 'FORBIDDEN']);
      }
    }
    expect(await rowsOf(server.services, null)).toEqual(before);
  });
});

describe('a credential that is none, or none any more', () => {
  test('answers alike for every operation, whatever it was, and reaches nothing', async () => {
    const world = await newWorld();
    const gone = await newWorld();
    const { services } = server;
    const { ada } = world.people;
    const make = () => services.credentials.createParticipantToken(world.owner, { participantId: ada.id });
    const [revoked, expired, revokedKey] = [
      await make(),
      await make(),
      await services.credentials.createApiKey(world.owner, {}),
    ];
    await services.credentials.revoke(world.owner, { credentialId: revoked.credential.id });
    await services.credentials.revoke(world.owner, { credentialId: revokedKey.credential.id });
    await services.database.prisma.credential.update({
      where: { id: expired.credential.id },
      data: { expiresAt: new Date(Date.now() - 1_000) },
    });
    await services.users.remove(gone.owner, { confirmName: `${gone.mark} company` });
    const { ticket } = await services.credentials.createTicket(world.owner, {
      query: '{ viewer { user { id } } }',
    });
    const dead = [
      NOBODY,
      bearerOf('revoked', revoked.secret),
      bearerOf('revoked, acting', revokedKey.secret, ada.id),
      bearerOf('expired', expired.secret),
      bearerOf('of a deleted user', gone.apiKey),
    ];
    const others: Caller[] = [
      bearerOf('revoked key', revokedKey.secret),
      bearerOf('of a deleted user’s participant', gone.people.ada.token),
      bearerOf('never made', newSecret('API_KEY').secret),
      bearerOf('a hash', hashSecret(world.apiKey)),
      bearerOf('a ticket', ticket),
      bearerOf('garbage', 'x'),
      { name: 'basic', headers: { authorization: `Basic ${btoa(`:${world.apiKey}`)}` } },
      {
        name: 'two that differ',
        headers: { authorization: `Bearer ${world.apiKey}`, 'x-api-key': ada.token },
      },
    ];
    const before = await rowsOf(services, world.userId);
    const answers = new Set<string>();
    for (const field of FIELDS) {
      const values = field.leaves
        .filter((leaf) => isGiven(leaf, true))
        .map((leaf) => [leaf.path, sampleOf(leaf, world)] as const);
      const isFirst = FIELDS.find(({ root }) => root === field.root) === field;
      for (const caller of isFirst ? [...dead, ...others] : dead) {
        const { status, text } = await ask(server, caller, field, variablesOf(values));
        expect([caller.name, field.name, status]).toEqual([caller.name, field.name, 401]);
        answers.add(text);
      }
    }
    expect([...answers]).toHaveLength(1);
    expect([...answers][0]).toContain('"UNAUTHENTICATED"');
    expect(await rowsOf(services, world.userId)).toEqual(before);
  });
});
