import { z } from 'zod';
import { padText } from '../tools/padTools.ts';
import { route } from './route.ts';
import { open } from './schemas.ts';

const tag = 'tools';
const thread = z.string().describe('The thread whose scratchpad it is; made if it is missing.');

const ToolRead = open('ScratchpadToolRead', 'Whose scratchpad to read.', {
  thread_id: thread,
  cursor: z.string().nullish().describe('What an earlier answer said to read on with.'),
});
const ToolUpdate = open('ScratchpadToolUpdate', 'What replaces the working body.', {
  thread_id: thread,
  content: z.string().describe('At most 1 MiB of UTF-8; may be empty.'),
});
const ToolAppend = open('ScratchpadToolAppend', 'What to append.', {
  thread_id: thread,
  note: z.string().min(1).describe('At most 64 KiB of UTF-8; not empty.'),
});
const ToolView = open('ScratchpadToolView', 'What a model sees.', {
  content: z
    .string()
    .describe('Body and entries as one text; where that is too long, the end says how to read on.'),
});
const ToolDone = open('ScratchpadToolDone', 'It was done.', {
  status: z.literal('success'),
  message: z.string().describe('For the model.'),
});

const at = <Path extends string>(rest: Path) => ({
  path: `/v1/tools/scratchpad/${rest}` as const,
  aliases: [`/tools/scratchpad/${rest}`],
});
const errors = { NOT_FOUND: 'Thread not found', PARTICIPANT_NOT_ACTIVE: [] };

/** What a model's three tools call. The thread is the runtime's choice; unknown fields are ignored. */
export const TOOL_ROUTES = [
  route({
    ...at('read'),
    method: 'POST',
    operationId: 'readScratchpadTool',
    tag,
    summary: 'read_scratchpad',
    body: ToolRead,
    answer: ToolView,
    errors,
    async serve({ actor, services, body: { thread_id: threadId, cursor } }) {
      const viewed = await services.scratchpads.ensure(actor, { threadId });
      const content = await padText(services.createLoaders(actor), viewed, cursor ?? undefined);
      return { body: { content } };
    },
  }),
  route({
    ...at('update'),
    method: 'POST',
    operationId: 'updateScratchpadTool',
    tag,
    summary: 'update_scratchpad',
    body: ToolUpdate,
    isContent: true,
    answer: ToolDone,
    names: { text: 'content' },
    errors: { ...errors, PAYLOAD_TOO_LARGE: [] },
    async serve({ actor, services, body: { thread_id: threadId, content } }) {
      const { pad } = await services.scratchpads.ensure(actor, { threadId });
      await services.scratchpadWriting.setContent(actor, { scratchpadId: pad.scratchpadId, text: content });
      return { body: { status: 'success', message: 'Scratchpad updated successfully.' } };
    },
  }),
  route({
    ...at('append'),
    method: 'POST',
    operationId: 'appendScratchpadTool',
    tag,
    summary: 'append_scratchpad',
    headers: z.object({
      'idempotency-key': z
        .string()
        .optional()
        .describe('1 to 128 characters: retried with it, it is one entry.'),
    }),
    body: ToolAppend,
    isContent: true,
    answer: ToolDone,
    names: { content: 'note' },
    errors: { ...errors, PAYLOAD_TOO_LARGE: [], IDEMPOTENCY_KEY_REUSED: [] },
    async serve({ actor, services, headers, body: { thread_id: threadId, note } }) {
      const { pad } = await services.scratchpads.ensure(actor, { threadId });
      await services.scratchpadWriting.append(actor, {
        scratchpadId: pad.scratchpadId,
        content: note,
        idempotencyKey: headers['idempotency-key'],
      });
      return { body: { status: 'success', message: 'Note appended successfully.' } };
    },
  }),
];
