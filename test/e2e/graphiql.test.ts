import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findBrowser } from '../support/browser.ts';
import { openProduct, type Product } from '../support/product.ts';
import { openConversation } from './conversation.ts';

/** A browser of the machine's own: without one only what is served is tested. */
const BROWSER = await findBrowser();
const ARGUMENTS = [
  '--no-sandbox',
  '--headless',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

describe('GraphiQL as it is served', () => {
  let product: Product;
  beforeAll(async () => {
    product = await openProduct();
  });
  afterAll(() => product.close());

  it('is what a browser gets at /graphql, complete and from this server alone', async () => {
    const page = await fetch(product.url, { headers: { accept: 'text/html' } });
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toContain('text/html');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    const files = [...(await page.text()).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? '');
    expect(files.some((path) => path.endsWith('.js'))).toBe(true);
    for (const path of files.filter((file) => !file.startsWith('data:'))) {
      expect(path).toMatch(/^\/graphiql\//);
      const file = await fetch(`${product.origin}${path}`);
      expect([path, file.status]).toEqual([path, 200]);
      expect((await file.arrayBuffer()).byteLength).toBeGreaterThan(0);
    }
  });

  it('is where the bare address leads', async () => {
    const answer = await fetch(`${product.origin}/`, { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/graphql']);
    expect((await fetch(`${product.origin}/`, { method: 'POST' })).status).toBe(405);
  });

  it('is not what a program gets there', async () => {
    const answer = await fetch(product.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ __typename }' }),
    });
    expect(answer.headers.get('content-type')).toContain('json');
  });
});

if (BROWSER !== undefined) {
  describe('GraphiQL in a browser', () => {
    let product: Product;
    let browser: Browser;
    beforeAll(async () => {
      product = await openProduct();
      browser = await chromium.launch({ executablePath: BROWSER, args: ARGUMENTS });
    });
    afterAll(async () => {
      await browser.close();
      await product.close();
    });

    /**
     * A tall page (the editor draws only what is in sight) that remembers nothing, and what went wrong in it: errors,
     * and requests to anywhere else.
     */
    const openPage = async () => {
      const context = await browser.newContext({ viewport: { width: 1280, height: 1400 } });
      const page = await context.newPage();
      const wrong: string[] = [];
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') wrong.push(message.text());
      });
      page.on('pageerror', (error) => wrong.push(String(error)));
      page.on('request', (request) => {
        const { origin, protocol } = new URL(request.url());
        if (origin !== product.origin && protocol !== 'data:') wrong.push(`A request to ${request.url()}`);
      });
      return { page, wrong };
    };
    /** With its editor drawn: a tab that is chosen before may keep the first one's text. */
    const open = async (page: Page, fragment: string) => {
      await page.goto(`${product.url}#${fragment}`);
      await page.locator('.graphiql-query-editor .view-line').first().waitFor();
    };
    const run = (page: Page) => page.click('.graphiql-execute-button');
    const answer = (page: Page) => page.locator('.result-window .view-lines');
    /** The editor writes its spaces as ones that do not break. */
    const shows = (page: Page, text: string) =>
      answer(page)
        .getByText(new RegExp(text.replaceAll(' ', '\\s')))
        .first()
        .waitFor();
    /** Whole only with its text in the editor: until then the button runs what stood there before. */
    const tab = async (page: Page, name: string) => {
      await page.getByRole('tab', { name }).click();
      await page
        .locator('.graphiql-query-editor .view-lines')
        .getByText(new RegExp(`${name}\\b`))
        .first()
        .waitFor();
    };

    it('fills the examples in, runs them, and follows a thread through a lost connection', async () => {
      const { apiKey, threadId, human, say } = await openConversation(product);
      const { page, wrong } = await openPage();
      await open(page, `key=${apiKey}&thread=${threadId}&actAs=${human.id}`);
      expect(page.url()).toBe(product.url);

      await run(page);
      await shows(page, 'API_KEY');
      await tab(page, 'ReadTimeline');
      await run(page);
      await shows(page, 'Message 11');
      await tab(page, 'AsParticipant');
      await run(page);
      await shows(page, 'ACTIVE');
      await tab(page, 'PostMessage');
      await run(page);
      await shows(page, 'Hello from GraphiQL');

      await tab(page, 'FollowTimeline');
      await run(page);
      await page.getByRole('status').getByText('Live').waitFor();
      await say('Before the line was cut');
      await shows(page, 'Before the line was cut');
      product.cut();
      await say('While nobody listened');
      await shows(page, 'While nobody listened');
      await page.getByRole('status').getByText('2 received').waitFor();
      expect(wrong.filter((text) => !/WebSocket connection|ERR_CONNECTION_RESET/.test(text))).toEqual([]);
      await page.context().close();
    });

    it('has a scratchpad’s examples filled in, runs them, and follows it through a lost connection', async () => {
      const { apiKey, threadId, human, share } = await openConversation(product);
      const add = await share();
      const { page, wrong } = await openPage();
      await open(page, `key=${apiKey}&thread=${threadId}&actAs=${human.id}`);
      await tab(page, 'AppendFinding');
      await run(page);
      await shows(page, 'A finding from GraphiQL');
      await tab(page, 'ReadScratchpad');
      await run(page);
      await shows(page, 'RESEARCH SCRATCHPAD');
      await tab(page, 'FollowScratchpad');
      await run(page);
      await page.getByRole('status').getByText('Live').waitFor();
      await add('Before the line was cut');
      await shows(page, 'Before the line was cut');
      product.cut();
      await add('While nobody listened');
      await shows(page, 'While nobody listened');
      await page.getByRole('status').getByText('2 received').waitFor();
      expect(wrong.filter((text) => !/WebSocket connection|ERR_CONNECTION_RESET/.test(text))).toEqual([]);
      await page.context().close();
    });

    it('remembers its tabs and the key, and no key stays in the address', async () => {
      const { apiKey, threadId } = await openConversation(product);
      const { page } = await openPage();
      await open(page, `key=${apiKey}&thread=${threadId}`);
      await page.reload();
      await page.getByRole('tab', { name: 'FollowTimeline' }).waitFor();
      await run(page);
      await shows(page, 'API_KEY');
      await page.context().close();
    });

    it('says clearly that a key is dead, for queries and for subscriptions', async () => {
      const { page } = await openPage();
      await open(page, 'key=tp_key_of_nobody');
      await page.getByRole('status').getByText('refused this key').waitFor();
      await tab(page, 'FollowTimeline');
      await run(page);
      await shows(page, 'refused this key');
      await page.context().close();
    });

    it('says clearly that a key is not whole, where the browser itself does not send it', async () => {
      const { page } = await openPage();
      await open(page, `key=${encodeURIComponent('tp_key_…')}`);
      await page.getByRole('status').getByText('cut short').waitFor();
      await run(page);
      await shows(page, 'Is the key whole?');
      await page.context().close();
    });
  });
}
