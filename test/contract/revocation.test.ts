import { once } from 'node:events';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import type { Session } from '../../src/auth/session.ts';
import type { Bus } from '../../src/live/bus.ts';
import { createRedisBus } from '../../src/live/redisBus.ts';
import { log } from '../../src/shared/log.ts';
import { openPostgres } from '../../src/storage/postgres.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { deferred, type HeardDatabase, hear } from '../support/heard.ts';
import { bearer, createIdentity, type Identity, seedTenant } from '../support/identity.ts';

/** `here` ends credentials; `there` is another process's worth, with a pool of its own and without a bus. */
describe('the revocation log', () => {
  let db: TestDatabase;
  let heard: HeardDatabase;
  let here: Identity;
  let there: Identity;
  let tenant: Awaited<ReturnType<typeof seedTenant>>;
  /** Moves the clock of `there`. */
  let ahead = 0;
  const cleanUp: (() => Promise<void>)[] = [];

  beforeEach(async () => {
    ahead = 0;
    db = await createTestDatabase();
    const others = await openPostgres(db.url);
    heard = hear(others);
    here = createIdentity(db.database);
    there = createIdentity(heard.database, { monotonic: () => performance.now() + ahead });
    tenant = await seedTenant(here);
    cleanUp.push(
      () => db.drop(),
      () => others.close(),
      () => there.close(),
      () => here.close(),
    );
  });
  afterEach(async () => {
    for (const close of cleanUp.splice(0).reverse()) await close();
  });

  const connectBus = async (): Promise<Bus> => {
    const path = inject('redisUrl').replace('unix://', '');
    const [commands, subscriber] = [new Redis(path), new Redis(path)];
    const bus = createRedisBus({ commands, subscriber, log });
    cleanUp.push(async () => {
      bus.close();
      commands.disconnect();
      subscriber.disconnect();
    });
    await Promise.all([commands.ping(), subscriber.ping()]);
    return bus;
  };

  const ended = async (session: Session): Promise<void> => {
    if (!session.ended.aborted) await once(session.ended, 'abort', { signal: AbortSignal.timeout(10_000) });
  };
  const dead = { code: 'UNAUTHENTICATED' };
  const reads = (): number => heard.ran.filter((name) => name === 'revocations_read').length;
  /** Two whole readings of `there` from now on. */
  const readTwice = async (): Promise<void> => {
    const before = reads();
    await vi.waitUntil(() => reads() >= before + 3, { timeout: 10_000, interval: 20 });
  };

  it('ends a revoked credential everywhere within a second, without Redis', async () => {
    const session = await there.openSession(bearer(tenant.token.secret));
    await there.authenticate(bearer(tenant.token.secret));
    await session.cleared();
    await here.credentials.revoke(tenant.owner, { credentialId: tenant.token.credential.id });
    const revokedAt = performance.now();
    await expect(here.authenticate(bearer(tenant.token.secret))).rejects.toMatchObject(dead);
    await ended(session);
    expect(performance.now() - revokedAt).toBeLessThan(1_000);
    expect(session.ended.reason).toMatchObject(dead);
    await expect(session.cleared()).rejects.toMatchObject(dead);
    await expect(there.authenticate(bearer(tenant.token.secret))).rejects.toMatchObject(dead);
  });

  it('ends all of a deleted user, and none of another', async () => {
    const other = await seedTenant(here);
    const secrets = [tenant.apiKey, tenant.token.secret];
    const sessions = await Promise.all(secrets.map((secret) => there.openSession(bearer(secret))));
    const survivor = await there.openSession(bearer(other.token.secret));
    await here.users.remove(tenant.owner, { confirmName: tenant.user.name });
    const deletedAt = performance.now();
    await Promise.all(sessions.map(ended));
    expect(performance.now() - deletedAt).toBeLessThan(1_000);
    for (const secret of secrets) {
      await expect(there.authenticate(bearer(secret))).rejects.toMatchObject(dead);
      await expect(here.authenticate(bearer(secret))).rejects.toMatchObject(dead);
    }
    await survivor.cleared();
    expect(survivor.ended.aborted).toBe(false);
  });

  it('ends what expires, by the database\u2019s clock, with no row in the log', async () => {
    const key = await here.credentials.createApiKey(tenant.owner, { expiresInSeconds: 1 });
    const session = await there.openSession(bearer(key.secret));
    await there.authenticate(bearer(key.secret));
    await ended(session);
    const [row] = await db.database.query<{ late: number }>(
      {
        name: 'late',
        text: `SELECT (extract(epoch FROM clock_timestamp() - expires_at) * 1000)::float8 AS late FROM credentials WHERE id = $1`,
      },
      [key.credential.id],
    );
    expect(row?.late).toBeGreaterThanOrEqual(0);
    expect(row?.late).toBeLessThan(1_000);
    await expect(there.authenticate(bearer(key.secret))).rejects.toMatchObject(dead);
    await expect(here.authenticate(bearer(key.secret))).rejects.toMatchObject(dead);
    expect(await db.database.prisma.revocationLog.count()).toBe(0);
  });

  it('misses no row that commits late, with numbers and transactions lower than those it has read', async () => {
    const early = await here.credentials.createApiKey(tenant.owner, {});
    const late = await here.credentials.createApiKey(tenant.owner, {});
    const [earlySession, lateSession] = await Promise.all([
      there.openSession(bearer(early.secret)),
      there.openSession(bearer(late.secret)),
    ]);
    const client = new pg.Client({ connectionString: db.url });
    await client.connect();
    cleanUp.push(() => client.end());
    await client.query('BEGIN');
    await client.query('UPDATE credentials SET revoked_at = now() WHERE id = $1', [late.credential.id]);
    await client.query('INSERT INTO revocation_log (credential_id) VALUES ($1)', [late.credential.id]);
    await here.credentials.revoke(tenant.owner, { credentialId: early.credential.id });
    await ended(earlySession);
    await readTwice();
    expect(lateSession.ended.aborted).toBe(false);
    await client.query('COMMIT');
    const committedAt = performance.now();
    await ended(lateSession);
    expect(performance.now() - committedAt).toBeLessThan(1_000);
  });

  it('lets nothing out and trusts nothing remembered while its reading is more than a second old', async () => {
    const session = await there.openSession(bearer(tenant.token.secret));
    await there.authenticate(bearer(tenant.apiKey));
    const reading = heard.hold('revocations_read');
    await reading.answered;
    ahead += 1_001;
    let isCleared = false;
    const cleared = session.cleared().then(() => {
      isCleared = true;
    });
    heard.ran.length = 0;
    await there.authenticate(bearer(tenant.apiKey));
    await there.authenticate(bearer(tenant.apiKey));
    expect(heard.ran.filter((name) => name === 'credential_find')).toHaveLength(2);
    expect(isCleared).toBe(false);
    reading.release();
    await cleared;
    heard.ran.length = 0;
    await there.authenticate(bearer(tenant.apiKey));
    expect(heard.ran).not.toContain('credential_find');
  });

  it('does not let out what waits when the credential turns out to have ended', async () => {
    const session = await there.openSession(bearer(tenant.token.secret));
    const reading = heard.hold('revocations_read');
    await reading.answered;
    ahead += 1_001;
    const cleared = session.cleared();
    await here.credentials.revoke(tenant.owner, { credentialId: tenant.token.credential.id });
    await expect(there.authenticate(bearer(tenant.token.secret))).rejects.toMatchObject(dead);
    reading.release();
    await expect(cleared).rejects.toMatchObject(dead);
  });

  it('delivers nothing that is more than a second younger than the ending, however slow its readings', async () => {
    const clock = async (): Promise<number> => {
      const [row] = await db.database.query<{ at: number }>(
        { name: 'clock', text: 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS at' },
        [],
      );
      return row?.at ?? 0;
    };
    for (let round = 0; round < 3; round++) {
      const key = await here.credentials.createApiKey(tenant.owner, {});
      const session = await there.openSession(bearer(key.secret));
      const delivered: number[] = [];
      const deliver = async (): Promise<void> => {
        while (!session.ended.aborted) {
          const event = await clock();
          await session.cleared();
          delivered.push(event);
        }
      };
      const delivering = deliver().catch((error: unknown) => expect(error).toMatchObject(dead));
      const reading = heard.hold('revocations_read');
      await reading.answered;
      await here.credentials.revoke(tenant.owner, { credentialId: key.credential.id });
      const endedAt = await clock();
      // Held until it is far too old: events go on until they no longer may.
      await vi.waitUntil(() => delivered.length > 0, { interval: 5, timeout: 10_000 });
      while ((await clock()) < endedAt + 1_500) await clock();
      reading.release();
      await delivering;
      expect(delivered.length).toBeGreaterThan(0);
      expect(Math.max(...delivered)).toBeLessThan(endedAt + 1_000);
    }
  });

  it('refuses a credential that ends between the look at it and the answer', async () => {
    await there.openSession(bearer(tenant.apiKey));
    await readTwice();
    const look = heard.hold('credential_find');
    const opening = there.openSession(bearer(tenant.token.secret));
    await look.answered;
    await here.credentials.revoke(tenant.owner, { credentialId: tenant.token.credential.id });
    await readTwice();
    look.release();
    await expect(opening).rejects.toMatchObject(dead);
  });

  it('learns of an ending before its first reading, if the look at the credential was earlier still', async () => {
    const look = heard.hold('credential_find');
    const opening = there.openSession(bearer(tenant.token.secret));
    await look.answered;
    await here.credentials.revoke(tenant.owner, { credentialId: tenant.token.credential.id });
    look.release();
    const session = await opening;
    const openedAt = performance.now();
    await ended(session);
    expect(performance.now() - openedAt).toBeLessThan(1_000);
  });

  it('reads with one statement about every 400 ms for 500 sessions', async () => {
    const sessions = await Promise.all(
      Array.from({ length: 500 }, () => there.openSession(bearer(tenant.token.secret))),
    );
    heard.ran.length = 0;
    const startedAt = performance.now();
    await vi.waitUntil(() => reads() >= 4, { timeout: 10_000, interval: 20 });
    expect(reads()).toBeLessThanOrEqual((performance.now() - startedAt) / 350 + 1);
    expect(
      heard.ran.filter((name) => name !== 'revocations_read' && name !== 'credentials_last_use'),
    ).toEqual([]);
    for (const session of sessions) session.close();
  });

  it('leaves no token alive when a participant\u2019s are revoked while it makes new ones', async () => {
    for (let round = 0; round < 10; round++) {
      const { agent } = tenant;
      const { secret } = await here.credentials.createParticipantToken(tenant.owner, {
        participantId: agent.id,
      });
      const actor = await there.authenticate(bearer(secret));
      const made = Array.from({ length: 6 }, () =>
        there.credentials.createParticipantToken(actor, { participantId: agent.id }).catch(() => null),
      );
      await here.credentials.revokeParticipantCredentials(tenant.owner, { participantId: agent.id });
      for (const token of await Promise.all(made)) {
        if (token === null) continue;
        await expect(here.authenticate(bearer(token.secret))).rejects.toMatchObject(dead);
      }
      expect(
        await db.database.prisma.credential.count({ where: { participantId: agent.id, revokedAt: null } }),
      ).toBe(0);
    }
  });

  it('frees what waits when the session is closed', async () => {
    const session = await there.openSession(bearer(tenant.token.secret));
    const reading = heard.hold('revocations_read');
    await reading.answered;
    ahead += 1_001;
    const waiting = deferred();
    session.cleared().catch(waiting.resolve);
    session.close();
    await waiting.promise;
    expect(session.ended.aborted).toBe(false);
    reading.release();
  });

  it('is sooner with Redis, and listens there only while it holds something', async () => {
    const bus = await connectBus();
    const hinting = createIdentity(db.database, { bus });
    const hinted = createIdentity(db.database, { bus, monotonic: () => performance.now() + ahead });
    cleanUp.push(
      () => hinting.close(),
      () => hinted.close(),
    );
    expect(bus.channels).toBe(0);
    const took: number[] = [];
    for (let round = 0; round < 5; round++) {
      const key = await here.credentials.createApiKey(tenant.owner, {});
      const session = await hinted.openSession(bearer(key.secret));
      await vi.waitUntil(() => bus.connected && bus.channels === 1, { timeout: 10_000 });
      await hinting.credentials.revoke(tenant.owner, { credentialId: key.credential.id });
      const revokedAt = performance.now();
      await ended(session);
      took.push(performance.now() - revokedAt);
    }
    expect(Math.min(...took)).toBeLessThan(100);
    ahead += 61_000;
    await vi.waitUntil(() => bus.channels === 0, { timeout: 10_000 });
  });
});
