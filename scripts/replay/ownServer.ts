import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApi } from './api.ts';

/** A server, and a user's key for it. */
export interface Place {
  readonly url: string;
  readonly apiKey: string;
  close(): Promise<void>;
}

/** A server of its own, for a new user, with the embedded stores in a folder that goes when it ends. */
export const ownServer = async (userName: string): Promise<Place> => {
  // Loaded only here: what is done on a running server needs nothing of it.
  const [{ createApp }, { readConfig }, { setLogLevel }] = await Promise.all([
    import('../../src/app.ts'),
    import('../../src/config.ts'),
    import('../../src/shared/log.ts'),
  ]);
  const folder = await mkdtemp(join(tmpdir(), 'threadpad-replay-'));
  const adminToken = crypto.randomUUID();
  setLogLevel('warn');
  const app = await createApp(
    readConfig({ DATA_DIR: folder, PORT: process.env.PORT ?? '0', ADMIN_TOKEN: adminToken }),
  ).catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true });
    throw error;
  });
  const { url } = await app.listen();
  const { createUser } = await createApi(url).ask<{ createUser: { apiKey: string } }>(
    adminToken,
    'mutation CreateUser($name: String!) { createUser(input: { name: $name }) { apiKey } }',
    { name: userName },
  );
  return {
    url,
    apiKey: createUser.apiKey,
    close: async () => {
      await app.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
};
