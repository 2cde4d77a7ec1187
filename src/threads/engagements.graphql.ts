import { builder } from '../graphql/builder.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { AS, pageArgs } from '../graphql/pageArgs.ts';
import { MessageNode, ThreadNode, TimelineEventInterface } from '../graphql/refs.ts';
import { ParticipantNode } from '../participants/participants.graphql.ts';
import { badInput } from '../shared/errors.ts';
import type { Look } from '../timeline/look.ts';
import { eventView, requireParticipant } from '../timeline/views.graphql.ts';
import type { Engagement } from './engagements.ts';

const looksOf = async (context: GraphQLContext, { threadIds, viewerId }: Engagement): Promise<Look[]> => {
  const looks = await Promise.all(
    threadIds.map((threadId) => context.loaders.look.load({ threadId, viewerId })),
  );
  return looks.filter((look) => look !== null);
};

/** Everybody who is in any of the threads, in the order of their ids. */
const participantIdsOf = async (context: GraphQLContext, engagement: Engagement): Promise<string[]> => {
  const looks = await looksOf(context, engagement);
  const members = await Promise.all(looks.map((look) => context.loaders.members.load(look)));
  return [...new Set(members.flat().map(({ participantId }) => participantId))].sort();
};

const newest = <T>(items: readonly T[], at: (item: T) => string): T | undefined =>
  items.reduce<T | undefined>(
    (best, item) => (best === undefined || at(item) > at(best) ? item : best),
    undefined,
  );

const EngagementNode = builder.objectRef<Engagement>('Engagement').implement({
  description:
    'Threads that continue each other, as one item for people to navigate to. A projection for one viewer: what is stored is threads.',
  interfaces: [builder.nodeInterfaceRef()],
  isTypeOf: (value) => typeof value === 'object' && value !== null && 'threadIds' in value,
  fields: (t) => ({
    id: t.exposeID('id', {
      description: 'Of its first thread: another one once an earlier thread is linked.',
    }),
    title: t.string({
      description: 'The display names of the others, by name.',
      resolve: async (engagement, _args, context) => {
        const ids = await participantIdsOf(context, engagement);
        const others = await Promise.all(
          ids.filter((id) => id !== engagement.viewerId).map((id) => requireParticipant(context, id)),
        );
        return others
          .map(({ displayName }) => displayName)
          .sort((one, other) => one.localeCompare(other, 'en'))
          .join(', ');
      },
    }),
    participants: t.field({
      type: [ParticipantNode],
      description: 'Everybody who is a member of any of its threads.',
      resolve: async (engagement, _args, context) => {
        const ids = await participantIdsOf(context, engagement);
        return Promise.all(ids.map((id) => requireParticipant(context, id)));
      },
    }),
    threads: t.field({
      type: [ThreadNode],
      description: 'Its threads, oldest first.',
      resolve: (engagement, _args, context) => looksOf(context, engagement),
    }),
    lastEvent: t.field({
      type: TimelineEventInterface,
      nullable: true,
      description: 'The last event the viewer may see in any of its threads.',
      resolve: async (engagement, _args, context) => {
        const look = newest(await looksOf(context, engagement), ({ end }) => end.at);
        const event =
          look && (await context.loaders.eventAt.load({ threadId: look.threadId, seq: look.end.seq }));
        return event ? eventView(event, engagement.viewerId) : null;
      },
    }),
    lastMessage: t.field({
      type: MessageNode,
      nullable: true,
      description: 'The last message the viewer may see in any of its threads.',
      resolve: async (engagement, _args, context) => {
        const looks = await looksOf(context, engagement);
        const messages = await Promise.all(looks.map((look) => context.loaders.lastMessage.load(look)));
        const event = newest(
          messages.filter((message) => message !== null),
          ({ at }) => at,
        );
        return event?.type === 'MESSAGE' ? eventView(event, engagement.viewerId) : null;
      },
    }),
    unreadCount: t.int({
      description: 'Unread messages in all its threads; 0 without a viewer.',
      resolve: async (engagement, _args, context) =>
        (await looksOf(context, engagement)).reduce((sum, look) => sum + look.unreadCount, 0),
    }),
  }),
});

const EngagementConnection = builder.connectionObject(
  {
    type: EngagementNode,
    name: 'EngagementConnection',
    description: 'A page of engagements, latest visible activity first.',
  },
  { name: 'EngagementEdge', description: 'An engagement and where it stands in the list.' },
);

builder.queryFields((t) => ({
  engagement: t.field({
    type: EngagementNode,
    nullable: true,
    description:
      'One engagement: by its id, or the one a thread belongs to. Exactly one of both, else BAD_USER_INPUT.',
    args: {
      id: t.arg.id({ description: 'Its id.' }),
      threadId: t.arg.id({ description: 'One of its threads.' }),
      as: t.arg.id({ description: AS }),
    },
    resolve: (_root, args, context) => {
      if ((typeof args.id === 'string') === (typeof args.threadId === 'string'))
        throw badInput('Give exactly one of id and threadId.', { field: 'id' });
      return context.services.engagements.find(context.actor, {
        id: args.id ?? null,
        threadId: args.threadId ?? null,
        as: args.as,
      });
    },
  }),
  engagements: t.field({
    type: EngagementConnection,
    nullable: true,
    description:
      'The viewer’s engagements, latest visible activity first. Errors: BAD_USER_INPUT, INVALID_CURSOR.',
    args: { as: t.arg.id({ description: AS }), ...pageArgs },
    resolve: (_root, args, context) => context.services.engagements.page(context.actor, args),
  }),
}));
