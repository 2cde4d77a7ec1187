import { z } from 'zod';
import type { ScratchpadAccess } from '../auth/actor.ts';

/** What a participant stores in `tools`: a word for a group of functions, not their definitions. */
export type Capability = 'scratchpad' | 'memory' | 'thread';

export interface Tool<Name extends string = string, Parameters extends z.ZodObject = z.ZodObject> {
  readonly name: Name;
  readonly capability: Capability;
  /** For the model. */
  readonly description: string;
  /** Refuses unknown arguments: none names whose, or which, thread or scratchpad it is. */
  readonly parameters: Parameters;
  /** Changes nothing. */
  readonly isReadOnly: boolean;
  /** Its answer shows what others may not see: it is the worker's alone. */
  readonly isForWorkerAlone: boolean;
  /** What a run must be allowed to do with its scratchpad to be given it. */
  readonly access: ScratchpadAccess;
}

const tool =
  (capability: Capability) =>
  <Name extends string, Shape extends z.ZodRawShape>(
    name: Name,
    description: string,
    shape: Shape,
    {
      isReadOnly = false,
      isForWorkerAlone = false,
      access = 'READ',
    }: { isReadOnly?: boolean; isForWorkerAlone?: boolean; access?: ScratchpadAccess } = {},
  ): Tool<Name, z.ZodObject<Shape, z.core.$strict>> => ({
    name,
    capability,
    description,
    parameters: z.strictObject(shape),
    isReadOnly,
    isForWorkerAlone,
    access,
  });

const ofScratchpad = tool('scratchpad');
const ofMemory = tool('memory');
const ofThread = tool('thread');

const TELLS = { isForWorkerAlone: true };
const READS = { ...TELLS, isReadOnly: true };

/** Seconds. */
const LONGEST_WAIT = 30;
/** Messages of one page. */
const MOST_MESSAGES = 50;

const cursor = (what: string, or?: string) =>
  z
    .string()
    .optional()
    .describe(
      `A cursor out of an earlier answer: goes on with ${what}.${or === undefined ? '' : ` Or ${or}.`}`,
    );

/** Every tool there is, in the order in which they are told to a model. */
export const TOOLS = [
  ofScratchpad(
    'read_scratchpad',
    'Read the shared scratchpad: its working body, and the findings that everybody appended. Read it before you write.',
    { cursor: cursor('what was too long for it') },
    READS,
  ),
  ofScratchpad(
    'update_scratchpad',
    'Replace the working body of the shared scratchpad, for example with a plan or a synthesis. Findings that were appended stay. Everybody who works on it sees the change.',
    {
      content: z
        .string()
        .describe('The whole new body; not empty. It replaces what is there: read before, keep what counts.'),
    },
    { access: 'WRITE' },
  ),
  ofScratchpad(
    'append_scratchpad',
    'Append one finding to the shared scratchpad, without touching its body or what others appended.',
    { note: z.string().describe('One finding, complete in itself, with its source; not empty.') },
    { access: 'APPEND' },
  ),
  ofMemory(
    'store',
    'Store something in your own lasting memory. No other participant sees it; the user that owns you may. Entries are never changed: store a newer one instead.',
    {
      memory: z
        .union([z.string(), z.record(z.string(), z.unknown())])
        .describe('A text, or a JSON object with a structure of your own.'),
    },
    TELLS,
  ),
  ofMemory(
    'recall',
    'Search your own memory, best matches first. An empty query gives the newest entries.',
    {
      query: z.string().describe('Words to look for; empty for the newest.'),
      cursor: cursor('what follows', 'a memory_rest: the rest of a memory that was too long for one answer'),
    },
    READS,
  ),
  ofThread('send_message', 'Send a message to everybody in this conversation.', {
    content: z.string().describe('What to say; not empty.'),
    mentions: z
      .array(z.string())
      .max(32)
      .optional()
      .describe('Handles of those whom it addresses in particular.'),
    acknowledge: z
      .boolean()
      .optional()
      .describe('True: this answers the message that next_message gave, which is finished by it.'),
  }),
  ofThread(
    'read_messages',
    'Read what was said in this conversation: the newest messages, in the order in which they were sent.',
    {
      limit: z
        .int()
        .min(1)
        .max(MOST_MESSAGES)
        .optional()
        .describe(`At most so many messages, 1 to ${MOST_MESSAGES}; 20 if absent.`),
      cursor: cursor(
        'the messages before those',
        'a content_rest or data_rest, from whichever tool: the rest of a message that was too long for one answer',
      ),
    },
    READS,
  ),
  ofThread('message_retract', 'Take back a message of your own. It stays readable, marked as taken back.', {
    message_id: z.string().describe('The message’s id, `event_…`.'),
    reason: z.string().optional().describe('Why; everybody reads it.'),
  }),
  ofThread(
    'peek_pending',
    'See which messages wait for you, the oldest first, without taking any.',
    { cursor: cursor('those that wait behind them') },
    READS,
  ),
  ofThread(
    'next_message',
    'Take the next message that waits for you. It is yours until you acknowledge it, with acknowledge_message or by an answer with send_message(acknowledge: true); what is not acknowledged is given again.',
    {
      wait_seconds: z
        .int()
        .min(0)
        .max(LONGEST_WAIT)
        .optional()
        .describe(`How long to wait for one where none is there, 0 to ${LONGEST_WAIT}; 0 if absent.`),
    },
    TELLS,
  ),
  ofThread(
    'acknowledge_message',
    'Say that you are done with the message that next_message gave, or with all that peek_pending showed up to one of them.',
    {
      message_id: z
        .string()
        .optional()
        .describe('The last message you are done with; absent: the one that next_message gave.'),
    },
  ),
] as const;

export type ToolName = (typeof TOOLS)[number]['name'];

const BY_NAME = new Map<string, (typeof TOOLS)[number]>(TOOLS.map((one) => [one.name, one]));

export const findTool = (name: string): (typeof TOOLS)[number] | undefined => BY_NAME.get(name);

/** Both spellings of a capability are understood. */
const CAPABILITIES = new Map<string, Capability>([
  ['scratchpad', 'scratchpad'],
  ['scratch_pad', 'scratchpad'],
  ['memory', 'memory'],
  ['thread', 'thread'],
]);

export const capabilityOf = (type: unknown): Capability | undefined =>
  typeof type === 'string' ? CAPABILITIES.get(type) : undefined;

/** A tool's arguments as JSON Schema: an object that takes nothing else. */
export type ParametersSchema = { readonly [keyword: string]: unknown } & { readonly type: 'object' };

const SCHEMAS = new Map<string, ParametersSchema>(
  TOOLS.map(({ name, parameters }) => {
    const { $schema: _, ...schema } = z.toJSONSchema(parameters, { io: 'input' });
    return [name, { ...schema, type: 'object' }];
  }),
);

export const parametersOf = ({ name }: Tool): ParametersSchema => {
  const schema = SCHEMAS.get(name);
  if (schema === undefined) throw new Error(`${name} is not in the catalogue.`);
  return schema;
};
