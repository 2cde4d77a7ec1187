import { createTenant } from '../support/app.ts';
import type { Product } from '../support/product.ts';

const OPEN = 'mutation ($input: OpenThreadInput!) { openThread(input: $input) { thread { id } } }';
const POST = 'mutation ($input: PostMessageInput!) { postMessage(input: $input) { cursor } }';
const EVENTS =
  'query ($id: ID!, $after: Cursor) { thread(id: $id) { timeline { events(first: 200, after: $after) { nodes { id } } } } }';

/** A human with a thread of thirty messages and a quiet one; on the other side an agent that goes on talking. */
export const openConversation = async ({ server }: Product) => {
  const { apiKey, participants } = await createTenant(server, {
    human: 'HUMAN',
    agent: 'AGENT',
    other: 'HUMAN',
  });
  const of = (handle: string) => {
    const participant = participants[handle];
    if (!participant) throw new Error(`Nobody is called ${handle}.`);
    return participant;
  };
  const [human, agent] = [of('human'), of('agent')];
  const ask = async <Data>(
    token: string,
    query: string,
    variables: Record<string, unknown>,
  ): Promise<Data> => {
    const { data, errors } = await server.graphql<Data>(token, query, variables);
    if (!data) throw new Error(JSON.stringify(errors));
    return data;
  };
  const open = async (participantIds: string[]): Promise<string> =>
    (await ask<{ openThread: { thread: { id: string } } }>(apiKey, OPEN, { input: { participantIds } }))
      .openThread.thread.id;
  const quietId = await open([human.id, of('other').id]);
  const threadId = await open([human.id, agent.id]);
  const say = (content: string) => ask(agent.token, POST, { input: { threadId, content } });
  for (let number = 1; number <= 30; number++) await say(`Message ${number}`);

  /** Ids of everything that stands in the long thread, in order. */
  const events = async (): Promise<string[]> => {
    const { thread } = await ask<{ thread: { timeline: { events: { nodes: { id: string }[] } } } }>(
      apiKey,
      EVENTS,
      {
        id: threadId,
      },
    );
    return thread.timeline.events.nodes.map(({ id }) => id);
  };
  /** The long thread's scratchpad, made now; and somebody who adds to it. */
  const share = async (): Promise<(content: string) => Promise<unknown>> => {
    const { createScratchpad } = await ask<{ createScratchpad: { scratchpad: { id: string } } }>(
      apiKey,
      'mutation ($threadId: ID!) { createScratchpad(input: { threadId: $threadId }) { scratchpad { id } } }',
      { threadId },
    );
    const scratchpadId = createScratchpad.scratchpad.id;
    return (content) =>
      ask(
        agent.token,
        'mutation ($scratchpadId: ID!, $content: String!) { appendScratchpadEntry(input: { scratchpadId: $scratchpadId, content: $content }) { cursor } }',
        { scratchpadId, content },
      );
  };
  return { apiKey, human, agent, threadId, quietId, say, share, events };
};
