import { once } from 'node:events';
import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';

/**
 * Tells each command that reaches a Redis, and `lua` as the source of those that scripts run; answers how to stop.
 * Not with the driver's own: it takes a command that is told together with the "OK" for a reply to nothing, and throws.
 */
export const monitorRedis = async (
  path: string,
  onCommand: (args: readonly string[], source: string) => void,
): Promise<() => void> => {
  const socket = createConnection(path);
  await once(socket, 'connect');
  socket.write('MONITOR\r\n');
  const lines = createInterface({ input: socket });
  const began = once(lines, 'line');
  lines.on('line', (line) => {
    const [, source, rest = ''] = /^\+[\d.]+ \[\d+ ([^\]]*)\] (.*)$/.exec(line) ?? [];
    if (source === undefined) return;
    const args = [...rest.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, arg = '']) =>
      arg.replace(/\\(.)/g, '$1'),
    );
    onCommand(args, source);
  });
  await began;
  return () => void socket.destroy();
};
