import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { createApi } from './replay/api.ts';
import { ownServer } from './replay/ownServer.ts';

// npm run example:agent: a server of its own, a person who asks three things in two threads, and examples/agent.mjs.

const QUESTIONS = ['Is anybody here?', 'How many are we?', 'Shall we begin?'];
const POST = 'mutation Post($input: PostMessageInput!) { postMessage(input: $input) { cursor } }';
const READ = `query Read { threads { nodes { timeline { events(first: 50, types: [MESSAGE]) { nodes {
  ... on Message { content sender { displayName } sources { id } } } } } } } }`;

interface Read {
  readonly threads: {
    readonly nodes: readonly {
      readonly timeline: {
        readonly events: {
          readonly nodes: readonly {
            readonly content: string;
            readonly sender: { readonly displayName: string };
          }[];
        };
      };
    }[];
  };
}

const place = await ownServer('Example of an agent');
const api = createApi(place.url);
const made = async (handle: string, kind: string, displayName: string): Promise<string> => {
  const { createParticipant } = await api.ask<{ createParticipant: { participant: { id: string } } }>(
    place.apiKey,
    'mutation Make($input: CreateParticipantInput!) { createParticipant(input: $input) { participant { id } } }',
    { input: { handle, kind, displayName } },
  );
  return createParticipant.participant.id;
};

try {
  const [ada, nora, scout] = [
    await made('ada', 'HUMAN', 'Ada'),
    await made('nora', 'HUMAN', 'Nora'),
    await made('scout', 'AGENT', 'Scout'),
  ];
  const { createParticipantToken } = await api.ask<{ createParticipantToken: { token: string } }>(
    place.apiKey,
    'mutation Token($id: ID!) { createParticipantToken(input: { participantId: $id }) { token } }',
    { id: scout },
  );
  const agent = spawn(process.execPath, ['examples/agent.mjs'], {
    env: { ...process.env, THREADPAD_URL: place.url, THREADPAD_TOKEN: createParticipantToken.token },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const over = new Promise<void>((resolve) => agent.once('exit', () => resolve()));
  let answers = 0;
  const allAnswered = new Promise<void>((resolve) => {
    createInterface({ input: agent.stdout }).on('line', (line) => {
      console.log(`scout: ${line}`);
      if (line.startsWith('answered')) answers += 1;
      if (answers === QUESTIONS.length) resolve();
    });
  });
  for (const [index, content] of QUESTIONS.entries()) {
    const asker = index === 1 ? nora : ada;
    const { openThread } = await api.ask<{ openThread: { thread: { id: string } } }>(
      place.apiKey,
      'mutation Open($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
      { ids: [asker, scout] },
    );
    await api.ask(place.apiKey, POST, { input: { threadId: openThread.thread.id, as: asker, content } });
  }
  await Promise.race([allAnswered, over]);
  agent.kill();
  await over;
  const { threads } = await api.ask<Read>(place.apiKey, READ);
  for (const { timeline } of threads.nodes) {
    console.log('');
    for (const { sender, content } of timeline.events.nodes) console.log(`${sender.displayName}: ${content}`);
  }
  if (answers < QUESTIONS.length) process.exitCode = 1;
} finally {
  await place.close();
}
process.exit();
