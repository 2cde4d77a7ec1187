import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { hear } from '../support/heard.ts';
import { ADMIN_TOKEN, bearer, createIdentity, type Identity, seedTenant } from '../support/identity.ts';

describe('authenticate', () => {
  let db: TestDatabase;
  let ran: string[];
  let identity: Identity;
  let tenant: Awaited<ReturnType<typeof seedTenant>>;

  beforeAll(async () => {
    db = await createTestDatabase();
    const heard = hear(db.database);
    ran = heard.ran;
    identity = createIdentity(heard.database);
    tenant = await seedTenant(identity);
  });
  afterAll(async () => {
    await identity.close();
    await db.drop();
  });

  const unauthenticated = expect.objectContaining({ code: 'UNAUTHENTICATED' });

  it('knows the user by its key, in either header, and a participant by its token', async () => {
    const { user, agent, apiKey, token } = tenant;
    const byKey = { kind: 'API_KEY', userId: user.id, actAs: null };
    await expect(identity.authenticate(bearer(apiKey))).resolves.toMatchObject(byKey);
    await expect(identity.authenticate({ apiKey })).resolves.toMatchObject(byKey);
    await expect(
      identity.authenticate({ authorization: `bearer  ${apiKey}`, apiKey }),
    ).resolves.toMatchObject(byKey);
    await expect(identity.authenticate(bearer(token.secret))).resolves.toMatchObject({
      kind: 'PARTICIPANT_TOKEN',
      userId: user.id,
      participantId: agent.id,
      credentialId: token.credential.id,
    });
  });

  it('costs one statement when cold and none when warm, also with X-Act-As', async () => {
    const key = await identity.credentials.createApiKey(tenant.owner, {});
    ran.length = 0;
    for (const actAs of [undefined, undefined, tenant.agent.id, tenant.agent.id, tenant.human.id, undefined])
      await identity.authenticate(bearer(key.secret, actAs));
    expect(ran.filter((name) => name !== 'revocations_read' && name !== 'credentials_last_use')).toEqual([
      'credential_find',
      'credential_find',
      'credential_find',
    ]);
    const fresh = await identity.credentials.createApiKey(tenant.owner, {});
    ran.length = 0;
    await identity.authenticate(bearer(fresh.secret, tenant.agent.id));
    await identity.authenticate(bearer(fresh.secret, tenant.agent.id));
    await identity.authenticate(bearer(fresh.secret));
    expect(ran.filter((name) => name === 'credential_find')).toHaveLength(1);
  });

  it('hands out the same actor each time, so that work can be shared by authority', async () => {
    const presented = bearer(tenant.apiKey, tenant.agent.id);
    await identity.authenticate(presented);
    expect(await identity.authenticate(presented)).toBe(await identity.authenticate(presented));
  });

  it('answers none, garbage, two different and unknown ones alike', async () => {
    const { apiKey, token } = tenant;
    const unknown = `tp_key_${'A'.repeat(43)}`;
    const errors = await Promise.all(
      [
        {},
        { apiKey: '' },
        { authorization: '' },
        { authorization: apiKey },
        { authorization: `Basic ${apiKey}` },
        { apiKey: 'x' },
        { apiKey: `${apiKey}\u0000` },
        { apiKey: `${apiKey}, ${apiKey}` },
        { ...bearer(apiKey), apiKey: token.secret },
        bearer(unknown),
      ].map((presented) => identity.authenticate(presented).catch((error: unknown) => error)),
    );
    expect(errors).toEqual(errors.map(() => unauthenticated));
    expect(new Set(errors.map((error) => (error as Error).message)).size).toBe(1);
  });

  it('lets X-Act-As name a participant of the same user only; a foreign one is as unknown', async () => {
    const stranger = await seedTenant(identity);
    await expect(identity.authenticate(bearer(tenant.apiKey, tenant.agent.id))).resolves.toMatchObject({
      actAs: tenant.agent.id,
    });
    const ids = [
      stranger.agent.id,
      `${tenant.agent.id.slice(0, -4)}0000`,
      'part_x',
      '',
      '\u0000',
      tenant.user.id,
    ];
    for (const id of ids) {
      const error = await identity.authenticate(bearer(tenant.apiKey, id)).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'NOT_FOUND', message: 'Participant not found.', facts: {} });
    }
    await expect(identity.authenticate(bearer(tenant.token.secret, tenant.agent.id))).resolves.toMatchObject({
      participantId: tenant.agent.id,
    });
    for (const id of [tenant.human.id, stranger.agent.id, 'part_x'])
      await expect(identity.authenticate(bearer(tenant.token.secret, id))).rejects.toMatchObject({
        code: 'FORBIDDEN',
      });
  });

  it('knows the administrator, who acts for nobody', async () => {
    await expect(identity.authenticate(bearer(ADMIN_TOKEN.replaceAll(' ', '')))).rejects.toEqual(
      unauthenticated,
    );
    await expect(identity.authenticate({ apiKey: ADMIN_TOKEN })).resolves.toEqual({ kind: 'ADMIN' });
    await expect(
      identity.authenticate({ apiKey: ADMIN_TOKEN, actAs: tenant.agent.id }),
    ).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
  });

  it('stores no secret, and tells it apart by its prefix', async () => {
    const stored = await db.database.prisma.credential.findMany();
    expect(JSON.stringify(stored)).not.toContain(tenant.apiKey);
    expect(tenant.apiKey).toMatch(/^tp_key_[A-Za-z0-9_-]{43}$/);
    expect(tenant.token.secret).toMatch(/^tp_part_[A-Za-z0-9_-]{43}$/);
    expect(tenant.apiKey.startsWith(tenant.credential.prefix)).toBe(true);
  });

  it('notes the last use once, a moment later', async () => {
    const other = createIdentity(db.database);
    const key = await other.credentials.createApiKey(tenant.owner, {});
    for (let times = 0; times < 5; times++) await other.authenticate(bearer(key.secret));
    await other.close();
    const { lastUsedAt } = await db.database.prisma.credential.findUniqueOrThrow({
      where: { id: key.credential.id },
    });
    expect(lastUsedAt).toBeInstanceOf(Date);
  });
});
