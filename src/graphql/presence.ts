import type { GraphQLSchema } from 'graphql';
import { ownParticipant, viewerOf } from '../auth/acting.ts';
import type { GraphQLContext } from './context.ts';

/** Whoever follows something is there: each open stream counts for the participant whose it is. */
export const countStreams = (schema: GraphQLSchema): void => {
  for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) {
    const { subscribe } = field;
    if (subscribe === undefined) continue;
    field.subscribe = async (root, args, context: GraphQLContext, info) => {
      const stream: unknown = await subscribe(root, args, context, info);
      if (!isGenerator(stream)) return stream;
      const follower = await followerOf(context, args);
      if (follower === null) return stream;
      const free = context.services.presence.hold(follower.ownerId, follower.participantId);
      return counted(stream, free, context.signal);
    };
  }
};

interface Follower {
  readonly ownerId: string;
  readonly participantId: string;
}

/** Whom a key names may be nobody of its tenant: not every stream has looked. Where that cannot be looked at, it is not counted. */
const followerOf = async (
  { actor, loaders }: Pick<GraphQLContext, 'actor' | 'loaders'>,
  { as }: { as?: string | null },
): Promise<Follower | null> => {
  if (actor.kind === 'ADMIN') return null;
  const participantId = viewerOf(actor, as);
  if (participantId === null) return null;
  const follower = { ownerId: actor.userId, participantId };
  if (participantId === ownParticipant(actor)) return follower;
  return (await loaders.participant.load(participantId).catch(() => null)) && follower;
};

/** What came together is told together through this too. */
type Stream = AsyncGenerator<unknown> & { more?(): unknown };

const isGenerator = (value: unknown): value is Stream =>
  typeof value === 'object' && value !== null && 'next' in value && 'return' in value;

const counted = (stream: Stream, free: () => void, clientGone: AbortSignal): Stream => {
  const over = (): void => {
    clientGone.removeEventListener('abort', over);
    free();
  };
  if (clientGone.aborted) free();
  else clientGone.addEventListener('abort', over);
  return {
    more: () => stream.more?.(),
    async next() {
      try {
        const result = await stream.next();
        if (result.done === true) over();
        return result;
      } catch (error) {
        over();
        throw error;
      }
    },
    return(value) {
      over();
      return stream.return(value);
    },
    throw(error) {
      over();
      return stream.throw(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
};
