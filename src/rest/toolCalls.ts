import { z } from 'zod';
import type { Json } from '../shared/canonical.ts';
import { execute } from '../tools/execution.ts';
import { hydrate } from '../tools/hydration.ts';
import { actingAs } from './record.ts';
import { route } from './route.ts';
import { strict } from './schemas.ts';

const tag = 'tools';

const ToolsHydrate = strict('ToolsHydrate', 'What a participant stores in `tools`, or any other list.', {
  tools: z.array(z.unknown()).describe('Capabilities such as `{"type": "scratchpad"}` among whatever else.'),
});
const ToolsHydrated = strict('ToolsHydrated', 'Concrete functions for a model.', {
  tools: z
    .array(z.unknown())
    .describe('The platform’s functions, each name once; then everything else, unchanged.'),
});
const ToolExecute = strict('ToolExecute', 'A tool call as a model made it, and where it is to act.', {
  run_id: z
    .string()
    .nullish()
    .describe(
      'The run, in which its worker’s own token and an API key work confined as the run’s token is; with that it may be left out.',
    ),
  thread_id: z.string().nullish().describe('Outside of a run: the thread in which the worker is.'),
  as: actingAs,
  name: z.string().describe('The function’s name.'),
  arguments: z.unknown().describe('What the model gave: an object, or its JSON as a text.'),
  tool_call_id: z
    .string()
    .nullish()
    .describe('The model’s id of the call: repeated with it, it acts once and answers the same.'),
});
const ToolExecuted = strict('ToolExecuted', 'What the model is told.', {
  output: z.string().describe('For the model; a failure begins with `Error: `.'),
  is_error: z.boolean().describe('Whether it failed.'),
  conversation_thread_id: z.string().describe('The worker’s conversation, to which the result belongs.'),
  tool_call_id: z.string().nullable().describe('As it was given.'),
});

/** The twins of `hydrateTools` and `executeTool`. */
export const TOOL_CALL_ROUTES = [
  route({
    path: '/v1/tools/hydrate',
    method: 'POST',
    operationId: 'hydrateTools',
    tag,
    summary: 'Turn capabilities into functions for a model',
    body: ToolsHydrate,
    answer: ToolsHydrated,
    errors: {},
    serve: async ({ actor, body }) => ({ body: { tools: hydrate(actor, body.tools as Json[]) } }),
  }),
  route({
    path: '/v1/tools/execute',
    method: 'POST',
    operationId: 'executeTool',
    tag,
    summary: 'Run one tool',
    description: 'Failures are texts that a model can act on, with status 200 and `is_error`.',
    body: ToolExecute,
    isContent: true,
    answer: ToolExecuted,
    errors: { NOT_FOUND: [], IDEMPOTENCY_KEY_REUSED: [], INVALID_TRANSITION: [], PAYLOAD_TOO_LARGE: [] },
    async serve({ actor, services, body, signal }) {
      const executed = await execute(
        services,
        actor,
        {
          runId: body.run_id,
          threadId: body.thread_id,
          as: body.as,
          name: body.name,
          arguments: (body.arguments ?? {}) as Json,
          toolCallId: body.tool_call_id,
        },
        signal,
      );
      return {
        body: {
          output: executed.output,
          is_error: executed.isError,
          conversation_thread_id: executed.conversationThreadId,
          tool_call_id: executed.toolCallId,
        },
      };
    },
  }),
];
