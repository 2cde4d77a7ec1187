import { builder } from '../graphql/builder.ts';
import { KEY } from '../graphql/pageArgs.ts';
import { RunNode, type RunView } from '../graphql/refs.ts';
import type { TokenOfRun } from './rows.ts';
import { RunStatusEnum, ScratchpadAccessEnum } from './runs.graphql.ts';
import { runView } from './views.graphql.ts';

const ACTS =
  'Act as this participant. A token acts as its own; an API key as the user itself, or as one named here or with X-Act-As.';
const EXPIRES = 'Its deadline, so many seconds from now; at most ten years';

const DelegateRunInput = builder.inputType('DelegateRunInput', {
  description: 'Who is to do what, where, with which scratchpad.',
  fields: (t) => ({
    participantId: t.id({ required: true, description: 'Who is to work: somebody the delegator sees.' }),
    as: t.id({ description: ACTS }),
    conversationThreadId: t.id({
      description:
        'Where it works: a thread of which the worker is an active member. Absent: a private one is opened for it, with a fresh unit.',
    }),
    scratchpadId: t.id({
      description: 'What it works on: one that the delegator may write to. Absent: the parent’s, or none.',
    }),
    scratchpadAccess: t.field({
      type: ScratchpadAccessEnum,
      description: 'What it may do with it; WRITE if absent, of a child what its parent may.',
    }),
    parentRunId: t.id({ description: 'The run that delegates; with a run token always its own.' }),
    input: t.field({ type: 'JSON', description: 'What is to be done; at most 256 KiB.' }),
    metaData: t.field({
      type: 'JSON',
      description:
        'A JSON object of at most 16 KiB. `scratch_pad_thread` in it (deprecated) names the thread whose scratchpad is meant, where scratchpadId is absent; it is looked up once, with the delegator’s rights.',
    }),
    maxToolCalls: t.int({
      description:
        'How many tool calls it may make, with all runs below it; 200 if absent. Of a child at most what its parent has left, and that if absent.',
    }),
    expiresInSeconds: t.int({
      description: `${EXPIRES}. Absent: none, of a child its parent’s, which it may not exceed.`,
    }),
    idempotencyKey: t.string({
      description: `${KEY} The answer has a fresh token, and the one that was answered before is dead. Of a run that was claimed or has ended, the fresh one is dead too.`,
    }),
  }),
});

const ClaimRunInput = builder.inputType('ClaimRunInput', {
  description: 'Which run to take.',
  fields: (t) => ({
    runId: t.id({ required: true, description: 'A queued run.' }),
    as: t.id({ description: ACTS }),
  }),
});

const UpdateRunInput = builder.inputType('UpdateRunInput', {
  description: 'What to change of a run: status, deadline, or both.',
  fields: (t) => ({
    runId: t.id({ required: true, description: 'The run.' }),
    as: t.id({ description: ACTS }),
    status: t.field({
      type: RunStatusEnum,
      description:
        'IN_PROGRESS, INPUT_REQUIRED, COMPLETED, FAILED: the worker’s. CANCELLED: the delegator’s and the user’s.',
    }),
    result: t.field({
      type: 'JSON',
      description:
        'What came out, with COMPLETED; what is asked, with INPUT_REQUIRED. At most 256 KiB; with another status it is not kept.',
    }),
    error: t.string({ description: 'Why, with FAILED and CANCELLED; at most 16 KiB.' }),
    expiresInSeconds: t.int({
      description: `${EXPIRES}. The delegator’s and the user’s; sockets of its tokens are closed and may come back.`,
    }),
  }),
});

const DelegateRunPayload = builder.objectRef<TokenOfRun>('DelegateRunPayload').implement({
  description: 'A run and a token of it.',
  fields: (t) => ({
    run: t.field({
      type: RunNode,
      description: 'The run.',
      resolve: ({ run, viewerId }) => runView(run, viewerId),
    }),
    token: t.exposeString('token', {
      description: 'Speaks for the worker, confined to the run, while it is open. Shown once: keep it now.',
    }),
  }),
});

const RunPayload = builder.objectRef<RunView>('RunPayload').implement({
  description: 'The run as it is now.',
  fields: (t) => ({ run: t.field({ type: RunNode, description: 'The run.', resolve: (view) => view }) }),
});

builder.mutationFields((t) => ({
  delegateRun: t.field({
    type: DelegateRunPayload,
    description:
      'Delegates a piece of work: the user, an active member of the scratchpad’s thread, or a run a child of its own. One open run for each worker and conversation. Errors: NOT_FOUND, FORBIDDEN, PARTICIPANT_NOT_ACTIVE, CONFLICT (existingId), INVALID_TRANSITION, BAD_USER_INPUT, PAYLOAD_TOO_LARGE, IDEMPOTENCY_KEY_REUSED.',
    args: { input: t.arg({ type: DelegateRunInput, required: true, description: 'The work.' }) },
    resolve: (_root, { input }, context) => context.services.runs.delegate(context.actor, input),
  }),
  claimRun: t.field({
    type: DelegateRunPayload,
    description:
      'Takes a queued run, as its worker; of several calls one wins. The token that delegateRun answered ends. Errors: NOT_FOUND, FORBIDDEN, INVALID_TRANSITION (status, allowed).',
    args: { input: t.arg({ type: ClaimRunInput, required: true, description: 'The run.' }) },
    resolve: (_root, { input }, context) => context.services.runs.claim(context.actor, input),
  }),
  updateRun: t.field({
    type: RunPayload,
    description:
      'Moves a run on, or sets its deadline. With its end its tokens and its children end. Errors: NOT_FOUND, FORBIDDEN, INVALID_TRANSITION (status, allowed), BAD_USER_INPUT, PAYLOAD_TOO_LARGE.',
    args: { input: t.arg({ type: UpdateRunInput, required: true, description: 'The change.' }) },
    resolve: async (_root, { input }, context) => {
      const { run, viewerId } = await context.services.runs.update(context.actor, input);
      return runView(run, viewerId);
    },
  }),
}));
