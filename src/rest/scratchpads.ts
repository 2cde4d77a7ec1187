import { z } from 'zod';
import type { Scratchpad } from '../scratchpads/rows.ts';
import type { Json } from '../shared/canonical.ts';
import { notFound } from '../shared/errors.ts';
import { answerHeaders, linkHeader } from './headers.ts';
import { requireLook, requirePad } from './pads.ts';
import { route } from './route.ts';
import { id, limit, metaData, open, strict, time } from './schemas.ts';

const ScratchpadRead = open('ScratchpadRead', 'The shared working memory of a thread.', {
  id: id('The scratchpad.'),
  owner_id: id('The user.'),
  thread_id: id('Its thread.'),
  created_at: time('When it was made.'),
  updated_at: time('When `meta_data` last changed; content and entries do not move it.'),
  meta_data: metaData('The user’s own.'),
});

const ScratchpadList = open('ScratchpadList', 'Scratchpads, by the time of creation.', {
  object: z.literal('list'),
  data: z.array(ScratchpadRead),
});

const ScratchpadDeleted = open('ScratchpadDeleted', 'A scratchpad that was deleted.', {
  id: id('The scratchpad.'),
  object: z.literal('scratchpad.deleted'),
  deleted: z.literal(true),
});

const ScratchpadCreate = strict('ScratchpadCreate', 'Which thread it is for.', {
  thread_id: z.string().min(1).describe('The thread.'),
});

const ScratchpadUpdate = strict('ScratchpadUpdate', 'What to change.', {
  meta_data: metaData('Replaces what is stored, whole; absent or null: unchanged.').nullish(),
});

const bodyOf = ({
  scratchpadId,
  ownerId,
  threadId,
  createdAt,
  updatedAt,
  metaData: stored,
}: Scratchpad): z.output<typeof ScratchpadRead> => ({
  id: scratchpadId,
  owner_id: ownerId,
  thread_id: threadId,
  created_at: createdAt,
  updated_at: updatedAt,
  meta_data: (stored ?? {}) as Record<string, unknown>,
});

const tag = 'scratchpads';
const GONE = { NOT_FOUND: 'Scratchpad not found' };

/** The resource: what content and entries hang on. */
export const SCRATCHPAD_ROUTES = [
  route({
    method: 'POST',
    path: '/v1/scratchpads',
    operationId: 'createScratchpad',
    tag,
    summary: 'Make a thread’s scratchpad',
    body: ScratchpadCreate,
    answer: ScratchpadRead,
    errors: {
      NOT_FOUND: 'Thread not found',
      CONFLICT: 'Scratchpad already exists for this thread',
      PARTICIPANT_NOT_ACTIVE: [],
    },
    async serve({ actor, services, body: { thread_id: threadId } }) {
      const { pad } = await services.scratchpads.create(actor, { threadId });
      return { body: bodyOf(pad) };
    },
  }),
  route({
    method: 'GET',
    path: '/v1/scratchpads',
    operationId: 'listScratchpads',
    tag,
    summary: 'List scratchpads',
    description:
      'One’s own, by the time of creation; of a participant those of its threads. All of them, or a page with `limit` and `after`.',
    query: z.object({
      limit: limit('At most so many: 1 to 200.'),
      after: z.string().optional().describe('Only what comes after it: of a page’s `Link` or `X-Cursor`.'),
    }),
    answer: ScratchpadList,
    answerHeaders: ['Link', 'X-Cursor'],
    errors: {},
    async serve({ actor, services, query: { limit: first, after } }) {
      if (first === undefined && after === undefined)
        return { pages: batched(services.scratchpads.all(actor), bodyOf) };
      const { edges, pageInfo } = await services.scratchpads.page(actor, { first, after });
      const { endCursor } = pageInfo;
      return {
        body: { object: 'list', data: edges.map(({ node }) => bodyOf(node)) },
        headers: answerHeaders({
          'X-Cursor': endCursor,
          Link: linkHeader('/v1/scratchpads', {
            next: pageInfo.hasNextPage ? { limit: first, after: endCursor } : null,
          }),
        }),
      };
    },
  }),
  route({
    method: 'GET',
    path: '/v1/scratchpads/{scratchpad_id}',
    operationId: 'retrieveScratchpad',
    tag,
    summary: 'Read a scratchpad',
    answer: ScratchpadRead,
    errors: GONE,
    async serve({ actor, services, params: { scratchpad_id: scratchpadId } }) {
      const { pad } = await requirePad(services, actor, scratchpadId);
      return { body: bodyOf(pad) };
    },
  }),
  route({
    method: 'GET',
    path: '/v1/threads/{thread_id}/scratchpad',
    aliases: ['/api/v1/threads/{thread_id}/scratchpad'],
    operationId: 'retrieveScratchpadByThread',
    tag,
    summary: 'Read a thread’s scratchpad',
    description: 'Never makes one.',
    answer: ScratchpadRead,
    errors: { NOT_FOUND: ['Thread not found', 'Scratchpad not found'] },
    async serve({ actor, services, params: { thread_id: threadId } }) {
      const pad = await services.scratchpads.findOfThread(actor, { threadId });
      if (pad === null) throw notFound('Scratchpad');
      await requireLook(services, actor, pad);
      return { body: bodyOf(pad) };
    },
  }),
  route({
    method: 'PATCH',
    path: '/v1/scratchpads/{scratchpad_id}',
    operationId: 'updateScratchpad',
    tag,
    summary: 'Replace its metadata',
    description: 'API key only. An empty object empties it; absent or null changes nothing.',
    body: ScratchpadUpdate,
    answer: ScratchpadRead,
    errors: { ...GONE, PAYLOAD_TOO_LARGE: [] },
    async serve({ actor, services, params: { scratchpad_id: scratchpadId }, body: { meta_data: stored } }) {
      const { pad } = await services.scratchpads.update(actor, {
        scratchpadId,
        metaData: (stored ?? null) as Json,
      });
      return { body: bodyOf(pad) };
    },
  }),
  route({
    method: 'DELETE',
    path: '/v1/scratchpads/{scratchpad_id}',
    operationId: 'deleteScratchpad',
    tag,
    summary: 'Delete a scratchpad',
    description: 'With content and entries. API key only.',
    answer: ScratchpadDeleted,
    errors: GONE,
    async serve({ actor, services, params: { scratchpad_id: scratchpadId } }) {
      await services.scratchpads.delete(actor, { scratchpadId });
      return { body: { id: scratchpadId, object: 'scratchpad.deleted', deleted: true } };
    },
  }),
];

const BATCH = 200;

/** Items as they come, in groups that are worth a write. */
async function* batched<Item, Body>(
  items: AsyncIterable<Item>,
  toBody: (item: Item) => Body,
): AsyncGenerator<readonly Body[], void> {
  let batch: Body[] = [];
  for await (const item of items) {
    batch.push(toBody(item));
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}
