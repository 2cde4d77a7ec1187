import { z } from 'zod';
import type { PadContent, PadEntry } from '../scratchpads/pad.ts';
import { cursorOfEntry, entriesAsk, entriesPage } from '../scratchpads/pages.ts';
import type { Services } from '../services.ts';
import { padCursor } from '../shared/cursors.ts';
import { answerHeaders, linkHeader } from './headers.ts';
import { expectedEtag } from './ifMatch.ts';
import {
  expiryAfter,
  expiryOf,
  quoted,
  readPad,
  readPage,
  requireActive,
  requirePad,
  type ViewedPad,
} from './pads.ts';
import { route } from './route.ts';
import { id, limit, strict, time } from './schemas.ts';

const ContentRead = strict('ScratchpadContentRead', 'The working body. Nothing is added to it.', {
  scratchpad_id: id('The scratchpad.'),
  content: z.string().describe('The text; empty where nothing is there.'),
  updated_at: time('When it was written; null where nothing is there.').nullable(),
});

const ContentUpdate = strict('ScratchpadContentUpdate', 'What replaces the working body.', {
  content: z.string().describe('At most 1 MiB of UTF-8; may be empty.'),
});

const EntryRead = strict('ScratchpadEntryRead', 'An appended entry. Nothing is added to it.', {
  scratchpad_id: id('The scratchpad.'),
  content: z.string().describe('The text.'),
  created_at: time('When it was appended.'),
});

const EntryCreate = strict('ScratchpadEntryCreate', 'What to append.', {
  content: z.string().min(1).describe('At most 64 KiB of UTF-8; not empty.'),
});

const EntryList = strict('ScratchpadEntryList', 'Entries, oldest first.', {
  object: z.literal('list'),
  data: z.array(EntryRead),
});

const StateCleared = strict('ScratchpadStateCleared', 'What was cleared; the scratchpad stays.', {
  id: id('The scratchpad.'),
  object: z.literal('scratchpad.state.cleared'),
  scope: z.enum(['content', 'entries', 'all']).describe('What of it.'),
  cleared: z.literal(true),
});

const contentBody = (scratchpadId: string, content: PadContent | null): z.output<typeof ContentRead> => ({
  scratchpad_id: scratchpadId,
  content: content?.text ?? '',
  updated_at: content?.updatedAt ?? null,
});

const entryBody = (scratchpadId: string, { content, createdAt }: PadEntry): z.output<typeof EntryRead> => ({
  scratchpad_id: scratchpadId,
  content,
  created_at: createdAt,
});

const tag = 'scratchpads';
const PAD = '/v1/scratchpads/{scratchpad_id}';
const GONE = { NOT_FOUND: 'Scratchpad not found' };
const WRITTEN = { ...GONE, PARTICIPANT_NOT_ACTIVE: [], PAYLOAD_TOO_LARGE: [] };

const clearing = (
  method: 'POST' | 'DELETE',
  path: '/content' | '/entries' | '/clear',
  operationId: string,
  scope: 'content' | 'entries' | 'all',
) =>
  route({
    method,
    path: `${PAD}${path}`,
    operationId,
    tag,
    summary: scope === 'all' ? 'Clear content and entries' : `Clear the ${scope}`,
    description: 'The scratchpad stays. Clearing what is empty succeeds.',
    answer: StateCleared,
    answerHeaders: ['X-Cursor'],
    errors: { ...GONE, PARTICIPANT_NOT_ACTIVE: [] },
    async serve({ actor, services, params: { scratchpad_id: scratchpadId } }) {
      const what = ({ content: 'CONTENT', entries: 'ENTRIES', all: 'ALL' } as const)[scope];
      const { position } = await services.scratchpadWriting.clear(actor, { scratchpadId }, what);
      return {
        body: { id: scratchpadId, object: 'scratchpad.state.cleared', scope, cleared: true },
        headers: answerHeaders({ 'X-Cursor': padCursor(scratchpadId, position) }),
      };
    },
  });

/** What is in a scratchpad. */
export const CONTENT_ROUTES = [
  route({
    method: 'GET',
    path: `${PAD}/content`,
    operationId: 'retrieveScratchpadContent',
    tag,
    summary: 'Read the content',
    description: 'Nothing there is `""`. For active members and the user.',
    answer: ContentRead,
    answerHeaders: ['ETag', 'X-Cursor', 'X-Expires-At'],
    errors: { ...GONE, PARTICIPANT_NOT_ACTIVE: [] },
    async serve({ actor, services, params: { scratchpad_id: scratchpadId } }) {
      const viewed = await requirePad(services, actor, scratchpadId);
      const seen = await readPad(services, viewed, { content: true });
      requireActive(seen);
      return {
        body: contentBody(scratchpadId, seen.content),
        headers: answerHeaders({
          ETag: quoted(seen.content?.etag ?? ''),
          'X-Cursor': padCursor(scratchpadId, seen.position),
          'X-Expires-At': expiryOf(seen.expiresAt),
        }),
      };
    },
  }),
  route({
    method: 'PUT',
    path: `${PAD}/content`,
    operationId: 'setScratchpadContent',
    tag,
    summary: 'Replace the content',
    description: 'With `If-Match` only over the content that has this etag; else the last writer wins.',
    headers: z.object({
      'if-match': z
        .string()
        .optional()
        .describe('The etag of the content that is replaced, as `ETag` had it; `""` for nothing.'),
    }),
    body: ContentUpdate,
    isContent: true,
    answer: ContentRead,
    answerHeaders: ['ETag', 'X-Cursor', 'X-Expires-At'],
    names: { text: 'content' },
    errors: { ...WRITTEN, VERSION_CONFLICT: [] },
    async serve({ actor, services, params: { scratchpad_id: scratchpadId }, headers, body }) {
      const { content, position, ttlSeconds } = await services.scratchpadWriting.setContent(actor, {
        scratchpadId,
        text: body.content,
        expectedEtag: expectedEtag(headers['if-match']),
      });
      return {
        body: contentBody(scratchpadId, content),
        headers: answerHeaders({
          ETag: quoted(content.etag),
          'X-Cursor': padCursor(scratchpadId, position),
          'X-Expires-At': expiryAfter(content.updatedAt, ttlSeconds),
        }),
      };
    },
  }),
  clearing('DELETE', '/content', 'clearScratchpadContent', 'content'),
  route({
    method: 'POST',
    path: `${PAD}/entries`,
    operationId: 'appendScratchpadEntry',
    tag,
    summary: 'Append an entry',
    description: 'Retried with the same `Idempotency-Key` it is one entry.',
    headers: z.object({
      'idempotency-key': z
        .string()
        .optional()
        .describe(
          '1 to 128 characters: the same key and content answer the first result again, for 24 hours.',
        ),
    }),
    body: EntryCreate,
    isContent: true,
    answer: EntryRead,
    answerHeaders: ['X-Cursor', 'X-Entry-Seq', 'X-Expires-At'],
    errors: { ...WRITTEN, IDEMPOTENCY_KEY_REUSED: [] },
    async serve({ actor, services, params: { scratchpad_id: scratchpadId }, headers, body }) {
      const { entry, position, ttlSeconds, mayRead } = await services.scratchpadWriting.append(actor, {
        scratchpadId,
        content: body.content,
        idempotencyKey: headers['idempotency-key'],
      });
      return {
        body: entryBody(scratchpadId, entry),
        headers: mayRead
          ? answerHeaders({
              'X-Cursor': padCursor(scratchpadId, position),
              'X-Entry-Seq': entry.seq,
              'X-Expires-At': expiryAfter(entry.createdAt, ttlSeconds),
            })
          : {},
      };
    },
  }),
  route({
    method: 'GET',
    path: `${PAD}/entries`,
    operationId: 'listScratchpadEntries',
    tag,
    summary: 'List the entries',
    description:
      'Oldest first, all of them, or a page with `limit` and `after`. A removed member gets those of its own time.',
    query: z.object({
      limit: limit('At most so many: 1 to 200.'),
      after: z
        .string()
        .optional()
        .describe('Only what comes after it: of a page’s `Link` or any `X-Cursor`.'),
    }),
    answer: EntryList,
    answerHeaders: ['Link', 'X-Cursor', 'X-Expires-At'],
    errors: GONE,
    async serve({
      actor,
      services,
      params: { scratchpad_id: scratchpadId },
      query: { limit: first, after },
    }) {
      const viewed = await requirePad(services, actor, scratchpadId);
      if (first === undefined && after === undefined) return wholeList(services, viewed);
      const asked = entriesAsk(scratchpadId, { first, after });
      const answer = await readPage(services, viewed, asked.page);
      const { entries, hasNextPage } = entriesPage(asked, answer);
      const last = entries.at(-1);
      const end = last === undefined ? null : cursorOfEntry(last);
      return {
        body: { object: 'list', data: entries.map((entry) => entryBody(scratchpadId, entry)) },
        headers: answerHeaders({
          'X-Cursor': end ?? after,
          'X-Expires-At': expiryOf(answer.seen.expiresAt),
          Link: linkHeader(`/v1/scratchpads/${scratchpadId}/entries`, {
            next: hasNextPage && end !== null ? { limit: first, after: end } : null,
          }),
        }),
      };
    },
  }),
  clearing('DELETE', '/entries', 'clearScratchpadEntries', 'entries'),
  clearing('POST', '/clear', 'clearScratchpad', 'all'),
];

/** Of one read of a list that may hold 64 MiB. */
const PART = { limit: 1_000, maxBytes: 1024 * 1024 } as const;

/** Everything up to where the list ended when it was asked for. What is cleared or lost meanwhile is left out. */
const wholeList = async (services: Services, viewed: ViewedPad) => {
  const { scratchpadId } = viewed.pad;
  const read = (after: number | null, before: number | null) =>
    readPage(services, viewed, { ...PART, after, before, isBackward: false });
  const first = await read(null, null);
  const { epoch } = first.seen.position;
  const end = first.page?.end ?? first.seen.position;

  async function* pages() {
    let page = first.page;
    for (;;) {
      const entries = page?.entries ?? [];
      yield entries.map((entry) => entryBody(scratchpadId, entry));
      const last = entries.at(-1);
      if (page === null || last === undefined || page.skipped + entries.length >= page.total) return;
      const next = await read(last.seq, end.seq + 1);
      if (next.seen.position.epoch !== epoch) return;
      page = next.page;
    }
  }

  return {
    pages: pages(),
    headers: answerHeaders({
      'X-Cursor': padCursor(scratchpadId, end),
      'X-Expires-At': expiryOf(first.seen.expiresAt),
    }),
  };
};
