import type { GraphQLSchema } from 'graphql';
import { viewerOf } from '../auth/acting.ts';
import type { GraphQLContext } from './context.ts';

/** Whoever follows something is there: each open stream counts for the participant whose it is. */
export const countStreams = (schema: GraphQLSchema): void => {
  for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) {
    const { subscribe } = field;
    if (subscribe === undefined) continue;
    field.subscribe = async (root, args, context: GraphQLContext, info) => {
      const stream: unknown = await subscribe(root, args, context, info);
      const participantId = followerOf(context, args);
      return participantId === null || !isGenerator(stream)
        ? stream
        : counted(stream, context.services.presence.hold(participantId), context.signal);
    };
  }
};

const followerOf = ({ actor }: GraphQLContext, { as }: { as?: string | null }): string | null =>
  actor.kind === 'ADMIN' ? null : viewerOf(actor, as);

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
