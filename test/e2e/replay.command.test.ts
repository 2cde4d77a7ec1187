import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTenant, type Server, startApp, type Tenant } from '../support/app.ts';

interface Outcome {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

const command = (
  args: readonly string[],
  onOutput: (text: string, kill: (signal: NodeJS.Signals) => void) => void = () => {},
): Promise<Outcome> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, ['--import', 'tsx', 'scripts/replay.ts', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let errors = '';
    child.stdout.on('data', (data: Buffer) => {
      output += data.toString();
      onOutput(output, (signal) => child.kill(signal));
    });
    child.stderr.on('data', (data: Buffer) => {
      errors += data.toString();
    });
    child.once('close', (code) => resolve({ code, output, errors }));
  });

const OPEN = {
  op: 'open',
  participants: [
    { handle: 'ada', kind: 'HUMAN' },
    { handle: 'scout', kind: 'AGENT' },
  ],
};
const lines = (...operations: object[]): string => operations.map((line) => JSON.stringify(line)).join('\n');

let server: Server;
let tenant: Tenant;
let folder: string;

beforeAll(async () => {
  server = await startApp();
  tenant = await createTenant(server, {});
  folder = await mkdtemp(join(tmpdir(), 'tp-replay-'));
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

const file = async (content: string): Promise<string> => {
  const path = join(folder, `${crypto.randomUUID()}.jsonl`);
  await writeFile(path, content);
  return path;
};

const there = (): string[] => ['--url', server.url, '--key', tenant.apiKey];

describe('npm run replay', () => {
  test('plays into a running server, follows one live, and says what each can see', async () => {
    const path = await file(
      lines(
        OPEN,
        { op: 'message', who: 'ada', text: 'Good morning' },
        { op: 'remove', who: 'scout' },
        { op: 'message', who: 'ada', text: 'Unheard' },
        { op: 'entry', who: 'ada', text: 'Never seen' },
        { op: 'readd', who: 'scout' },
        { op: 'content', who: 'ada', text: 'A plan' },
        { op: 'entry', who: 'scout', text: 'A finding' },
        { op: 'message', who: 'scout', text: 'Back' },
      ),
    );
    const { code, output, errors } = await command([path, ...there(), '--follow', 'scout', '--speed', '500']);
    expect(errors).toContain('Operations 8/8');
    expect(code).toBe(0);
    const shown = output.split('\n').map((line) => line.trim().replaceAll(/ {2,}/g, ' '));
    expect(shown).toContain('2 ada: Good morning');
    expect(shown).toContain('3 · scout removed');
    expect(shown).toContain('5 · scout readded');
    expect(shown).toContain('6 scout: Back');
    expect(output).not.toContain('Unheard');
    expect(shown).toContain('= ada writes: A plan');
    expect(shown).toContain('+ scout notes: A finding');
    expect(output).not.toContain('Never seen');
    expect(shown).toContain('(everything) 6 100 % 3 1 0 1 6 2');
    expect(shown).toContain('ada active 6 100 % 3 1 1 1 6 2');
    expect(shown).toContain('scout active 5 83 % 2 2 1 1 6 1');
    expect(output).toContain('The scratchpad’s body was written 1 times, and 2 entries were appended.');
    expect(output).toContain('Everybody sees exactly what happened while they were there.');
  });

  test('does not go on in a thread that is there; with a prefix it takes others', async () => {
    const path = await file(
      lines(OPEN, { op: 'message', who: 'ada', text: 'Good morning' }).replaceAll('ada', 'adam'),
    );
    expect((await command([path, ...there()])).code).toBe(0);
    const again = await command([path, ...there()]);
    expect(again.code).toBe(1);
    expect(again.errors).toMatch(/have a thread already \(thread_\w+\): give others with --prefix/);
    expect((await command([path, ...there(), '--prefix', 'second-'])).code).toBe(0);
  });

  test('a refused operation is one line that names it', async () => {
    const path = await file(
      lines(OPEN, { op: 'remove', who: 'scout' }, { op: 'message', who: 'scout', text: 'Hello?' }),
    );
    const { code, errors } = await command([path, ...there(), '--prefix', 'refused-']);
    expect(code).toBe(1);
    expect(errors).toContain('Line 3: message of scout: PARTICIPANT_NOT_ACTIVE: ');
  });

  test.each([
    {
      args: ['nowhere.jsonl'],
      says: /^\S+nowhere\.jsonl cannot be read: ENOENT: no such file or directory$/m,
    },
    { args: ['examples/channel-excerpt.jsonl', '--speed', 'fast'], says: /^--speed: a number above 0/ },
    { args: ['examples/channel-excerpt.jsonl', '--url', 'here'], says: /^--url: "here" is no address/ },
    {
      args: ['examples/channel-excerpt.jsonl', '--url', 'http://localhost:1'],
      says: /^--url needs an API key/,
    },
    { args: ['examples/channel-excerpt.jsonl', '--follow', 'nobody'], says: /^--follow: "nobody" is not/ },
    { args: ['examples/channel-excerpt.jsonl', '--faster'], says: /^Unknown option '--faster'/ },
  ])('$args is refused in one line', async ({ args, says }) => {
    const { code, errors } = await command(args);
    expect(code).toBe(1);
    expect(errors).toMatch(says);
    expect(errors.trim().split('\n')).toHaveLength(1);
  });

  test('a dead key is one line', async () => {
    const { code, errors } = await command([
      'examples/channel-excerpt.jsonl',
      '--url',
      server.url,
      '--key',
      'tp_key_dead',
    ]);
    expect(code).toBe(1);
    expect(errors).toMatch(/^UNAUTHENTICATED: /m);
  });

  test('has a server of its own without an address, gone with it also when interrupted', async () => {
    let folderOfServer = '';
    const { code, output } = await command(
      ['examples/channel-excerpt.jsonl', '--speed', '5'],
      (text, kill) => {
        if (folderOfServer !== '' || !text.includes('Watch it live: http://127.0.0.1:')) return;
        folderOfServer = text;
        kill('SIGINT');
      },
    );
    expect(code).toBe(130);
    expect(output).toMatch(/#key=tp_key_\S+&thread=thread_\w+/);
    expect(output).not.toContain('(everything)');
  });
});
