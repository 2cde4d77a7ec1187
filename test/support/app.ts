import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { inject } from 'vitest';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import type { Services } from '../../src/services.ts';
import { setLogLevel } from '../../src/shared/log.ts';
import { createTestDatabase } from './database.ts';
import { ADMIN_TOKEN } from './identity.ts';

export interface Answer<Data = Record<string, unknown>> {
  readonly data?: Data | null;
  readonly errors?: readonly {
    readonly message: string;
    readonly path?: readonly (string | number)[];
    readonly extensions?: { readonly code?: string } & Readonly<Record<string, unknown>>;
  }[];
}

/** A server that a test talks to from outside. */
export interface Server extends AsyncDisposable {
  /** `http://…/graphql` */
  readonly url: string;
  /** `ws://…/graphql` */
  readonly socketUrl: string;
  /** One operation over HTTP with a credential (or none), as another participant if asked. */
  graphql<Data = Record<string, unknown>>(
    token: string | null,
    query: string,
    variables?: Readonly<Record<string, unknown>>,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer<Data>>;
  close(): Promise<void>;
}

const serverAt = (url: string, close: () => Promise<void>): Server => ({
  url,
  socketUrl: url.replace(/^http/, 'ws'),
  async graphql(token, query, variables = {}, headers = {}) {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      body: JSON.stringify({ query, variables }),
    });
    const text = await response.text();
    try {
      return JSON.parse(text) as never;
    } catch {
      throw new Error(`The server answered ${response.status} and no JSON: ${text}`);
    }
  },
  close,
  [Symbol.asyncDispose]: close,
});

export interface Stores {
  readonly databaseUrl: string;
  readonly redisUrl: string;
}

const environmentOf = ({ databaseUrl, redisUrl }: Stores): Record<string, string> => ({
  NODE_ENV: 'test',
  PORT: '0',
  DATABASE_URL: databaseUrl,
  REDIS_URL: redisUrl,
  ADMIN_TOKEN,
  LOG_LEVEL: 'silent',
});

/** The whole product in this process, on a database of its own. */
export const startApp = async (
  environment: Readonly<Record<string, string>> = {},
): Promise<Server & { readonly services: Services; readonly stores: Stores }> => {
  const testDatabase = await createTestDatabase();
  const stores = { databaseUrl: testDatabase.url, redisUrl: inject('redisUrl') };
  setLogLevel('error');
  const app = await createApp(readConfig({ ...environmentOf(stores), ...environment }));
  const { url } = await app.listen();
  const server = serverAt(url, async () => {
    await app.close();
    await testDatabase.drop();
  });
  return { ...server, services: app.services, stores };
};

/** Run before a process: its standard input ends with us, however that comes about, and it with that. A test that runs out of time ends nothing. */
const ENDING_WITH_US = `data:text/javascript,${encodeURIComponent("process.stdin.on('end', () => process.exit(1)).resume().unref()")}`;

/** The whole product as it is built, as a process of its own, on given stores; several may share them. */
export const startProcess = async (
  stores: Stores,
  environment: Readonly<Record<string, string>> = {},
): Promise<
  Server & { readonly process: ChildProcess; readonly log: readonly string[]; kill9(): Promise<void> }
> => {
  const child = spawn(process.execPath, ['--import', ENDING_WITH_US, 'dist/main.js'], {
    env: { ...process.env, ...environmentOf(stores), ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const log: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    log.push(line);
    // What nobody asked to be told is told.
    if (environment.LOG_LEVEL === undefined) console.error(line);
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`The server ended with ${code} before it listened.`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [, at] = /listens on (\S+)/.exec(line) ?? [];
      if (at !== undefined) resolve(at);
    });
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  return { ...serverAt(url, () => end('SIGTERM')), process: child, log, kill9: () => end('SIGKILL') };
};

export interface Tenant {
  readonly apiKey: string;
  readonly userId: string;
  /** By handle. */
  readonly participants: Readonly<Record<string, { readonly id: string; readonly token: string }>>;
}

/** A tenant of its own with participants and a token for each, made through the API. */
export const createTenant = async (
  server: Pick<Server, 'graphql'>,
  handles: Readonly<Record<string, 'HUMAN' | 'AGENT' | 'UNIT'>>,
): Promise<Tenant> => {
  const { data } = await server.graphql<{ createUser: { apiKey: string; user: { id: string } } }>(
    ADMIN_TOKEN,
    'mutation($name: String!) { createUser(input: { name: $name }) { apiKey user { id } } }',
    { name: `Tenant of ${Object.keys(handles).slice(0, 8).join(', ')}` },
  );
  if (!data) throw new Error('No user was made.');
  const { apiKey, user } = data.createUser;
  const participants: Record<string, { id: string; token: string }> = {};
  for (const [handle, kind] of Object.entries(handles))
    participants[handle] = await createParticipant(server, apiKey, handle, kind);
  return { apiKey, userId: user.id, participants };
};

export const createParticipant = async (
  server: Pick<Server, 'graphql'>,
  apiKey: string,
  handle: string,
  kind: 'HUMAN' | 'AGENT' | 'UNIT',
): Promise<{ id: string; token: string }> => {
  const made = await server.graphql<{ createParticipant: { participant: { id: string } } }>(
    apiKey,
    'mutation($input: CreateParticipantInput!) { createParticipant(input: $input) { participant { id } } }',
    { input: { handle, kind } },
  );
  const id = made.data?.createParticipant.participant.id ?? '';
  const issued = await server.graphql<{ createParticipantToken: { token: string } }>(
    apiKey,
    'mutation($input: CreateParticipantTokenInput!) { createParticipantToken(input: $input) { token } }',
    { input: { participantId: id } },
  );
  return { id, token: issued.data?.createParticipantToken.token ?? '' };
};
