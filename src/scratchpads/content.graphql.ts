import { runOf } from '../auth/sight.ts';
import { builder } from '../graphql/builder.ts';
import { AS } from '../graphql/pageArgs.ts';
import { ScratchpadNode } from '../graphql/refs.ts';
import { ParticipantNode } from '../participants/participants.graphql.ts';
import { padCursor } from '../shared/cursors.ts';
import { requireViewCharacters, viewAsk, viewOf } from './formatted.ts';
import type { PadContent } from './pad.ts';
import { isActive } from './reading.ts';
import { visibleSources } from './sources.graphql.ts';
import { answerOf, viewerOfPad } from './views.graphql.ts';

/** The body as one viewer reads it; null where none was written, or it was cleared or has expired. */
export interface ContentView {
  readonly scratchpadId: string;
  readonly content: PadContent | null;
  readonly viewerId: string | null;
}

export const ScratchpadContentObject = builder.objectRef<ContentView>('ScratchpadContent').implement({
  description:
    'The working body of a scratchpad: replaced as a whole. Where nothing was written, or it was cleared or has expired: "", version 0, etag "".',
  fields: (t) => ({
    text: t.string({
      description: 'The text; at most 1 MiB of UTF-8, may be empty.',
      resolve: ({ content }) => content?.text ?? '',
    }),
    version: t.int({
      description: 'Counts the writes; begins again when the state has expired or was lost.',
      resolve: ({ content }) => content?.version ?? 0,
    }),
    etag: t.string({
      description:
        'Names exactly this content: give it as `expectedEtag` to replace this and nothing newer. Empty where nothing is.',
      resolve: ({ content }) => content?.etag ?? '',
    }),
    threadSeq: t.int({
      nullable: true,
      description: 'How far the thread was when it was written.',
      resolve: ({ content }) => content?.threadSeq ?? null,
    }),
    updatedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When it was written.',
      resolve: ({ content }) => content?.updatedAt ?? null,
    }),
    updatedBy: t.field({
      type: ParticipantNode,
      nullable: true,
      description: 'Who wrote it; null for the user.',
      resolve: ({ content }, _args, context) => {
        const authorId = content?.authorId ?? null;
        return authorId === null ? null : context.loaders.participant.load(authorId);
      },
    }),
    sources: t.field({
      type: [builder.nodeInterfaceRef()],
      description: 'What it derives from; those the viewer may not see are left out.',
      resolve: ({ scratchpadId, content, viewerId }, _args, context) =>
        visibleSources(context, content?.sourceIds ?? [], viewerId, scratchpadId),
    }),
  }),
});

builder.objectFields(ScratchpadNode, (t) => ({
  content: t.field({
    type: ScratchpadContentObject,
    nullable: true,
    description: 'The working body; null for a viewer who is removed.',
    args: { as: t.arg.id({ description: AS }) },
    resolve: async (view, { as }, context) => {
      const answer = await answerOf(context, view, as, { content: true });
      if (answer === null || !answer.seen.isActive) return null;
      const { scratchpadId } = view.pad;
      return { scratchpadId, content: answer.seen.content, viewerId: viewerOfPad(context, view, as) };
    },
  }),
  formattedView: t.string({
    nullable: true,
    description:
      'Body and entries as one text for a model: the newest entries are kept, and what is left out is said. `[n]` counts the entries the viewer may see. Null for a viewer who is removed. Errors: BAD_USER_INPUT.',
    args: {
      as: t.arg.id({ description: AS }),
      maxChars: t.arg.int({ description: 'At most so many characters: 1 to 200,000, default 24,000.' }),
    },
    resolve: async (view, { as, maxChars }, context) => {
      const characters = requireViewCharacters(maxChars);
      const answer = await answerOf(context, view, as, viewAsk(characters));
      return answer?.seen.isActive ? viewOf(answer, characters) : null;
    },
  }),
  viewerMayWrite: t.boolean({
    description: 'Whether the viewer may write now: the user, active members, and runs as their access says.',
    args: { as: t.arg.id({ description: AS }) },
    resolve: async (view, { as }, context) => {
      const viewerId = viewerOfPad(context, view, as);
      const look = await context.loaders.padLook(view.pad, viewerId);
      return runOf(context.actor)?.access !== 'READ' && look !== null && isActive(look);
    },
  }),
  expiresAt: t.field({
    type: 'DateTime',
    nullable: true,
    description:
      'When content and entries will go if nothing is written until then; null where they are kept, and for a viewer who is removed.',
    args: { as: t.arg.id({ description: AS }) },
    resolve: async (view, { as }, context) => {
      const expiresAt = (await answerOf(context, view, as, {}))?.seen.expiresAt ?? null;
      return expiresAt === null ? null : new Date(expiresAt);
    },
  }),
  end: t.field({
    type: 'Cursor',
    nullable: true,
    description:
      'The last position the viewer may see: subscribe after it and nothing is missed of what was read with it.',
    args: { as: t.arg.id({ description: AS }) },
    resolve: async (view, { as }, context) => {
      const answer = await answerOf(context, view, as, { page: END });
      return answer?.page ? padCursor(view.pad.scratchpadId, answer.page.end) : null;
    },
  }),
}));

/** A page of nothing, for its end alone. */
const END = { after: null, before: null, limit: 0, isBackward: true } as const;
