import { z } from 'zod';
import type { RestRoute } from '../../src/rest/route.ts';
import type { Services } from '../../src/services.ts';
import { padCursor } from '../../src/shared/cursors.ts';
import type { Server } from './app.ts';
import type { Caller } from './asking.ts';
import { type RestReply, restAt } from './rest.ts';
import { createWorld, cursorOf, type World } from './world.ts';

/** A world with something in its scratchpad: rex saw its first entry, and nothing of what came after its removal. */
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
  const { owner, threadId, people, scratchpadId } = world;
  const { ada, rex } = people;
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
const SAMPLES: Readonly<Record<string, (place: Place) => Sample>> = {
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
  hydrateTools: () => ({ body: { tools: [{ type: 'scratchpad' }] } }),
  executeTool: ({ world }) => ({
    body: {
      thread_id: world.threadId,
      as: world.people.ada.id,
      name: 'append_scratchpad',
      arguments: { note: 'new' },
    },
  }),
  appendScratchpadTool: ({ world }) => ({ body: { thread_id: world.threadId, note: 'new' } }),
};

export const sampleOf = ({ operationId }: RestRoute, place: Place): Sample => {
  const sample = SAMPLES[operationId];
  if (sample === undefined) throw new Error(`${operationId} is new: say in restPlaces.ts how it is called.`);
  return sample(place);
};

/** Asks a route, at one of its paths. */
export const callRoute = (
  { url }: Pick<Server, 'url'>,
  route: RestRoute,
  { headers }: Caller,
  { params = {}, query = {}, body }: Sample,
  path = route.path,
): Promise<RestReply> => {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
  const search = Object.keys(query).length === 0 ? '' : `?${new URLSearchParams(query)}`;
  const request = restAt(new URL(url).origin);
  return request(headers, route.method, filled + search, body === undefined ? {} : { body });
};

/** What a body or a query can name. */
export const namesIn = (schema: z.ZodType | undefined): string[] => {
  const inner = schema instanceof z.ZodOptional ? schema.unwrap() : schema;
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : [];
};
