import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Line {
  readonly port: number;
  /** Resets every connection that is open now, on both ends. */
  cut(): void;
  /** Where new connections lead from now on, as behind a load balancer. */
  lead(target: number): void;
  close(): void;
}

/** A port that leads to another one, with a pair of scissors. */
export const openLine = async (first: number): Promise<Line> => {
  let target = first;
  const open = new Set<Socket>();
  const keep = (socket: Socket, other: Socket) => {
    open.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => other.destroy());
    socket.on('close', () => {
      open.delete(socket);
      other.destroy();
    });
    socket.pipe(other);
  };
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    keep(near, far);
    keep(far, near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of open) socket.resetAndDestroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    lead(next) {
      target = next;
    },
    close() {
      server.close();
      cut();
    },
  };
};
