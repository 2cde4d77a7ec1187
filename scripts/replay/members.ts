import { type Api, Refused } from './api.ts';
import { type Opening, ReplayError } from './operations.ts';

/** Somebody of the file, as the API knows it. */
export interface Member {
  /** As in the file. */
  readonly handle: string;
  readonly id: string;
  readonly token: string;
}

export interface OpenedThread {
  readonly threadId: string;
  readonly scratchpadId: string;
  /** The cursor before the first change of the scratchpad. */
  readonly padStart: string;
  /** By the handle in the file. */
  readonly members: ReadonlyMap<string, Member>;
}

interface OpenOptions {
  readonly api: Api;
  readonly apiKey: string;
  readonly participants: Opening['participants'];
  /** Put before each handle, so that the same file can be replayed again for one user. */
  readonly prefix: string;
  readonly onMember?: (() => void) | undefined;
}

const CREATE_PARTICIPANT = /* GraphQL */ `
  mutation CreateParticipant($input: CreateParticipantInput!) {
    createParticipant(input: $input) { participant { id } }
  }
`;
const CREATE_TOKEN = /* GraphQL */ `
  mutation CreateToken($input: CreateParticipantTokenInput!) {
    createParticipantToken(input: $input) { token }
  }
`;
const OPEN_THREAD = /* GraphQL */ `
  mutation OpenThread($participantIds: [ID!]!, $idempotencyKey: String) {
    openThread(input: { participantIds: $participantIds, idempotencyKey: $idempotencyKey }) {
      created
      thread { id }
    }
  }
`;
const CREATE_SCRATCHPAD = /* GraphQL */ `
  mutation CreateScratchpad($threadId: ID!) {
    createScratchpad(input: { threadId: $threadId }) { scratchpad { id end } }
  }
`;

/** How many are made at once: enough to be quick, few enough for a server that others use too. */
const AT_ONCE = 8;

/** Makes the participants (or takes those who are there), a token for each, their thread and its scratchpad. */
export const openThread = async ({
  api,
  apiKey,
  participants,
  prefix,
  onMember,
}: OpenOptions): Promise<OpenedThread> => {
  const idOf = async (handle: string, kind: string): Promise<string> => {
    try {
      const made = await api.ask<{ createParticipant: { participant: { id: string } } }>(
        apiKey,
        CREATE_PARTICIPANT,
        { input: { handle, kind } },
      );
      return made.createParticipant.participant.id;
    } catch (error) {
      const existing = error instanceof Refused ? error.facts.existingId : undefined;
      if (typeof existing === 'string') return existing;
      throw error;
    }
  };
  const members = new Map<string, Member>();
  const waiting = [...participants];
  const makeNext = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const id = await idOf(`${prefix}${next.handle}`, next.kind);
      const { createParticipantToken } = await api.ask<{ createParticipantToken: { token: string } }>(
        apiKey,
        CREATE_TOKEN,
        { input: { participantId: id, label: 'Replay', expiresInSeconds: 86_400 } },
      );
      members.set(next.handle, { handle: next.handle, id, token: createParticipantToken.token });
      onMember?.();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, makeNext));
  const { openThread: opened } = await api.ask<{
    openThread: { created: boolean; thread: { id: string } };
  }>(apiKey, OPEN_THREAD, {
    participantIds: [...members.values()].map(({ id }) => id),
    idempotencyKey: `replay-${crypto.randomUUID()}`,
  });
  if (!opened.created)
    throw new ReplayError(
      `These participants have a thread already (${opened.thread.id}): give others with --prefix NAME-.`,
    );
  const threadId = opened.thread.id;
  const { createScratchpad } = await api.ask<{
    createScratchpad: { scratchpad: { id: string; end: string } };
  }>(apiKey, CREATE_SCRATCHPAD, { threadId });
  const { id: scratchpadId, end: padStart } = createScratchpad.scratchpad;
  return { threadId, scratchpadId, padStart, members };
};
