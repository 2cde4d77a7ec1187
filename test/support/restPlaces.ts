import type { Services } from '../../src/services.ts';
import { padCursor } from '../../src/shared/cursors.ts';
import { createWorld, cursorOf, type World } from './world.ts';

/** A world with a scratchpad: rex saw its first entry, and nothing of what came after its removal. */
export interface Place {
  readonly world: World;
  readonly padId: string;
  /** Of ada and rex, who is removed: without a scratchpad. */
  readonly bareThreadId: string;
  /** Positions in the pad's entries. */
  readonly entryCursor: string;
}

export const createPlace = async (services: Services, mark: string): Promise<Place> => {
  const world = await createWorld(services, mark);
  const { owner, threadId, people } = world;
  const { ada, rex } = people;
  const { pad } = await services.scratchpads.create(owner, { threadId, metaData: { note: mark } });
  const { scratchpadId } = pad;
  await services.threads.changeState(owner, { threadId, participantId: rex.id }, 'ACTIVE');
  await services.scratchpadWriting.append(owner, { scratchpadId, as: ada.id, content: `${mark} early note` });
  await services.threads.changeState(owner, { threadId, participantId: rex.id }, 'REMOVED');
  const late = await services.scratchpadWriting.append(owner, {
    scratchpadId,
    as: ada.id,
    content: `${mark} late note`,
  });
  await services.scratchpadWriting.setContent(owner, { scratchpadId, as: ada.id, text: `${mark} plan` });
  const { threadId: bareThreadId } = await services.threads.open(owner, { participantIds: [ada.id, rex.id] });
  await services.threads.changeState(owner, { threadId: bareThreadId, participantId: rex.id }, 'REMOVED');
  return { world, padId: scratchpadId, bareThreadId, entryCursor: padCursor(scratchpadId, late.position) };
};

export interface Sample {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, unknown>>;
}

/** A request of each route that would do its work; a route that is not here fails the tests. */
export const SAMPLES: Readonly<Record<string, (place: Place) => Sample>> = {
  createThread: ({ world: { people } }) => ({
    body: { participant_ids: [people.ada.id, people.rex.id, people.lil.id] },
  }),
  retrieveThread: ({ world }) => ({ params: { thread_id: world.threadId } }),
  deleteThread: ({ world }) => ({ params: { thread_id: world.threadId } }),
  listThreadEvents: ({ world }) => ({
    params: { thread_id: world.threadId },
    query: { after: cursorOf(world.message) },
  }),
  postMessage: ({ world }) => ({
    params: { thread_id: world.threadId },
    body: { as: world.people.ada.id, content: `${world.mark} posted` },
  }),
  retractMessage: ({ world }) => ({
    params: { message_id: world.late.id },
    body: { as: world.people.ada.id, reason: 'because' },
  }),
  removeParticipant: ({ world }) => ({
    params: { thread_id: world.threadId, participant_id: world.people.scout.id },
  }),
  readdParticipant: ({ world }) => ({
    params: { thread_id: world.threadId, participant_id: world.people.rex.id },
  }),
  leaveThread: ({ world }) => ({
    params: { thread_id: world.threadId },
    body: { as: world.people.ada.id },
  }),
  createScratchpad: ({ bareThreadId }) => ({ body: { thread_id: bareThreadId } }),
  listScratchpads: () => ({ query: { limit: '10' } }),
  retrieveScratchpad: ({ padId }) => ({ params: { scratchpad_id: padId } }),
  retrieveScratchpadByThread: ({ world }) => ({ params: { thread_id: world.threadId } }),
  updateScratchpad: ({ padId }) => ({ params: { scratchpad_id: padId }, body: { meta_data: { a: 1 } } }),
  deleteScratchpad: ({ padId }) => ({ params: { scratchpad_id: padId } }),
  retrieveScratchpadContent: ({ padId }) => ({ params: { scratchpad_id: padId } }),
  setScratchpadContent: ({ padId }) => ({ params: { scratchpad_id: padId }, body: { content: 'new' } }),
  clearScratchpadContent: ({ padId }) => ({ params: { scratchpad_id: padId } }),
  appendScratchpadEntry: ({ padId }) => ({ params: { scratchpad_id: padId }, body: { content: 'new' } }),
  listScratchpadEntries: ({ padId }) => ({ params: { scratchpad_id: padId } }),
  clearScratchpadEntries: ({ padId }) => ({ params: { scratchpad_id: padId } }),
  clearScratchpad: ({ padId }) => ({ params: { scratchpad_id: padId } }),
  readScratchpadTool: ({ world }) => ({ body: { thread_id: world.threadId } }),
  updateScratchpadTool: ({ world }) => ({ body: { thread_id: world.threadId, content: 'new' } }),
  appendScratchpadTool: ({ world }) => ({ body: { thread_id: world.threadId, note: 'new' } }),
};
