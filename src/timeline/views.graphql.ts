import type { GraphQLContext } from '../graphql/context.ts';
import { EVENT_TYPENAME, type EventView } from '../graphql/refs.ts';
import { timelineCursor } from '../shared/cursors.ts';
import { LogGone, notFound } from '../shared/errors.ts';
import type { TimelineEvent } from './events.ts';
import { isVisible, type Look } from './look.ts';

export const eventView = <Event extends TimelineEvent>(
  event: Event,
  viewerId: string | null,
): EventView<Event> => ({
  __typename: EVENT_TYPENAME[event.type],
  event,
  viewerId,
});

/** The event that a verb appended, for whoever appended it. */
export const seenBy = <Event extends TimelineEvent>(result: {
  event: Event;
  viewerId: string | null;
}): EventView<Event> => eventView(result.event, result.viewerId);

export const cursorOf = (event: TimelineEvent): string => timelineCursor(event.threadId, event.seq, event.id);

/** The event with this id if the viewer may see it. */
export const visibleEvent = async (
  context: GraphQLContext,
  id: string,
  viewerId: string | null,
): Promise<EventView | null> => {
  const event = await context.loaders.event.load(id);
  return event === null ? null : visibleOnly(context, event, viewerId);
};

export const visibleOnly = async <Event extends TimelineEvent>(
  context: GraphQLContext,
  event: Event,
  viewerId: string | null,
): Promise<EventView<Event> | null> => {
  const look = await context.loaders.look.load({ threadId: event.threadId, viewerId });
  return look !== null && isVisible(look, event) ? eventView(event, viewerId) : null;
};

export const requireLook = async (
  context: GraphQLContext,
  key: { readonly threadId: string; readonly viewerId: string | null },
): Promise<Look> => {
  const look = await context.loaders.look.load(key);
  if (look === null) throw new LogGone('Thread', key.threadId);
  return look;
};

export const requireParticipant = async (context: GraphQLContext, id: string) => {
  const participant = await context.loaders.participant.load(id);
  if (participant === null) throw notFound('Participant');
  return participant;
};
