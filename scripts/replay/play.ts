import { setTimeout as wait } from 'node:timers/promises';
import { type Api, Refused } from './api.ts';
import type { Member, OpenedThread } from './members.ts';
import { type Operation, ReplayError } from './operations.ts';

interface PlayOptions extends OpenedThread {
  readonly api: Api;
  readonly apiKey: string;
  readonly operations: readonly Operation[];
  /** Operations a second; null: as fast as they are answered. */
  readonly speed: number | null;
  readonly onDone?: ((done: number) => void | Promise<void>) | undefined;
}

export interface Played {
  readonly messages: number;
  readonly removals: number;
  readonly readds: number;
  /** Times the scratchpad's body was replaced. */
  readonly contents: number;
  readonly entries: number;
}

const POST = /* GraphQL */ `
  mutation Post($input: PostMessageInput!) {
    postMessage(input: $input) { cursor }
  }
`;
const REMOVE = /* GraphQL */ `
  mutation Remove($input: ParticipantStateInput!) {
    removeParticipant(input: $input) { cursor }
  }
`;
const READD = /* GraphQL */ `
  mutation Readd($input: ParticipantStateInput!) {
    readdParticipant(input: $input) { cursor }
  }
`;
const SET_CONTENT = /* GraphQL */ `
  mutation SetContent($input: SetScratchpadContentInput!) {
    setScratchpadContent(input: $input) { cursor }
  }
`;
const APPEND_ENTRY = /* GraphQL */ `
  mutation AppendEntry($input: AppendScratchpadEntryInput!) {
    appendScratchpadEntry(input: $input) { cursor }
  }
`;

/** Does one operation after the other: what was said and noted as those who did, comings and goings as the owner. */
export const play = async ({
  api,
  apiKey,
  threadId,
  scratchpadId,
  members,
  operations,
  speed,
  onDone,
}: PlayOptions): Promise<Played> => {
  const run = crypto.randomUUID();
  const played = { messages: 0, removals: 0, readds: 0, contents: 0, entries: 0 };

  /** A change that an unanswered attempt has made already is made. */
  const change = async (document: string, { id }: Member): Promise<void> => {
    try {
      await api.ask(apiKey, document, { input: { threadId, participantId: id } });
    } catch (error) {
      const isMade = error instanceof Refused && error.afterRetry && error.code === 'INVALID_TRANSITION';
      if (!isMade) throw error;
    }
  };

  const perform = async (operation: Operation): Promise<void> => {
    const member = members.get(operation.who);
    if (member === undefined) throw new ReplayError(`"${operation.who}" is not among the participants.`);
    const idempotencyKey = `replay-${run}-${operation.line}`;
    switch (operation.op) {
      case 'message':
        await api.ask(member.token, POST, { input: { threadId, content: operation.text, idempotencyKey } });
        played.messages += 1;
        break;
      case 'remove':
        await change(REMOVE, member);
        played.removals += 1;
        break;
      case 'readd':
        await change(READD, member);
        played.readds += 1;
        break;
      case 'content':
        await api.ask(member.token, SET_CONTENT, {
          input: { scratchpadId, text: operation.text, idempotencyKey },
        });
        played.contents += 1;
        break;
      case 'entry':
        await api.ask(member.token, APPEND_ENTRY, {
          input: { scratchpadId, content: operation.text, idempotencyKey },
        });
        played.entries += 1;
        break;
      default:
        operation satisfies never;
    }
  };

  const startedAt = performance.now();
  for (const [index, operation] of operations.entries()) {
    if (speed !== null) await wait(Math.max(0, startedAt + (index * 1_000) / speed - performance.now()));
    try {
      await perform(operation);
    } catch (error) {
      if (!(error instanceof ReplayError)) throw error;
      throw new ReplayError(`Line ${operation.line}: ${operation.op} of ${operation.who}: ${error.message}`);
    }
    await onDone?.(index + 1);
  }
  return played;
};
