import { WebSocket } from 'ws';
import type { Child } from './child.ts';

/** Bytes that a process holds after everything unused was collected, asked through its debugger. */
export const heldBytes = async ({ inspector }: Child): Promise<number> => {
  if (inspector === null) throw new Error('The process was not started to be inspected.');
  const socket = new WebSocket(inspector, { perMessageDeflate: false });
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  let id = 0;
  const call = (method: string, params: object = {}): Promise<unknown> =>
    new Promise((resolve) => {
      const mine = ++id;
      const listen = (data: Buffer): void => {
        const message = JSON.parse(data.toString()) as { id?: number; result?: unknown };
        if (message.id !== mine) return;
        socket.off('message', listen);
        resolve(message.result);
      };
      socket.on('message', listen);
      socket.send(JSON.stringify({ id: mine, method, params }));
    });
  for (let pass = 0; pass < 3; pass++) await call('HeapProfiler.collectGarbage');
  const expression =
    '(() => { const { heapUsed, external } = process.memoryUsage(); return heapUsed + external; })()';
  const { result } = (await call('Runtime.evaluate', { expression })) as { result: { value: number } };
  socket.terminate();
  return result.value;
};
