import { Redis } from 'ioredis';
import { WebSocketServer } from 'ws';

/** What live delivery is compared with: a process that sends what Redis publishes to every socket, and nothing else. */
const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
const subscriber = new Redis(process.env.REDIS_PATH ?? '');
subscriber.on('message', (_channel, message) => {
  for (const socket of server.clients) socket.send(message);
});
server.once('listening', async () => {
  await subscriber.subscribe('bench');
  const address = server.address();
  if (address !== null && typeof address === 'object') console.log(`ready on ${address.port}`);
});
process.once('SIGTERM', () => process.exit(0));
