import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Stands between a server and its Postgres, understands as much of the wire as it takes to tell statements apart, and
 * can hold one back: so a test looks between two statements without a hook in the product.
 */
export interface PostgresProxy extends AsyncDisposable {
  /** The same database, through this. */
  readonly url: string;
  /** Each statement that was run, in order: its name where it was prepared, else its text. */
  readonly ran: readonly string[];
  /** Called before a statement is passed on; what it returns is awaited. Null: nothing is held. */
  before: ((statement: string) => Promise<void> | undefined) | null;
  /** Of a statement that it says so of the answer is lost: it is done, and then the connection breaks. Null: of none. */
  loses: ((statement: string) => boolean) | null;
}

export const startPostgresProxy = async (databaseUrl: string): Promise<PostgresProxy> => {
  const target = new URL(databaseUrl);
  const file = `.s.PGSQL.${target.port || 5432}`;
  const folder = await mkdtemp(join(tmpdir(), 'tp-pg-proxy-'));
  const ran: string[] = [];
  const sockets = new Set<Socket>();
  const proxy = { before: null as PostgresProxy['before'], loses: null as PostgresProxy['loses'] };

  const server = createServer((client) => {
    const upstream = createConnection(join(target.searchParams.get('host') ?? '', file));
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    let isLost = false;
    void passBack(upstream, client, () => isLost);
    void passOn(client, upstream, (statement) => {
      ran.push(statement);
      isLost ||= proxy.loses?.(statement) === true;
      return proxy.before?.(statement);
    });
  });
  server.listen(join(folder, file));
  await once(server, 'listening');

  const through = new URL(databaseUrl);
  through.searchParams.set('host', folder);
  return Object.assign(proxy, {
    url: through.href,
    ran,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await rm(folder, { recursive: true, force: true });
    },
  });
};

/** Messages of a client one after the other; the first has no type. Source: PostgreSQL, "Message Formats". */
const passOn = async (
  client: Socket,
  upstream: Socket,
  onStatement: (statement: string) => Promise<void> | undefined,
): Promise<void> => {
  const texts = new Map<string, string>();
  let rest = Buffer.alloc(0);
  let hasStarted = false;
  try {
    for await (const chunk of client) {
      rest = Buffer.concat([rest, chunk as Buffer]);
      let passable: Buffer[] = [];
      for (;;) {
        const head = hasStarted ? 1 : 0;
        if (rest.length < head + 4) break;
        const length = head + rest.readUInt32BE(head);
        if (rest.length < length) break;
        const message = rest.subarray(0, length);
        rest = rest.subarray(length);
        const statement = hasStarted ? statementOf(message, texts) : null;
        hasStarted = true;
        const held = statement === null ? undefined : onStatement(statement);
        if (held !== undefined) {
          upstream.write(Buffer.concat(passable));
          passable = [];
          await held;
        }
        passable.push(message);
      }
      upstream.write(Buffer.concat(passable));
    }
  } catch {
    // The connection broke.
  }
  upstream.end();
};

/**
 * The process ids are not the database's, as behind a pooler: a server that finds a connection idle whose statement is
 * held here must not give it up, or what it serves is asked again, past whatever is held.
 */
const passBack = async (upstream: Socket, client: Socket, isLost: () => boolean): Promise<void> => {
  let rest = Buffer.alloc(0);
  let isKnown = false;
  try {
    for await (const chunk of upstream) {
      rest = Buffer.concat([rest, chunk as Buffer]);
      if (isLost()) {
        if (!isReady(rest)) continue;
        client.destroy();
        return;
      }
      if (!isKnown) {
        const at = backendKeyIn(rest);
        if (at === undefined) continue;
        isKnown = true;
        rest.writeInt32BE(rest.readInt32BE(at) + 1_000_000_000, at);
      }
      client.write(rest);
      rest = Buffer.alloc(0);
    }
  } catch {
    // The connection broke.
  }
  client.end(rest);
};

/** The server is ready for the next statement: what came before is committed. */
const isReady = (messages: Buffer): boolean =>
  messages.subarray(-6, -1).toString('latin1') === 'Z\0\0\0\u0005';

/** Where in the server's first messages its process id stands; undefined while they are not whole. */
const backendKeyIn = (messages: Buffer): number | undefined => {
  for (let at = 0; at + 9 <= messages.length; at += 1 + messages.readUInt32BE(at + 1))
    if (messages[at] === 'K'.charCodeAt(0)) return at + 5;
  return undefined;
};

/** What a message runs: the name of a prepared statement, or the text. Remembers texts of unnamed ones on the way. */
const statementOf = (message: Buffer, texts: Map<string, string>): string | null => {
  const words = (): string[] => message.subarray(5).toString('utf8').split('\0', 2);
  switch (String.fromCharCode(message[0] ?? 0)) {
    case 'Q':
      return words()[0] ?? '';
    case 'P': {
      const [name = '', text = ''] = words();
      texts.set(name, text);
      return null;
    }
    case 'B': {
      const [, name = ''] = words();
      return name === '' ? (texts.get('') ?? '') : name;
    }
    default:
      return null;
  }
};
