import { requireTenant, viewerOf } from '../auth/acting.ts';
import { builder } from '../graphql/builder.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { DeletePayload } from '../graphql/deletePayload.ts';
import { AS, pageArgs } from '../graphql/pageArgs.ts';
import { ScratchpadNode, type ScratchpadView, ThreadNode } from '../graphql/refs.ts';
import { isId } from '../shared/ids.ts';
import { lookAs } from '../threads/threads.graphql.ts';
import { requireLook } from '../timeline/views.graphql.ts';
import type { Scratchpad } from './rows.ts';

const SCRATCHPAD_ID = 'The scratchpad.';
const META_DATA = 'A JSON object of at most 16 KiB.';
const TTL =
  'Seconds after the last write until content and entries expire: 0 (never) to 315360000. Absent: as the server is configured.';

/** The pad for this viewer, null where it may not know of the thread. */
const viewOf = async (
  context: GraphQLContext,
  pad: Scratchpad | null,
  viewerId: string | null,
): Promise<ScratchpadView | null> => {
  if (pad === null) return null;
  const look = await context.loaders.padLook(pad, viewerId);
  return look && { pad, viewerId };
};

/** The pad with this id if the viewer may know of it. */
export const visiblePad = async (
  context: GraphQLContext,
  id: string,
  viewerId: string | null,
): Promise<ScratchpadView | null> =>
  isId('Scratchpad', id) ? viewOf(context, await context.loaders.scratchpad.load(id), viewerId) : null;

ScratchpadNode.implement({
  description:
    'The shared working memory of a thread: a replaceable content and an append-only list of entries.',
  interfaces: [builder.nodeInterfaceRef()],
  isTypeOf: (value) => typeof value === 'object' && value !== null && 'pad' in value,
  fields: (t) => ({
    id: t.id({
      description: 'Globally unique; refetchable with Query.node.',
      resolve: ({ pad }) => pad.scratchpadId,
    }),
    createdAt: t.field({
      type: 'DateTime',
      description: 'When it was created.',
      resolve: ({ pad }) => pad.createdAt,
    }),
    updatedAt: t.field({
      type: 'DateTime',
      description: 'When metaData or ttlSeconds last changed. Writing content or entries does not move it.',
      resolve: ({ pad }) => pad.updatedAt,
    }),
    metaData: t.field({
      type: 'JSON',
      description: 'The user’s own; at most 16 KiB. Seen by every member at all times.',
      resolve: ({ pad }) => pad.metaData,
    }),
    ttlSeconds: t.int({
      description: 'Seconds after the last write until content and entries expire; 0: never.',
      resolve: ({ pad }) => pad.ttlSeconds,
    }),
    thread: t.field({
      type: ThreadNode,
      nullable: true,
      description: 'The thread it belongs to; null where the viewer is not in that thread.',
      resolve: ({ pad, viewerId }, _args, context) =>
        context.loaders.look.load({ threadId: pad.threadId, viewerId }),
    }),
  }),
});

builder.objectField(ThreadNode, 'scratchpad', (t) =>
  t.field({
    type: ScratchpadNode,
    nullable: true,
    description: 'The thread’s shared working memory; null if there is none. Reading never makes one.',
    args: { as: t.arg.id({ description: AS }) },
    resolve: async (look, { as }, context) => {
      const other = await lookAs(context, look, as);
      const pad = other && (await context.loaders.scratchpadOf.load(other.threadId));
      return other && viewOf(context, pad, other.viewerId);
    },
  }),
);

const ScratchpadEdge = builder.edgeObject({
  type: ScratchpadNode,
  name: 'ScratchpadEdge',
  description: 'A scratchpad and where it stands in the list.',
});
const ScratchpadConnection = builder.connectionObject(
  { type: ScratchpadNode, name: 'ScratchpadConnection', description: 'A page of scratchpads, oldest first.' },
  ScratchpadEdge,
);

const CreateScratchpadInput = builder.inputType('CreateScratchpadInput', {
  description: 'Which thread gets a scratchpad, and what it begins with.',
  fields: (t) => ({
    threadId: t.id({ required: true, description: 'The thread, which has none yet.' }),
    as: t.id({ description: 'Create as this participant; an API key may also do it as the user.' }),
    metaData: t.field({ type: 'JSON', description: `${META_DATA} The user’s only.` }),
    ttlSeconds: t.int({ description: `${TTL} The user’s only.` }),
  }),
});

const UpdateScratchpadInput = builder.inputType('UpdateScratchpadInput', {
  description: 'What to change of a scratchpad; what is absent or null stays.',
  fields: (t) => ({
    scratchpadId: t.id({ required: true, description: SCRATCHPAD_ID }),
    metaData: t.field({ type: 'JSON', description: `Replaces the stored object whole. ${META_DATA}` }),
    ttlSeconds: t.int({
      description: 'Seconds after the last write until content and entries expire: 0 (never) to 315360000.',
    }),
  }),
});

const DeleteScratchpadInput = builder.inputType('DeleteScratchpadInput', {
  description: 'Which scratchpad to delete.',
  fields: (t) => ({ scratchpadId: t.id({ required: true, description: SCRATCHPAD_ID }) }),
});

export const ScratchpadPayload = builder.objectRef<ScratchpadView>('ScratchpadPayload').implement({
  description: 'The scratchpad as it is now.',
  fields: (t) => ({
    scratchpad: t.field({ type: ScratchpadNode, description: 'The scratchpad.', resolve: (view) => view }),
  }),
});

/** A written pad for whoever wrote it; it and its thread may be gone again by now. */
const written = async (context: GraphQLContext, view: ScratchpadView): Promise<ScratchpadView> => {
  await requireLook(context, { threadId: view.pad.threadId, viewerId: view.viewerId });
  return view;
};

builder.queryFields((t) => ({
  scratchpad: t.field({
    type: ScratchpadNode,
    nullable: true,
    description: 'A scratchpad by its id.',
    args: { id: t.arg.id({ required: true, description: 'Its id.' }), as: t.arg.id({ description: AS }) },
    resolve: (_root, { id, as }, context) =>
      visiblePad(context, id, viewerOf(requireTenant(context.actor), as)),
  }),
  scratchpads: t.field({
    type: ScratchpadConnection,
    nullable: true,
    description:
      'The user’s scratchpads, or those of a participant’s threads, in the order of creation. Errors: BAD_USER_INPUT, INVALID_CURSOR.',
    args: pageArgs,
    resolve: async (_root, args, context) => {
      const { edges, ...page } = await context.services.scratchpads.page(context.actor, args);
      const viewerId = viewerOf(requireTenant(context.actor), null);
      for (const { node } of edges) context.loaders.scratchpad.prime(node.scratchpadId, node);
      const views = await Promise.all(edges.map(({ node }) => viewOf(context, node, viewerId)));
      // Where the operation looked at a thread before it was this viewer's to see, it answers as of that look.
      return {
        ...page,
        edges: edges.flatMap(({ cursor }, index) => {
          const node = views[index];
          return node ? [{ cursor, node }] : [];
        }),
      };
    },
  }),
}));

builder.mutationFields((t) => ({
  createScratchpad: t.field({
    type: ScratchpadPayload,
    description:
      'Makes the scratchpad of a thread, at most one each. Errors: NOT_FOUND, CONFLICT (existingId), PARTICIPANT_NOT_ACTIVE, FORBIDDEN, BAD_USER_INPUT, PAYLOAD_TOO_LARGE.',
    args: { input: t.arg({ type: CreateScratchpadInput, required: true, description: 'The thread.' }) },
    resolve: async (_root, { input }, context) =>
      written(context, await context.services.scratchpads.create(context.actor, input)),
  }),
  updateScratchpad: t.field({
    type: ScratchpadPayload,
    description:
      'Replaces a scratchpad’s metaData, sets its ttlSeconds, or both. API key only. Errors: NOT_FOUND, FORBIDDEN, BAD_USER_INPUT, PAYLOAD_TOO_LARGE.',
    args: { input: t.arg({ type: UpdateScratchpadInput, required: true, description: 'The change.' }) },
    resolve: async (_root, { input }, context) =>
      written(context, await context.services.scratchpads.update(context.actor, input)),
  }),
  deleteScratchpad: t.field({
    type: DeletePayload,
    description:
      'Deletes a scratchpad and all that is in it, for everybody, at once. API key only. Errors: NOT_FOUND, FORBIDDEN.',
    args: { input: t.arg({ type: DeleteScratchpadInput, required: true, description: 'The scratchpad.' }) },
    resolve: (_root, { input }, context) => context.services.scratchpads.delete(context.actor, input),
  }),
}));
