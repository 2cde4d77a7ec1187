import { builder } from '../graphql/builder.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { KEY } from '../graphql/pageArgs.ts';
import { ScratchpadEntryNode, ScratchpadNode, type ScratchpadView } from '../graphql/refs.ts';
import { padCursor } from '../shared/cursors.ts';
import { ScratchpadContentObject } from './content.graphql.ts';
import { ScratchpadEntryEdge } from './entries.graphql.ts';
import type { PadContent, PadEntry } from './pad.ts';
import { cursorOfEntry } from './pages.ts';
import type { ClearWhat } from './plane.ts';
import { ScratchpadPayload } from './scratchpads.graphql.ts';
import { entryView, requirePad } from './views.graphql.ts';
import type { WriteResult, WriteTarget } from './writing.ts';

const PAD_ID = 'The scratchpad.';
const ACTS =
  'Act as this participant. A token acts as its own; an API key as the user itself, or as one named here or with X-Act-As.';
const CURSOR = 'Where the scratchpad stands after it: subscribe after it, and nothing is missed.';
const ERRORS =
  'Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE, NOT_FOUND, FORBIDDEN, PARTICIPANT_NOT_ACTIVE, IDEMPOTENCY_KEY_REUSED, UNAVAILABLE';
const CLEAR_ERRORS = 'Errors: NOT_FOUND, FORBIDDEN, PARTICIPANT_NOT_ACTIVE, UNAVAILABLE.';

const SetScratchpadContentInput = builder.inputType('SetScratchpadContentInput', {
  description: 'A new working body, and over which one to write it.',
  fields: (t) => ({
    scratchpadId: t.id({ required: true, description: PAD_ID }),
    text: t.string({ required: true, description: 'At most 1 MiB of UTF-8; may be empty.' }),
    expectedEtag: t.string({
      description:
        'Write only over the content with this etag; "" only where nothing is. Else VERSION_CONFLICT. Absent: whatever is there.',
    }),
    as: t.id({ description: ACTS }),
    sourceIds: t.idList({ description: 'What it derives from: at most 50, each visible to the writer.' }),
    idempotencyKey: t.string({ description: `${KEY} Kept for 24 hours.` }),
  }),
});

const AppendScratchpadEntryInput = builder.inputType('AppendScratchpadEntryInput', {
  description: 'A finding to append.',
  fields: (t) => ({
    scratchpadId: t.id({ required: true, description: PAD_ID }),
    content: t.string({ required: true, description: 'Not empty, at most 64 KiB of UTF-8.' }),
    as: t.id({ description: ACTS }),
    sourceIds: t.idList({ description: 'What it derives from: at most 50, each visible to the writer.' }),
    idempotencyKey: t.string({ description: `${KEY} Kept for 24 hours.` }),
  }),
});

const AppendScratchpadEntriesInput = builder.inputType('AppendScratchpadEntriesInput', {
  description: 'Findings to append, all or none.',
  fields: (t) => ({
    scratchpadId: t.id({ required: true, description: PAD_ID }),
    contents: t.stringList({
      required: true,
      description: 'At least one; at most 1,000 and 4 MiB together, none empty or over 64 KiB.',
    }),
    as: t.id({ description: ACTS }),
    idempotencyKey: t.string({ description: `${KEY} Kept for 24 hours.` }),
  }),
});

const ClearScratchpadInput = builder.inputType('ClearScratchpadInput', {
  description: 'Which scratchpad to empty.',
  fields: (t) => ({
    scratchpadId: t.id({ required: true, description: PAD_ID }),
    as: t.id({ description: ACTS }),
  }),
});

const cursorAfter = ({ scratchpadId, position }: WriteResult): string => padCursor(scratchpadId, position);

const ScratchpadContentPayload = builder
  .objectRef<WriteResult & { readonly content: PadContent }>('ScratchpadContentPayload')
  .implement({
    description: 'The body as it was written.',
    fields: (t) => ({
      content: t.field({
        type: ScratchpadContentObject,
        description: 'The new body.',
        resolve: ({ scratchpadId, content, viewerId }) => ({ scratchpadId, content, viewerId }),
      }),
      scratchpad: t.field({
        type: ScratchpadNode,
        description: 'The scratchpad, as it is now.',
        resolve: (result, _args, context) => requirePad(context, result, result.viewerId),
      }),
      cursor: t.field({ type: 'Cursor', description: CURSOR, resolve: cursorAfter }),
    }),
  });

const AppendScratchpadEntryPayload = builder
  .objectRef<WriteResult & { readonly entry: PadEntry }>('AppendScratchpadEntryPayload')
  .implement({
    description: 'The appended entry.',
    fields: (t) => ({
      entry: t.field({
        type: ScratchpadEntryNode,
        description: 'The entry.',
        resolve: ({ entry, viewerId }) => entryView(entry, viewerId),
      }),
      cursor: t.field({ type: 'Cursor', description: CURSOR, resolve: cursorAfter }),
      edge: t.field({
        type: ScratchpadEntryEdge,
        description: 'The entry as an edge of Scratchpad.entries.',
        resolve: ({ entry, viewerId }) => ({
          cursor: cursorOfEntry(entry),
          node: entryView(entry, viewerId),
        }),
      }),
    }),
  });

const AppendScratchpadEntriesPayload = builder
  .objectRef<WriteResult & { readonly entries: readonly PadEntry[] }>('AppendScratchpadEntriesPayload')
  .implement({
    description: 'The appended entries.',
    fields: (t) => ({
      entries: t.field({
        type: [ScratchpadEntryNode],
        description: 'The entries, in the order in which they were given.',
        resolve: ({ entries, viewerId }) => entries.map((entry) => entryView(entry, viewerId)),
      }),
      cursor: t.field({ type: 'Cursor', description: CURSOR, resolve: cursorAfter }),
    }),
  });

builder.mutationFields((t) => ({
  setScratchpadContent: t.field({
    type: ScratchpadContentPayload,
    description: `Replaces the working body, as an active member or the user. ${ERRORS}, VERSION_CONFLICT (currentEtag).`,
    args: {
      input: t.arg({ type: SetScratchpadContentInput, required: true, description: 'The new body.' }),
    },
    resolve: (_root, { input }, context) =>
      context.services.scratchpadWriting.setContent(context.actor, input),
  }),
  appendScratchpadEntry: t.field({
    type: AppendScratchpadEntryPayload,
    description: `Appends one entry, as an active member or the user. Of N at once all N are appended. ${ERRORS}.`,
    args: {
      input: t.arg({ type: AppendScratchpadEntryInput, required: true, description: 'The entry.' }),
    },
    resolve: (_root, { input }, context) => context.services.scratchpadWriting.append(context.actor, input),
  }),
  appendScratchpadEntries: t.field({
    type: AppendScratchpadEntriesPayload,
    description: `Appends several entries, all or none, and nothing of others between them. ${ERRORS}.`,
    args: {
      input: t.arg({ type: AppendScratchpadEntriesInput, required: true, description: 'The entries.' }),
    },
    resolve: (_root, { input }, context) =>
      context.services.scratchpadWriting.appendAll(context.actor, input),
  }),
  clearScratchpadContent: t.field({
    type: ScratchpadPayload,
    description: `Empties the working body; the entries stay. ${CLEAR_ERRORS}`,
    args: { input: t.arg({ type: ClearScratchpadInput, required: true, description: PAD_ID }) },
    resolve: (_root, { input }, context) => clear(context, input, 'CONTENT'),
  }),
  clearScratchpadEntries: t.field({
    type: ScratchpadPayload,
    description: `Removes all entries; the working body stays. ${CLEAR_ERRORS}`,
    args: { input: t.arg({ type: ClearScratchpadInput, required: true, description: PAD_ID }) },
    resolve: (_root, { input }, context) => clear(context, input, 'ENTRIES'),
  }),
  clearScratchpad: t.field({
    type: ScratchpadPayload,
    description: `Empties the working body and removes all entries; the scratchpad stays. ${CLEAR_ERRORS}`,
    args: { input: t.arg({ type: ClearScratchpadInput, required: true, description: PAD_ID }) },
    resolve: (_root, { input }, context) => clear(context, input, 'ALL'),
  }),
}));

/** Clearing what is empty succeeds. */
const clear = async (
  context: GraphQLContext,
  input: WriteTarget,
  what: ClearWhat,
): Promise<ScratchpadView> => {
  const result = await context.services.scratchpadWriting.clear(context.actor, input, what);
  return requirePad(context, result, result.viewerId);
};
