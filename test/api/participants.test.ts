import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Actor } from '../../src/auth/actor.ts';
import { newId } from '../../src/shared/ids.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { ADMIN, bearer, createIdentity, type Identity, seedTenant } from '../support/identity.ts';

let db: TestDatabase;
let identity: Identity;

beforeAll(async () => {
  db = await createTestDatabase();
  identity = createIdentity(db.database);
});
afterAll(async () => {
  await identity.close();
  await db.drop();
});

const code = (name: string, facts: object = {}) => ({ code: name, facts });

describe('users', () => {
  it('are made once for N concurrent calls with one idempotencyKey; each answer has a key, the last one lives', async () => {
    const input = { name: 'Acme', idempotencyKey: randomUUID() };
    const made = await Promise.all(Array.from({ length: 12 }, () => identity.users.create(ADMIN, input)));
    expect(new Set(made.map(({ user }) => user.id)).size).toBe(1);
    const alive = await Promise.all(
      made.map(({ apiKey }) =>
        identity.authenticate(bearer(apiKey)).then(
          () => true,
          () => false,
        ),
      ),
    );
    expect(alive.filter(Boolean)).toHaveLength(1);
    const again = await identity.users.create(ADMIN, input);
    expect(again.user.id).toBe(made[0]?.user.id);
    await expect(identity.authenticate(bearer(again.apiKey))).resolves.toMatchObject({
      userId: again.user.id,
    });
    for (const { apiKey } of made)
      await expect(identity.authenticate(bearer(apiKey))).rejects.toMatchObject(code('UNAUTHENTICATED'));
  });

  it('keep the keys they made themselves when createUser is replayed', async () => {
    const input = { name: 'Keeper', idempotencyKey: randomUUID() };
    const { user, credential } = await identity.users.create(ADMIN, input);
    const owner: Actor = { kind: 'API_KEY', userId: user.id, credentialId: credential.id, actAs: null };
    const own = await identity.credentials.createApiKey(owner, { label: 'mine' });
    await identity.users.create(ADMIN, input);
    await expect(identity.authenticate(bearer(own.secret))).resolves.toMatchObject({ userId: user.id });
  });

  it('refuse another input with the same key', async () => {
    const idempotencyKey = randomUUID();
    await identity.users.create(ADMIN, { name: 'One', idempotencyKey });
    await expect(identity.users.create(ADMIN, { name: 'Two', idempotencyKey })).rejects.toMatchObject(
      code('IDEMPOTENCY_KEY_REUSED', { field: 'idempotencyKey' }),
    );
  });

  it('delete themselves by their exact name, and their idempotencyKey begins anew', async () => {
    const input = { name: 'Gone', idempotencyKey: randomUUID() };
    const { user, credential, apiKey } = await identity.users.create(ADMIN, input);
    const owner: Actor = { kind: 'API_KEY', userId: user.id, credentialId: credential.id, actAs: null };
    await expect(identity.users.remove(owner, { confirmName: 'gone' })).rejects.toMatchObject(
      code('BAD_USER_INPUT', { field: 'confirmName' }),
    );
    await expect(identity.users.remove(owner, { confirmName: 'Gone' })).resolves.toEqual({
      deletedId: user.id,
    });
    await expect(identity.authenticate(bearer(apiKey))).rejects.toMatchObject(code('UNAUTHENTICATED'));
    expect(await identity.users.find(ADMIN, user.id)).toBeNull();
    await expect(identity.credentials.issueApiKey(ADMIN, { userId: user.id })).rejects.toMatchObject(
      code('NOT_FOUND'),
    );
    await expect(identity.credentials.createApiKey(owner, {})).rejects.toMatchObject(code('UNAUTHENTICATED'));
    const anew = await identity.users.create(ADMIN, input);
    expect(anew.user.id).not.toBe(user.id);
  });

  it('are noted in the audit log with who did it, and no secret', async () => {
    const { user, owner, apiKey, token, agent } = await seedTenant(identity);
    await identity.credentials.revoke(owner, { credentialId: token.credential.id });
    const log = await db.database.prisma.auditLog.findMany({
      where: { ownerId: user.id },
      orderBy: { id: 'asc' },
    });
    expect(log.map(({ act }) => act).sort()).toEqual(
      [
        'user.created',
        'credential.created',
        'participant.created',
        'participant.created',
        'credential.created',
        'credential.revoked',
      ].sort(),
    );
    expect(JSON.stringify(log)).not.toContain(apiKey);
    expect(JSON.stringify(log)).not.toContain(token.secret);
    expect(log.find(({ act }) => act === 'credential.revoked')).toMatchObject({
      subjectId: token.credential.id,
      credentialId: owner.kind === 'API_KEY' && owner.credentialId,
    });
    expect(log.filter(({ subjectId }) => subjectId === agent.id)).toHaveLength(1);
  });
});

describe('participants', () => {
  it('fold their handle, keep it unique for their user, and say who has it', async () => {
    const { owner } = await seedTenant(identity);
    const made = await identity.participants.create(owner, { kind: 'AGENT', handle: 'Ada.Lovelace-1_x' });
    expect(made).toMatchObject({
      handle: 'ada.lovelace-1_x',
      displayName: 'Ada.Lovelace-1_x',
      concurrentThreads: true,
    });
    await expect(
      identity.participants.create(owner, { kind: 'HUMAN', handle: 'ADA.LOVELACE-1_X' }),
    ).rejects.toMatchObject(code('CONFLICT', { field: 'handle', existingId: made.id }));
    expect(await identity.participants.find(owner, { handle: 'aDa.lovelace-1_X' })).toMatchObject({
      id: made.id,
    });
    const race = await Promise.allSettled(
      Array.from({ length: 8 }, () => identity.participants.create(owner, { kind: 'UNIT', handle: 'race' })),
    );
    expect(race.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it.each([
    ['handle', { handle: '' }, 'BAD_USER_INPUT'],
    ['handle', { handle: '-a' }, 'BAD_USER_INPUT'],
    ['handle', { handle: 'a b' }, 'BAD_USER_INPUT'],
    ['handle', { handle: '\u212Aelvin' }, 'BAD_USER_INPUT'],
    ['handle', { handle: 'a\u0000' }, 'BAD_USER_INPUT'],
    ['handle', { handle: 'a'.repeat(129) }, 'PAYLOAD_TOO_LARGE'],
    ['displayName', { displayName: ' ' }, 'BAD_USER_INPUT'],
    ['displayName', { displayName: 'x'.repeat(257) }, 'PAYLOAD_TOO_LARGE'],
    ['displayName', { displayName: 'lone \ud800' }, 'BAD_USER_INPUT'],
    ['tools', { tools: ['scratchpad'] }, 'BAD_USER_INPUT'],
    ['tools', { tools: [{ type: 1 }] }, 'BAD_USER_INPUT'],
    ['tools', { tools: [[]] }, 'BAD_USER_INPUT'],
    ['metaData', { metaData: [] }, 'BAD_USER_INPUT'],
    ['metaData', { metaData: 'x' }, 'BAD_USER_INPUT'],
    ['metaData', { metaData: { text: 'x'.repeat(16 * 1024) } }, 'PAYLOAD_TOO_LARGE'],
    ['metaData', { metaData: JSON.parse('{"__proto__": 1}') as object }, 'BAD_USER_INPUT'],
  ])('refuse a wrong %s: %j', async (field, wrong, expected) => {
    const { owner } = await seedTenant(identity);
    const input = { kind: 'AGENT' as const, handle: `a${randomUUID()}`, ...wrong };
    await expect(identity.participants.create(owner, input as never)).rejects.toMatchObject({
      code: expected,
      facts: { field },
    });
  });

  it('take 128 characters, 256 of any script, and 16 KiB', async () => {
    const { owner } = await seedTenant(identity);
    const metaData = { t: 'x'.repeat(16 * 1024 - 8) };
    const input = {
      kind: 'AGENT' as const,
      handle: 'h'.repeat(128),
      displayName: '\u{1F9ED}'.repeat(256),
      metaData,
    };
    await expect(identity.participants.create(owner, input)).resolves.toMatchObject({ metaData });
  });

  it('are changed by the owner; absent and null stay', async () => {
    const { owner, agent } = await seedTenant(identity);
    const participantId = agent.id;
    const tools = [{ type: 'scratchpad' }, { type: 'function', name: 'x' }];
    const changes = { listed: true, concurrentThreads: false, tools, metaData: { a: 1 } };
    expect(await identity.participants.update(owner, { participantId, ...changes })).toMatchObject(changes);
    expect(
      await identity.participants.update(owner, { participantId, displayName: 'New', tools: null }),
    ).toMatchObject({
      ...changes,
      displayName: 'New',
    });
    expect(await identity.participants.update(owner, { participantId })).toMatchObject({
      displayName: 'New',
    });
  });

  it('change their own displayName, nothing else and nobody else', async () => {
    const { agent, human, token } = await seedTenant(identity);
    const actor = await identity.authenticate(bearer(token.secret));
    const change = (participantId: string, input: object) =>
      identity.participants.update(actor, { participantId, ...input });
    expect(await change(agent.id, { displayName: 'Me' })).toMatchObject({ displayName: 'Me' });
    const refused = code('FORBIDDEN');
    await expect(change(human.id, { displayName: 'Me' })).rejects.toMatchObject(refused);
    await expect(change(newId('Participant'), { displayName: 'Me' })).rejects.toMatchObject(refused);
    await expect(change(agent.id, { displayName: 'Me', listed: true })).rejects.toMatchObject(refused);
    await expect(identity.participants.create(actor, { kind: 'AGENT', handle: 'x' })).rejects.toMatchObject(
      refused,
    );
    await expect(
      identity.participants.clone(actor, { participantId: agent.id, handle: 'x' }),
    ).rejects.toMatchObject(refused);
  });

  it('are cloned with their properties; humans are not', async () => {
    const { owner, agent, human } = await seedTenant(identity);
    await identity.participants.update(owner, {
      participantId: agent.id,
      tools: [{ type: 'memory' }],
      listed: true,
    });
    const clone = await identity.participants.clone(owner, { participantId: agent.id, handle: 'Copy' });
    expect(clone).toMatchObject({
      handle: 'copy',
      kind: 'AGENT',
      tools: [{ type: 'memory' }],
      displayName: 'agent',
    });
    expect(clone.id).not.toBe(agent.id);
    await expect(
      identity.participants.clone(owner, { participantId: human.id, handle: 'copy2' }),
    ).rejects.toMatchObject(code('BAD_USER_INPUT', { field: 'participantId' }));
  });

  it('see themselves, the listed and, by threads that are there, each other', async () => {
    const { user, owner, agent, human, token } = await seedTenant(identity);
    const listed = await identity.participants.create(owner, {
      kind: 'UNIT',
      handle: 'listed',
      listed: true,
    });
    const other = await identity.participants.create(owner, { kind: 'AGENT', handle: 'other' });
    const actor = await identity.authenticate(bearer(token.secret));
    const seen = async (who: Actor): Promise<string[]> =>
      (await identity.participants.page(who, {}, { first: 200 })).edges.map(({ node }) => node.id);
    expect(await seen(owner)).toEqual([agent.id, human.id, listed.id, other.id]);
    expect(await seen(actor)).toEqual([agent.id, listed.id]);
    expect(await seen({ ...owner, actAs: agent.id } as Actor)).toEqual([agent.id, listed.id]);
    expect(await identity.participants.find(actor, { handle: 'other' })).toBeNull();

    const threadId = newId('Thread');
    await db.database.prisma.thread.create({ data: { id: threadId, ownerId: user.id } });
    for (const participantId of [agent.id, other.id])
      await db.database.prisma.threadMember.create({
        data: { ownerId: user.id, threadId, participantId, sinceAt: new Date() },
      });
    expect(await seen(actor)).toEqual([agent.id, listed.id, other.id]);
    expect(await identity.participants.find(actor, { id: other.id })).toMatchObject({ handle: 'other' });
    expect((await identity.participants.page(actor, { kind: 'AGENT' }, {})).edges).toHaveLength(2);
    const lookAs = (as: string, id: string) => identity.participants.find(owner, { id, as });
    expect(await lookAs(agent.id, other.id)).not.toBeNull();
    expect(await lookAs(agent.id, human.id)).toBeNull();
    for (const as of [newId('Participant'), (await seedTenant(identity)).agent.id])
      expect(await lookAs(as, listed.id)).toBeNull();
    await db.database.prisma.thread.update({ where: { id: threadId }, data: { deletedAt: new Date() } });
    expect(await seen(actor)).toEqual([agent.id, listed.id]);
  });

  it('are looked up by exactly one of id and handle', async () => {
    const { owner, agent } = await seedTenant(identity);
    const refused = code('BAD_USER_INPUT');
    await expect(identity.participants.find(owner, {})).rejects.toMatchObject(refused);
    await expect(identity.participants.find(owner, { id: agent.id, handle: 'agent' })).rejects.toMatchObject(
      refused,
    );
    expect(await identity.participants.find(owner, { id: agent.id, handle: null })).toMatchObject({
      id: agent.id,
    });
  });
});
