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
  /** Operations on scratchpads, which are not offered yet. */
  readonly skipped: number;
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

/** Does one operation after the other: messages as those who said them, comings and goings as the owner. */
export const play = async ({
  api,
  apiKey,
  threadId,
  members,
  operations,
  speed,
  onDone,
}: PlayOptions): Promise<Played> => {
  const run = crypto.randomUUID();
  const played = { messages: 0, removals: 0, readds: 0, skipped: 0 };

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
    switch (operation.op) {
      case 'message': {
        const { text, line } = operation;
        const input = { threadId, content: text, idempotencyKey: `replay-${run}-${line}` };
        await api.ask(member.token, POST, { input });
        played.messages += 1;
        break;
      }
      case 'remove':
        await change(REMOVE, member);
        played.removals += 1;
        break;
      case 'readd':
        await change(READD, member);
        played.readds += 1;
        break;
      case 'content':
      case 'entry':
        played.skipped += 1;
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
