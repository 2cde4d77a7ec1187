import { randomBytes } from 'node:crypto';
import { mkdir, readdir, realpath, rename, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { shortPath } from './shortPath.ts';

export interface FolderLock {
  release(): Promise<void>;
}

/** The folder is somebody else's. The message names who holds it. */
export class FolderInUse extends Error {
  override readonly name = 'FolderInUse';
}

interface Contender {
  readonly file: string;
  readonly pid: number;
  readonly since: Date;
}

const GIVE_UP_MS = 5_000;
const ANSWER_MS = 1_000;

/**
 * Takes `folder` for this process alone, until it ends in whatever way: the lock is a Unix socket that listens in
 * the folder, and the kernel closes it with its process, so nothing stale ever has to be believed.
 *
 * Each contender listens under a name of its own before it looks at the others', and withdraws if one of them is
 * alive. Of two that contend at once at least one sees the other, so two never both succeed. Names are not
 * used twice, so a dead one's can be removed without care.
 */
export const lockFolder = async (folder: string): Promise<FolderLock> => {
  await mkdir(folder, { recursive: true });
  const place = await realpath(folder);
  const deadline = Date.now() + GIVE_UP_MS;
  for (;;) {
    const attempt = await contend(place);
    if ('release' in attempt) return attempt;
    if (attempt.holds || Date.now() > deadline) throw new FolderInUse(inUseMessage(place, attempt.by));
    await delay(20 + Math.random() * 100);
  }
};

type Lost = { readonly by: Contender; readonly holds: boolean };

const contend = async (place: string): Promise<FolderLock | Lost> => {
  const file = `lock-${process.pid}-${Date.now()}-${randomBytes(4).toString('hex')}`;
  const short = await shortPath(place, `${file}.new`);
  let state: 'contends' | 'holds' = 'contends';
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(state);
  });
  const release = async (): Promise<void> => {
    await rm(join(place, file), { force: true });
    await new Promise<void>((resolve) => server.close(() => resolve()));
    await short.dispose();
  };
  try {
    await listen(server, join(short.path, `${file}.new`));
    // Seen by others only now that it listens: one that does not would be taken for dead.
    await rename(join(place, `${file}.new`), join(place, file));
    const rival = await findRival(place, short.path, file);
    if (rival === undefined) {
      state = 'holds';
      server.unref();
      return { release };
    }
    await release();
    return rival;
  } catch (error) {
    await release();
    throw error;
  }
};

const findRival = async (place: string, short: string, own: string): Promise<Lost | undefined> => {
  for (const file of await readdir(place)) {
    const by = contender(file);
    if (by === undefined || file === own) continue;
    const state = await ask(join(short, file));
    if (state === 'dead') await rm(join(place, file), { force: true });
    else return { by, holds: state === 'holds' };
  }
  return undefined;
};

const contender = (file: string): Contender | undefined => {
  const match = /^lock-(\d+)-(\d+)-[0-9a-f]{8}$/.exec(file);
  return match === null ? undefined : { file, pid: Number(match[1]), since: new Date(Number(match[2])) };
};

/** One that is alive and does not answer (stopped, say) holds the folder. */
const ask = (path: string): Promise<'dead' | 'contends' | 'holds'> =>
  new Promise((resolve) => {
    const socket = connect(path);
    let said = '';
    const answer = (state: 'dead' | 'contends' | 'holds'): void => {
      socket.destroy();
      resolve(state);
    };
    socket.setTimeout(ANSWER_MS, () => answer('holds'));
    socket.on('data', (data) => {
      said += data.toString();
    });
    socket.on('end', () => answer(said === 'contends' ? 'contends' : 'holds'));
    socket.on('error', (error: NodeJS.ErrnoException) =>
      answer(error.code === 'ECONNREFUSED' || error.code === 'ENOENT' ? 'dead' : 'holds'),
    );
  });

const listen = (server: Server, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      server.on('error', () => undefined);
      resolve();
    });
  });

const inUseMessage = (folder: string, { pid, since }: Contender): string =>
  `The data folder with ${folder} is in use by process ${pid} on ${hostname()} since ${since.toISOString()}. ` +
  'Stop that process, or give this one another folder with DATA_DIR.';
