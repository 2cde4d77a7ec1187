import { builder } from '../graphql/builder.ts';
import { ACT_AS } from '../graphql/pageArgs.ts';
import { type Executed, execute } from './execution.ts';

const ExecuteToolInput = builder.inputType('ExecuteToolInput', {
  description:
    'A tool call as a model made it, and where it is to act: the runtime’s choice, never the model’s.',
  fields: (t) => ({
    runId: t.id({
      description:
        'The run, in which its worker’s own token and an API key work confined as the run’s token is; with that it may be left out.',
    }),
    threadId: t.id({
      description: 'Outside of a run: the thread in which the worker is, and on whose scratchpad it works.',
    }),
    as: t.id({ description: ACT_AS }),
    name: t.string({ required: true, description: 'The function’s name.' }),
    arguments: t.field({
      type: 'JSON',
      required: true,
      description:
        'What the model gave: an object, or its JSON as a text. One that names whose it is, is refused.',
    }),
    toolCallId: t.string({
      description:
        'The model’s id of the call, 1 to 128 characters. A call that is repeated with it acts once, and is answered as the first time.',
    }),
  }),
});

const ExecuteToolPayload = builder.objectRef<Executed>('ExecuteToolPayload').implement({
  description: 'What the model is told.',
  fields: (t) => ({
    output: t.exposeString('output', { description: 'For the model; a failure begins with `Error: `.' }),
    isError: t.exposeBoolean('isError', { description: 'Whether it failed.' }),
    conversationThreadId: t.exposeID('conversationThreadId', {
      description: 'The worker’s conversation, to which the result belongs.',
    }),
    toolCallId: t.exposeString('toolCallId', { nullable: true, description: 'As it was given.' }),
  }),
});

builder.mutationFields((t) => ({
  executeTool: t.field({
    type: ExecuteToolPayload,
    description:
      'Runs one tool. Failures are texts that a model can act on. In a run the result stands in the worker’s conversation as a SystemEvent `TOOL_RESULT` and counts towards maxToolCalls; nothing is written to the scratchpad’s thread. Errors: NOT_FOUND, FORBIDDEN, BAD_USER_INPUT, IDEMPOTENCY_KEY_REUSED, INVALID_TRANSITION, UNAVAILABLE.',
    args: { input: t.arg({ type: ExecuteToolInput, required: true, description: 'The call.' }) },
    resolve: (_root, { input }, { actor, services, signal }) =>
      execute(services, actor, { ...input, arguments: input.arguments ?? null }, signal),
  }),
}));
