import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { timelineCursor } from '../../src/shared/cursors.ts';
import { newId } from '../../src/shared/ids.ts';
import type { Database } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { openInMemory } from '../../src/storage/pglite.ts';
import { bearer, createIdentity, type Identity, seedTenant } from '../support/identity.ts';

/** The statements of identity mean the same on the embedded engine. */
let database: Database;
let identity: Identity;

beforeAll(async () => {
  database = await openInMemory();
  await migrate(database);
  identity = createIdentity(database);
});
afterAll(async () => {
  await identity.close();
  await database.close();
});

it('authenticates, ends, expires and notes the last use', async () => {
  const { apiKey, owner, agent, token } = await seedTenant(identity);
  await expect(identity.authenticate(bearer(apiKey, agent.id))).resolves.toMatchObject({ actAs: agent.id });
  const session = await identity.openSession(bearer(token.secret));
  await session.cleared();
  // Typed into a console of the database, so that only the log tells.
  await database.script(`
    UPDATE credentials SET revoked_at = now() WHERE id = '${token.credential.id}';
    INSERT INTO revocation_log (credential_id) VALUES ('${token.credential.id}');`);
  if (!session.ended.aborted) await once(session.ended, 'abort', { signal: AbortSignal.timeout(5_000) });
  await expect(identity.authenticate(bearer(token.secret))).rejects.toMatchObject({
    code: 'UNAUTHENTICATED',
  });
  const short = await identity.credentials.createApiKey(owner, { expiresInSeconds: 1 });
  const expiring = await identity.openSession(bearer(short.secret));
  if (!expiring.ended.aborted) await once(expiring.ended, 'abort', { signal: AbortSignal.timeout(5_000) });
});

it('opens, resumes and takes over streams with a ticket', async () => {
  const { owner } = await seedTenant(identity);
  const operation = { query: 'subscription { x }' };
  const { ticket, expiresAt } = await identity.credentials.createTicket(owner, operation);
  expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now());
  const first = await identity.openTicketSession(ticket, operation, null);
  const last = timelineCursor(newId('Thread'), 3, newId('Event'));
  await first.issued(last);
  const second = await identity.openTicketSession(ticket, operation, last);
  expect(first.ended.aborted).toBe(true);
  second.close();
  await expect(identity.openTicketSession(ticket, operation, null)).rejects.toMatchObject({
    code: 'UNAUTHENTICATED',
  });
});
