import type { Tool } from '../catalogue.ts';
import type { McpCaller } from './caller.ts';

/** What a client tells its model of this server. It names only what the caller has. */
export const instructionsFor = (tools: readonly Tool[], { actor, threadId }: McpCaller): string => {
  const names = namesOf(tools);
  const has = (name: string): boolean => names.has(name);
  const lines = [
    has('next_message') &&
      'next_message gives you the next message that waits for you. Answer with send_message(content, acknowledge: true), which finishes it, or finish it without an answer with acknowledge_message. What is not finished is given again.',
    actor.kind === 'RUN_TOKEN'
      ? 'All tools act in the conversation and on the scratchpad of your run.'
      : threadId === null
        ? has('next_message')
          ? 'All tools act in the conversation of the message you hold.'
          : NO_CONVERSATION
        : 'All tools act in the conversation you are connected to.',
    'None takes an id of a conversation, of a scratchpad or of a person.',
    has('read_scratchpad') && 'read_scratchpad shows the scratchpad.',
    has('append_scratchpad') &&
      'Read before you write: append_scratchpad adds a finding beside those of others.',
    has('update_scratchpad') && 'update_scratchpad replaces the body of the scratchpad.',
    has('store') &&
      'store and recall are your own lasting memory: no other participant reads it; the user that owns you may.',
    'Long answers come in parts, and say where there is more: call again with that as cursor (next_cursor, or a …_rest of what was too long alone). A text that begins with "Error:" says what to do differently.',
  ];
  return [
    'You work with others in conversations (threads). Each has one record of what was said, and one shared scratchpad.',
    ...lines.filter((line) => line !== false).map((line) => `- ${line}`),
  ].join('\n');
};

const NO_CONVERSATION =
  'You are connected to no conversation, and have no tool that takes messages: whoever set you up connects you to /mcp/threads/{id}, or gives you the capability "thread".';

/** To a call on the plain path that has no conversation to act in. */
export const nothingInHand = (tools: readonly Tool[]): string =>
  namesOf(tools).has('next_message')
    ? 'You hold no message, so there is no conversation to act in. Take one with next_message first.'
    : `There is no conversation to act in. ${NO_CONVERSATION}`;

export const whatThereIs = (tools: readonly Tool[]): string =>
  tools.length === 0
    ? 'You have no tools: whoever set you up gives you capabilities.'
    : `There are: ${tools.map(({ name }) => name).join(', ')}.`;

const namesOf = (tools: readonly Tool[]): ReadonlySet<string> => new Set(tools.map(({ name }) => name));
