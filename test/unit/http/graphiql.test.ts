import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createGraphiqlPage } from '../../../src/http/graphiql.ts';

describe('the GraphiQL page', () => {
  const ended: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ended.splice(0).reverse()) await end();
  });

  const serve = async (files: Readonly<Record<string, string>>) => {
    const folder = await mkdtemp(join(tmpdir(), 'page-'));
    ended.push(() => rm(folder, { recursive: true }));
    await mkdir(join(folder, 'assets'));
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const page = createGraphiqlPage(folder);
    const server = createServer((request, response) => {
      const path = request.url ?? '/';
      void (page.matches(path)
        ? page.serve({ request, response, path })
        : page.servePage({ request, response }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ended.push(() => server.close());
    ended.push(() => server.closeAllConnections());
    const { port } = server.address() as AddressInfo;
    return (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init);
  };
  const built = {
    'index.html': '<!doctype html>',
    'assets/a-1.js': 'x'.repeat(5_000),
    'assets/a-1.css': 'p{}',
  };

  it('is never taken from a cache unasked, its files always', async () => {
    const get = await serve(built);
    for (const path of ['/graphql', '/graphiql', '/graphiql/']) {
      const page = await get(path);
      expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
      expect(page.headers.get('cache-control')).toBe('no-cache');
    }
    const script = await get('/graphiql/assets/a-1.js');
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(script.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(await script.text()).toHaveLength(5_000);
  });

  it('sends what gets smaller by it compressed, to who takes it so', async () => {
    const get = await serve(built);
    const encodingOf = async (path: string, accepted: string) =>
      (await get(path, { headers: { 'accept-encoding': accepted } })).headers.get('content-encoding');
    expect(await encodingOf('/graphiql/assets/a-1.js', 'br, gzip')).toBe('gzip');
    expect(await encodingOf('/graphiql/assets/a-1.js', 'identity')).toBeNull();
    expect(await encodingOf('/graphiql/assets/a-1.css', 'gzip')).toBeNull();
  });

  it('allows scripts and connections of this server alone, and no frame around it', async () => {
    const policy = (await (await serve(built))('/graphql')).headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(/^default-src 'none'; script-src 'self';/);
    expect(policy).toMatch(/connect-src 'self' ws:\/\/127\.0\.0\.1:\d+ wss:\/\/127\.0\.0\.1:\d+;/);
    expect(policy).toContain("frame-ancestors 'none'");
  });

  it('knows the files of its folder and nothing else', async () => {
    const get = await serve(built);
    for (const path of [
      '/graphiql/assets/b.js',
      '/graphiql/assets',
      '/graphiql/..%2fsecret.txt',
      '/graphiql//etc/passwd',
    ])
      expect((await get(path)).status, path).toBe(404);
    expect((await get('/graphql', { method: 'POST' })).status).toBe(405);
    const head = await get('/graphiql/assets/a-1.js', { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  it('says in one line that it was not built', async () => {
    const page = createGraphiqlPage('/nowhere');
    expect(page.missing).toBe('GraphiQL is not built: run `npm run build:pages`.');
    const answer = await (await serve({}))('/graphql');
    expect([answer.status, await answer.text()]).toEqual([503, `${page.missing}\n`]);
  });
});
