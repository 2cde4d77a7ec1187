import { WebSocketServer } from 'ws';

/** What a socket costs by itself. */
const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
server.once('listening', () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') console.log(`ready on ${address.port}`);
});
process.once('SIGTERM', () => process.exit(0));
