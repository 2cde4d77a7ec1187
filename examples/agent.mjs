// An agent's runtime: node examples/agent.mjs, with THREADPAD_URL (http://…/graphql) and THREADPAD_TOKEN (an agent's).
// It takes messages as they come, from all its threads at once, thinks, and answers and acknowledges in one commit. Killed at
// any point it leaves nothing half done: what it had in hand comes again when its lease ends, and is answered exactly once.
import { createClient } from 'graphql-ws';
import { resumable, steady } from 'threadpad/client';
import { WebSocket } from 'ws';

const fatal = (why) => {
  console.error(why);
  process.exit(1);
};
const { THREADPAD_URL: url = 'http://127.0.0.1:4000/graphql', THREADPAD_TOKEN: token } = process.env;
if (!token) fatal('Set THREADPAD_TOKEN to an agent’s token, tp_part_…: createParticipantToken gives one.');

/** What went wrong in one line: errors of an operation, a socket that was closed, a connection that failed. */
const reasonOf = (problem) => {
  const { message, code, reason } = [problem].flat()[0];
  if (code === 1006) return `nobody answers at ${url} (1006)`;
  return message || (code ? `the server closed the connection (${code} ${reason})` : String(problem));
};
const client = resumable(
  createClient({
    url: url.replace(/^http/, 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
    on: { connected: () => console.log('listening') },
    ...steady,
  }),
  // The server is away, or does not take the token: it is tried again for as long as it takes.
  { onRetry: (problem, ms) => console.error(`again in ${Math.ceil(ms / 1000)} s: ${reasonOf(problem)}`) },
);

/** One query or mutation; its data, or an error with the API's code. */
const ask = async (query, variables) => {
  for await (const { data, errors } of client.iterate({ query, variables })) {
    if (errors) throw Object.assign(new Error(errors[0].message), errors[0].extensions);
    return data;
  }
};

const INBOX = `subscription Inbox {
  inbox { channel deliveryId attempt notice ended thread { id } events { id ... on Message { content sender { displayName } } } }
}`;
const ANSWER = `mutation Answer($input: PostMessageInput!) { postMessage(input: $input) { message { seq } } }`;
const SIGNAL = `mutation Signal($input: SignalInput!) { signal(input: $input) { delivered } }`;

/** Whatever the agent is made of goes here. This one only needs a while. */
const think = async ({ content, sender }) => {
  await new Promise((resolve) => setTimeout(resolve, 50));
  return `${sender.displayName}, you said “${content}”, and I agree.`;
};

const take = (delivery) => {
  if (delivery.channel === 'CONTROL') console.log(`told ${delivery.notice}`);
  // Threads do not wait for each other. What fails is handed out again when its lease ends.
  if (delivery.channel === 'MESSAGE')
    handle(delivery).catch(({ message, code }) => console.log(`left alone: ${code ?? message}`));
};

const handle = async ({ deliveryId, attempt, thread, events: [message] }) => {
  console.log(`took ${message.content} (attempt ${attempt})`);
  // Those who watch the thread see that it is at work. Best effort: nothing waits for it.
  ask(SIGNAL, { input: { threadId: thread.id, kind: 'working' } }).catch(() => {});
  const content = await think(message);
  console.log(`thought of ${message.content}`);
  // One commit: the answer stands and the message is done with, or neither.
  const input = { threadId: thread.id, content, deliveryId, idempotencyKey: `answer-to-${message.id}` };
  await ask(ANSWER, { input });
  console.log(`answered ${message.content}`);
};

const work = async () => {
  for await (const { data, errors } of client.iterate({ query: INBOX })) {
    if (!data) throw errors;
    take(data.inbox);
  }
};
await work().catch((problem) => fatal(reasonOf(problem)));
