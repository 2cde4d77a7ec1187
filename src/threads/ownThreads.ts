import { requireOwner } from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import type { Json } from '../shared/canonical.ts';
import { DomainError, forbidden } from '../shared/errors.ts';
import { idSuffix, newId } from '../shared/ids.ts';
import { LIMITS, requireObject } from '../shared/input.ts';
import type { OpenedThread, OpenInput } from './threads.ts';

interface Found {
  readonly id: string;
}

export interface OwnThreadsDeps {
  readonly participants: {
    find(actor: Actor, by: { readonly handle: string }): Promise<Found | null>;
    create(
      actor: Actor,
      input: { readonly kind: 'HUMAN' | 'AGENT'; readonly handle: string; readonly displayName: string },
    ): Promise<Found>;
  };
  readonly threads: { open(actor: Actor, input: OpenInput): Promise<OpenedThread> };
}

/** The participant that stands for the user itself where nobody was named. */
const OWN_HANDLE = 'owner';

/** Threads for applications that know no participants: each is one of the user and an agent of its own. */
export const createOwnThreads = ({ participants, threads }: OwnThreadsDeps) => {
  const ownParticipantId = async (actor: Actor): Promise<string> => {
    const find = () => participants.find(actor, { handle: OWN_HANDLE });
    const found = await find();
    if (found !== null) return found.id;
    try {
      return (await participants.create(actor, { kind: 'HUMAN', handle: OWN_HANDLE, displayName: 'Owner' }))
        .id;
    } catch (error) {
      // Somebody else made it meanwhile.
      const other = error instanceof DomainError && error.code === 'CONFLICT' ? await find() : null;
      if (other === null) throw error;
      return other.id;
    }
  };

  return {
    /**
     * A new thread each time: of the user's own participant, which is made once, and of an agent that is made for it.
     * The owner's. Errors: FORBIDDEN, BAD_USER_INPUT, PAYLOAD_TOO_LARGE.
     */
    async openNew(actor: Actor, { metaData }: { readonly metaData: Json }): Promise<OpenedThread> {
      const owner = requireOwner(actor);
      if (owner.actAs !== null)
        throw forbidden('A participant can open only threads it is in itself: name its participants.');
      if (metaData !== null) requireObject(metaData, 'metaData', LIMITS.metaData);
      const own = await ownParticipantId(owner);
      const handle = `agent-${idSuffix(newId('Participant'))}`;
      const agent = await participants.create(owner, { kind: 'AGENT', handle, displayName: 'Agent' });
      return threads.open(owner, { participantIds: [own, agent.id], metaData });
    },
  };
};
