import { builder } from '../graphql/builder.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { AS, pageArgs } from '../graphql/pageArgs.ts';
import { ScratchpadEntryNode, ScratchpadNode, type ScratchpadView } from '../graphql/refs.ts';
import { ParticipantNode } from '../participants/participants.graphql.ts';
import { readEntryId } from '../shared/ids.ts';
import type { PageArgs } from '../shared/paging.ts';
import { cursorOfEntry, entriesAsk, entriesPage } from './pages.ts';
import { visibleSources } from './sources.graphql.ts';
import { answerOf, entryView, isKnownTo, viewerOfPad } from './views.graphql.ts';

ScratchpadEntryNode.implement({
  description: 'One finding in a scratchpad. Entries are appended and never change.',
  interfaces: [builder.nodeInterfaceRef()],
  isTypeOf: (value) => typeof value === 'object' && value !== null && 'entry' in value,
  fields: (t) => ({
    id: t.id({
      description: 'Globally unique; refetchable with Query.node while the entry is there.',
      resolve: ({ entry }) => entry.id,
    }),
    seq: t.int({
      description: 'Position in the scratchpad: grows by one, also across a clear.',
      resolve: ({ entry }) => entry.seq,
    }),
    threadSeq: t.int({
      description: 'How far the thread was when it was appended: who was active there may see it.',
      resolve: ({ entry }) => entry.threadSeq,
    }),
    content: t.string({
      description: 'The text; not empty, at most 64 KiB of UTF-8.',
      resolve: ({ entry }) => entry.content,
    }),
    createdAt: t.field({
      type: 'DateTime',
      description: 'When it was appended.',
      resolve: ({ entry }) => entry.createdAt,
    }),
    author: t.field({
      type: ParticipantNode,
      nullable: true,
      description: 'Who appended it; null for the user.',
      resolve: ({ entry }, _args, context) =>
        entry.authorId === null ? null : context.loaders.participant.load(entry.authorId),
    }),
    sources: t.field({
      type: [builder.nodeInterfaceRef()],
      description: 'What it derives from; those the viewer may not see are left out.',
      resolve: ({ entry, viewerId }, _args, context) =>
        visibleSources(context, entry.sourceIds, viewerId, readEntryId(entry.id)?.scratchpadId ?? null),
    }),
    isErased: t.boolean({
      description: 'Whether its text was erased; the entry itself stays.',
      resolve: () => false,
    }),
    cursor: t.field({
      type: 'Cursor',
      description: 'This entry’s position in the list: page from it. To subscribe, use Scratchpad.end.',
      resolve: ({ entry }) => cursorOfEntry(entry),
    }),
  }),
});

export const ScratchpadEntryEdge = builder.edgeObject({
  type: ScratchpadEntryNode,
  name: 'ScratchpadEntryEdge',
  description: 'An entry and where it stands.',
});

const ScratchpadEntryConnection = builder.connectionObject(
  {
    type: ScratchpadEntryNode,
    name: 'ScratchpadEntryConnection',
    description: 'A page of a scratchpad’s entries, oldest first.',
  },
  ScratchpadEntryEdge,
);

/** What is asked; null for one who may not know of the pad, who learns nothing of its cursors. Errors: as `entriesAsk`. */
const askedBy = async (
  context: GraphQLContext,
  view: ScratchpadView,
  viewerId: string | null,
  args: PageArgs,
): Promise<ReturnType<typeof entriesAsk> | null> => {
  try {
    return entriesAsk(view.pad.scratchpadId, args);
  } catch (error) {
    if (await isKnownTo(context, view, viewerId)) throw error;
    return null;
  }
};

builder.objectField(ScratchpadNode, 'entries', (t) =>
  t.field({
    type: ScratchpadEntryConnection,
    nullable: true,
    description:
      'The entries the viewer may see, oldest first. Cursors go on working after a clear. Errors: BAD_USER_INPUT, INVALID_CURSOR.',
    args: { as: t.arg.id({ description: AS }), ...pageArgs },
    resolve: async (view, { as, ...args }, context) => {
      const viewerId = viewerOfPad(context, view, as);
      const asked = await askedBy(context, view, viewerId, args);
      if (asked === null) return null;
      const answer = await answerOf(context, view, as, { page: asked.page });
      if (answer === null) return null;
      const { entries, ...flags } = entriesPage(asked, answer);
      const edges = entries.map((entry) => ({
        cursor: cursorOfEntry(entry),
        node: entryView(entry, viewerId),
      }));
      return {
        edges,
        pageInfo: {
          ...flags,
          startCursor: edges[0]?.cursor ?? null,
          endCursor: edges.at(-1)?.cursor ?? null,
        },
      };
    },
  }),
);
