import { createServer } from 'node:http';

/** A handler as bare as Node has it: one JSON body in, one work by path, one JSON answer. */
export const serve = <Input>(works: Readonly<Record<string, (input: Input) => Promise<string>>>): void => {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const input = JSON.parse(Buffer.concat(chunks).toString()) as Input;
      const work = works[request.url ?? ''] ?? (() => Promise.reject(new Error('No such path.')));
      work(input)
        .then((id) => JSON.stringify({ data: { id } }))
        .catch((error: unknown) => JSON.stringify({ errors: [{ message: String(error) }] }))
        .then((body) => {
          response.writeHead(200, {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
          });
          response.end(body);
        })
        .catch(() => response.destroy());
    });
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (address !== null && typeof address === 'object') console.log(`ready on ${address.port}`);
  });
  process.once('SIGTERM', () => process.exit(0));
};
