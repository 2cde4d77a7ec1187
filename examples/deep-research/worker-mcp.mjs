// A worker whose runtime speaks MCP: the tools of its run are what the server says they are.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { work } from './worker.mjs';

const { THREADPAD_URL: url = 'http://127.0.0.1:4000/graphql', THREADPAD_TOKEN: token } = process.env;

const client = new Client({ name: 'deep-research', version: '1' });
await client.connect(
  new StreamableHTTPClientTransport(new URL('/mcp', url), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  }),
);
await work(async (name, given) => {
  const { content, isError = false } = await client.callTool({ name, arguments: given });
  return { output: content.map(({ text }) => text).join('\n'), isError };
});
await client.close();
