import { type Connection, openConnection } from './http.ts';

/** Answers a second, with one client for each body. */
export const rate = async (
  port: number,
  paths: string | readonly string[],
  bodies: readonly string[],
  tokens: readonly string[],
  seconds: number,
): Promise<number> => {
  const connections = await Promise.all(bodies.map(() => openConnection(port)));
  const startedAt = performance.now();
  const until = startedAt + seconds * 1_000;
  const work = async (connection: Connection, index: number): Promise<number> => {
    const headers = `Authorization: Bearer ${tokens[index]}\r\n`;
    const body = bodies[index] ?? '';
    const path = typeof paths === 'string' ? paths : (paths[index] ?? '');
    let done = 0;
    for (; performance.now() < until; done++) {
      const answer = await connection.post(path, body, headers);
      if (answer.status !== 200 || answer.body.includes('"errors"'))
        throw new Error(`${answer.status} ${answer.body.slice(0, 300)}`);
    }
    return done;
  };
  const counts = await Promise.all(connections.map(work));
  const elapsed = (performance.now() - startedAt) / 1_000;
  for (const connection of connections) connection.close();
  return counts.reduce((sum, count) => sum + count, 0) / elapsed;
};
