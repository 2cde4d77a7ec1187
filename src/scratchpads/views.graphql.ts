import { requireTenant, viewerOf } from '../auth/acting.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import type { EntryView, ScratchpadView } from '../graphql/refs.ts';
import { LogGone } from '../shared/errors.ts';
import { findEntry, type PadAnswer, type PadQuestion } from './loading.ts';
import type { PadEntry } from './pad.ts';
import { visiblePad } from './scratchpads.graphql.ts';

export const entryView = (entry: PadEntry, viewerId: string | null): EntryView => ({
  __typename: 'ScratchpadEntry',
  entry,
  viewerId,
});

/** Whose view a field of the pad answers. */
export const viewerOfPad = (
  context: GraphQLContext,
  { viewerId }: ScratchpadView,
  as: string | null | undefined,
): string | null => viewerOf(requireTenant(context.actor), as, viewerId);

/** Whether this viewer, who may be another than the pad was looked up for, may know of it. */
export const isKnownTo = async (
  context: GraphQLContext,
  { pad, viewerId: known }: ScratchpadView,
  viewerId: string | null,
): Promise<boolean> => viewerId === known || (await context.loaders.padLook(pad, viewerId)) !== null;

/** What the pad's state is for a viewer; null for one who may not know of it. */
export const answerOf = async (
  context: GraphQLContext,
  view: ScratchpadView,
  as: string | null | undefined,
  question: Omit<PadQuestion, 'pad' | 'viewerId'>,
): Promise<PadAnswer | null> => {
  const viewerId = viewerOfPad(context, view, as);
  const { pad } = view;
  const reply = await context.loaders.padState.load({ ...question, pad, viewerId });
  if (reply === 'GONE') throw new LogGone('Scratchpad', pad.scratchpadId);
  if (reply !== 'HIDDEN') return reply;
  // Who knew of the pad no longer knows of its thread: there is none.
  if (viewerId === view.viewerId) throw new LogGone('Thread', pad.threadId);
  return null;
};

/** The pad by its id, for a viewer who was told of it. */
export const requirePad = async (
  context: GraphQLContext,
  { scratchpadId }: { readonly scratchpadId: string },
  viewerId: string | null,
): Promise<ScratchpadView> => {
  const view = await visiblePad(context, scratchpadId, viewerId);
  if (view === null) throw new LogGone('Scratchpad', scratchpadId);
  return view;
};

/** The entry with this id if the viewer may see it. */
export const visibleEntry = async (
  context: GraphQLContext,
  id: string,
  viewerId: string | null,
): Promise<EntryView | null> => {
  const entry = await findEntry(context.loaders, id, viewerId);
  return entry === null ? null : entryView(entry, viewerId);
};
