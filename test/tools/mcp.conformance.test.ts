import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { plainMcp } from '../support/mcp.ts';
import { type Scene, toolScene } from '../support/toolScene.ts';

/**
 * The protocol's own conformance suite against the product. It has no credential to give: a proxy adds one, and passes
 * on all else as it is.
 */
let scene: Scene;
let url = '';
const proxy = createServer((incoming, outgoing) => {
  const { hostname, port } = new URL(scene.server.url);
  const headers = { ...incoming.headers, authorization: `Bearer ${scene.tokenOf('scout')}` };
  // The name is the one that the suite says, at the address that it asked.
  const passed = forward(
    { hostname, port, path: incoming.url, method: incoming.method, headers },
    (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    },
  );
  passed.on('error', () => outgoing.destroy());
  outgoing.on('close', () => passed.destroy());
  incoming.pipe(passed);
});

beforeAll(async () => {
  scene = await toolScene();
  const thread = await scene.open('ada', 'scout');
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', () => resolve()));
  url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp/threads/${thread}`;
});
afterAll(async () => {
  proxy.closeAllConnections();
  await new Promise<void>((resolve) => proxy.close(() => resolve()));
  await scene.server.close();
});

/**
 * What is not applicable, and why. `asksFor`: a tool or resource of a server made for the suite. `capability`: something that
 * a server may have and that this one does not declare.
 */
const NOT_APPLICABLE: Readonly<
  Record<string, { readonly asksFor: string } | { readonly capability: string }>
> = {
  'tools-call-simple-text': { asksFor: 'test_simple_text' },
  'tools-call-image': { asksFor: 'test_image_content' },
  'tools-call-audio': { asksFor: 'test_audio_content' },
  'tools-call-embedded-resource': { asksFor: 'test_embedded_resource' },
  'tools-call-mixed-content': { asksFor: 'test_multiple_content_types' },
  'tools-call-with-logging': { asksFor: 'test_tool_with_logging' },
  'tools-call-error': { asksFor: 'test_error_handling' },
  'tools-call-with-progress': { asksFor: 'test_tool_with_progress' },
  'tools-call-sampling': { asksFor: 'test_sampling' },
  'tools-call-elicitation': { asksFor: 'test_elicitation' },
  'json-schema-2020-12': { asksFor: 'json_schema_2020_12_tool' },
  'elicitation-sep1034-defaults': { asksFor: 'test_elicitation_sep1034_defaults' },
  'elicitation-sep1330-enums': { asksFor: 'test_elicitation_sep1330_enums' },
  'server-sse-polling': { asksFor: 'test_reconnection' },
  'resources-read-text': { asksFor: 'test://static-text' },
  'resources-read-binary': { asksFor: 'test://static-binary' },
  'resources-templates-read': { asksFor: 'test://template/123/data' },
  'resources-subscribe': { asksFor: 'test://watched-resource' },
  'resources-unsubscribe': { asksFor: 'test://watched-resource' },
  'logging-set-level': { capability: 'logging' },
  'completion-complete': { capability: 'completions' },
  'prompts-list': { capability: 'prompts' },
  'prompts-get-simple': { capability: 'prompts' },
  'prompts-get-with-args': { capability: 'prompts' },
  'prompts-get-embedded-resource': { capability: 'prompts' },
  'prompts-get-with-image': { capability: 'prompts' },
};
const APPLICABLE = [
  'server-initialize',
  'ping',
  'tools-list',
  'resources-list',
  'server-sse-multiple-streams',
  'dns-rebinding-protection',
];

const COMMAND = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);

/** All scenarios one after the other in one process, also those that ask for what is not there. */
const runAll = (): Promise<string> =>
  new Promise((resolve, reject) => {
    const args = [COMMAND, 'server', '--url', url, '--suite', 'all'];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => (output += String(chunk)));
    child.once('error', reject);
    child.once('close', () => resolve(output));
  });

describe('the conformance suite', () => {
  let output = '';
  /** Of each scenario what its summary says. */
  let results: ReadonlyMap<string, string>;
  beforeAll(async () => {
    output = await runAll();
    const summary = output.slice(output.indexOf('=== SUMMARY ==='));
    results = new Map(
      [...summary.matchAll(/^[✓✗] ([\w-]+): (.+)$/gm)].map(([, name = '', result = '']) => [name, result]),
    );
  });

  test('has no scenario that nobody has decided on', () => {
    expect(results.size, output).toBeGreaterThan(20);
    expect([...results.keys()].sort()).toEqual([...APPLICABLE, ...Object.keys(NOT_APPLICABLE)].sort());
  });

  test('passes over nothing without a reason that is true', async () => {
    const suite = await readFile(COMMAND, 'utf8');
    const scout = plainMcp(scene.server, scene.tokenOf('scout'), url.split('/').at(-1));
    const { capabilities } = (await scout.open()).result as { capabilities: object };
    const tools = (await scout.request('tools/list')).result;
    const resources = [
      (await scout.request('resources/list')).result,
      (await scout.request('resources/templates/list')).result,
    ];
    const offered = JSON.stringify([tools, resources]);
    for (const [scenario, reason] of Object.entries(NOT_APPLICABLE))
      if ('capability' in reason)
        expect([scenario, reason.capability in capabilities]).toEqual([scenario, false]);
      else {
        expect([scenario, suite.includes(reason.asksFor)]).toEqual([scenario, true]);
        expect([scenario, offered.includes(reason.asksFor)]).toEqual([scenario, false]);
      }
  });

  test.each(APPLICABLE)('%s', (scenario) => {
    expect(results.get(scenario), output).toMatch(/^[1-9]\d* passed, 0 failed$/);
  });
});
