import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { parse } from 'graphql';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openApiOf } from '../../src/rest/openapi.ts';
import { pathsOf } from '../../src/rest/route.ts';
import { ROUTES } from '../../src/rest/routes.ts';
import { type Server, startApp } from '../support/app.ts';
import { findBrowser } from '../support/browser.ts';

let server: Server;
let origin: string;
beforeAll(async () => {
  server = await startApp();
  origin = new URL(server.url).origin;
});
afterAll(() => server.close());

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, { operationId: string }>>>>;
  readonly components: { readonly schemas: object; readonly parameters: object };
}
const read = async (): Promise<Document> =>
  (await (await fetch(`${origin}/v1/openapi.json`)).json()) as Document;

/** As what a field may stand in a body: under its own name, or as the ids of what it names. */
const namesOf = (field: string): string[] => {
  const name = field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return [name, `${name}_id`, `${name.replace(/s$/, '')}_ids`];
};

describe('the OpenAPI document', () => {
  test('is valid, and is the table of routes', async () => {
    const document = await read();
    expect(document.openapi).toMatch(/^3\.1\./);
    const { valid, errors } = await new Validator().validate(document as never);
    expect([valid, errors]).toEqual([true, undefined]);
    const described = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const served = ROUTES.flatMap((route) => pathsOf(route).map((path) => `${route.method} ${path}`));
    expect(described.sort()).toEqual(served.sort());
    expect(document).toEqual(JSON.parse(JSON.stringify(openApiOf(ROUTES))));
  });

  test('names each operation once', async () => {
    const ids = Object.values((await read()).paths).flatMap((item) =>
      Object.values(item).map(({ operationId }) => operationId),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('refers to nothing that is not there', async () => {
    const document = await read();
    const names = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref ?? '');
    expect(names.length).toBeGreaterThan(50);
    for (const ref of new Set(names)) {
      const [, , kind, name] = ref.split('/') as [string, string, 'schemas' | 'parameters', string];
      expect(Object.keys(document.components[kind])).toContain(name);
    }
  });

  test('has what the twins of its bodies in GraphQL have, under their names', async () => {
    const { components } = await read();
    const schemas = components.schemas as Readonly<Record<string, { readonly properties: object }>>;
    const { definitions } = parse(readFileSync('schema.graphql', 'utf8'));
    /** Fields that are part of a path, and one that says what `GET /v1/threads/{id}` says. */
    const twins: readonly (readonly [name: string, twin: string, elsewhere?: string])[] = [
      ['PostMessageInput', 'MessageCreate', 'threadId'],
      ['RetractMessageInput', 'MessageRetract', 'messageId'],
      ['LeaveThreadInput', 'ThreadLeave', 'threadId'],
      ['ExecuteToolInput', 'ToolExecute'],
      ['ExecuteToolPayload', 'ToolExecuted'],
      ['Message', 'Message'],
      ['ParticipantStateChanged', 'ParticipantStateChanged', 'member'],
      ['Retraction', 'Retraction'],
      ['SystemEvent', 'SystemEvent'],
    ];
    for (const [name, twin, elsewhere] of twins) {
      const type = definitions.find((one) => 'name' in one && one.name?.value === name);
      const fields = type !== undefined && 'fields' in type ? (type.fields ?? []) : [];
      const has = Object.keys(schemas[twin]?.properties ?? {});
      const missing = fields
        .map((field) => field.name.value)
        .filter((field) => field !== elsewhere && !namesOf(field).some((one) => has.includes(one)));
      expect(fields.length).toBeGreaterThan(1);
      expect([twin, missing]).toEqual([twin, []]);
    }
  });

  test('may be read by everybody, and says so in its headers', async () => {
    const response = await fetch(`${origin}/v1/openapi.json`);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  });
});

describe('the page to browse it', () => {
  test('is served whole, from this server alone, under a strict policy', async () => {
    const page = await fetch(`${origin}/v1/docs`);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    const html = await page.text();
    expect(await (await fetch(`${origin}/v1/docs/`)).text()).toBe(html);
    expect(html).not.toMatch(/<script>|<style|https?:/);
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? '');
    expect(files.length).toBeGreaterThan(2);
    for (const path of files.filter((file) => !file.startsWith('data:'))) {
      expect(path).toMatch(/^\/v1\/docs\//);
      const file = await fetch(`${origin}${path}`);
      expect([path, file.status]).toEqual([path, 200]);
      expect((await file.arrayBuffer()).byteLength).toBeGreaterThan(0);
    }
  });

  test('serves no other file', async () => {
    for (const name of [
      'index.html',
      'package.json',
      '../package.json',
      '..%2fpackage.json',
      'swagger-ui.js.map',
    ])
      expect([name, (await fetch(`${origin}/v1/docs/${name}`)).status]).toEqual([name, 404]);
  });
});

const BROWSER = await findBrowser();

if (BROWSER !== undefined)
  test('shows every route in a browser, which is refused nothing it asks for', async () => {
    const browser: Browser = await chromium.launch({
      executablePath: BROWSER,
      args: ['--no-sandbox', '--headless', '--disable-gpu', '--disable-background-networking'],
    });
    try {
      const page = await browser.newPage();
      const complaints: string[] = [];
      page.on('console', (line) => {
        if (line.type() === 'error') complaints.push(line.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      const asked: string[] = [];
      page.on('request', (request) => asked.push(request.url()));
      await page.goto(`${origin}/v1/docs`);
      const operations = page.locator('.opblock');
      const count = ROUTES.flatMap(pathsOf).length;
      await operations.nth(count - 1).waitFor({ timeout: 60_000 });
      expect(await operations.count()).toBe(count);
      await operations.first().locator('.opblock-summary-control').first().click();
      await page.locator('.opblock-body').first().waitFor();
      expect(complaints).toEqual([]);
      expect(asked.filter((url) => !url.startsWith(origin) && !url.startsWith('data:'))).toEqual([]);
    } finally {
      await browser.close();
    }
  });
