import { CredentialNode } from '../auth/credentials.graphql.ts';
import { builder } from '../graphql/builder.ts';
import {
  MessageNode,
  RunNode,
  type RunView,
  ScratchpadEntryNode,
  ScratchpadNode,
  ThreadNode,
} from '../graphql/refs.ts';
import { ParticipantNode } from '../participants/participants.graphql.ts';
import { Viewer } from '../participants/users.graphql.ts';
import { ScratchpadContentObject } from '../scratchpads/content.graphql.ts';
import { visiblePad } from '../scratchpads/scratchpads.graphql.ts';
import { requireParticipant } from '../timeline/views.graphql.ts';
import { visibleRun } from './views.graphql.ts';

export const RunStatusEnum = builder.enumType('RunStatus', {
  description:
    'Where a run stands. It is queued until it is claimed or first works; it may wait for input and go on; then it ends, once and for good.',
  values: {
    QUEUED: { description: 'Not begun.' },
    IN_PROGRESS: { description: 'Its worker works.' },
    INPUT_REQUIRED: { description: 'Its worker waits for somebody; `result` may say for what.' },
    COMPLETED: { description: 'Done: `result` is what came out.' },
    FAILED: { description: 'Given up by its worker: `error` says why.' },
    CANCELLED: {
      description:
        'Called off: by whoever delegated it or the user, by its delegator’s removal, with its parent or its conversation.',
    },
    EXPIRED: { description: 'Its deadline passed.' },
  } as const,
});

export const ScratchpadAccessEnum = builder.enumType('ScratchpadAccess', {
  description: 'What a run may do with its scratchpad. None may clear or delete it.',
  values: {
    READ: { description: 'Read.' },
    APPEND: { description: 'Read, and append entries.' },
    WRITE: { description: 'Read, append entries, and replace the content.' },
  } as const,
});

/** Its worker and the user know in which conversation it works; its delegator does not. */
const mayKnowConversation = ({ run, viewerId }: RunView): boolean =>
  viewerId === null || viewerId === run.participantId;

RunNode.implement({
  description:
    'A delegated piece of work: who works, in which conversation, on which scratchpad, for whom. Seen by its worker, its delegator and the user.',
  interfaces: [builder.nodeInterfaceRef()],
  isTypeOf: (value) => typeof value === 'object' && value !== null && 'run' in value,
  fields: (t) => ({
    id: t.id({ description: 'Globally unique; refetchable with Query.node.', resolve: ({ run }) => run.id }),
    status: t.field({
      type: RunStatusEnum,
      description: 'Where it stands.',
      resolve: ({ run }) => run.status,
    }),
    participant: t.field({
      type: ParticipantNode,
      description: 'Who works.',
      resolve: ({ run }, _args, context) => requireParticipant(context, run.participantId),
    }),
    delegator: t.field({
      type: ParticipantNode,
      nullable: true,
      description: 'For whom; null for the user.',
      resolve: ({ run }, _args, context) =>
        run.delegatorId === null ? null : context.loaders.participant.load(run.delegatorId),
    }),
    scratchpad: t.field({
      type: ScratchpadNode,
      nullable: true,
      description: 'What it works on; null where there is none (any more), or none the viewer may know of.',
      resolve: ({ run, viewerId }, _args, context) =>
        run.scratchpadId === null ? null : visiblePad(context, run.scratchpadId, viewerId),
    }),
    scratchpadAccess: t.field({
      type: ScratchpadAccessEnum,
      nullable: true,
      description: 'What it may do with the scratchpad; null without one.',
      resolve: ({ run }) => (run.scratchpadId === null ? null : run.access),
    }),
    parentRun: t.field({
      type: RunNode,
      nullable: true,
      description: 'The run that delegated it, if one did and the viewer may see it.',
      resolve: ({ run, viewerId }, _args, context) => visibleRun(context, run.parentRunId, viewerId),
    }),
    conversationThread: t.field({
      type: ThreadNode,
      nullable: true,
      description: 'Where it works: for its worker and the user, else null.',
      resolve: (view, _args, context) => {
        const threadId = view.run.conversationThreadId;
        if (threadId === null || !mayKnowConversation(view)) return null;
        return context.loaders.look.load({ threadId, viewerId: view.viewerId });
      },
    }),
    conversationThreadId: t.id({
      nullable: true,
      description: 'The same by id: for its worker and the user, else null.',
      resolve: (view) => (mayKnowConversation(view) ? view.run.conversationThreadId : null),
    }),
    input: t.field({
      type: 'JSON',
      nullable: true,
      description: 'What is to be done; at most 256 KiB.',
      resolve: ({ run }) => run.input,
    }),
    result: t.field({
      type: 'JSON',
      nullable: true,
      description:
        'What came out; while it waits for input, what it asks. At most 256 KiB. None of a run that did not complete.',
      resolve: ({ run }) => run.result,
    }),
    error: t.string({
      nullable: true,
      description: 'Why it failed, was cancelled or expired.',
      resolve: ({ run }) => run.error,
    }),
    metaData: t.field({
      type: 'JSON',
      description:
        'The delegator’s own, never interpreted; `scratchpad_id`, `batfish_owner_user_id` and `scratch_pad_thread` in it are written by the server.',
      resolve: ({ run }) => run.metaData,
    }),
    toolCalls: t.int({
      description: 'Tool calls made so far, by it and by all runs below it.',
      resolve: ({ run }) => run.toolCalls,
    }),
    maxToolCalls: t.int({
      description: 'How many it may make, with all runs below it.',
      resolve: ({ run }) => run.maxToolCalls,
    }),
    createdAt: t.field({
      type: 'DateTime',
      description: 'When it was delegated.',
      resolve: ({ run }) => run.createdAt,
    }),
    startedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When it was claimed, or first worked.',
      resolve: ({ run }) => run.startedAt,
    }),
    finishedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When it ended.',
      resolve: ({ run }) => run.finishedAt,
    }),
    expiresAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'Its deadline; null for none.',
      resolve: ({ run }) => run.expiresAt,
    }),
  }),
});

const WRITTEN_IN = 'The run in which it was written; null where none was, or the viewer may not see it.';

builder.objectField(MessageNode, 'run', (t) =>
  t.field({
    type: RunNode,
    nullable: true,
    description: WRITTEN_IN,
    resolve: ({ event, viewerId }, _args, context) => visibleRun(context, event.runId, viewerId),
  }),
);

builder.objectField(ScratchpadEntryNode, 'run', (t) =>
  t.field({
    type: RunNode,
    nullable: true,
    description: WRITTEN_IN,
    resolve: ({ entry, viewerId }, _args, context) => visibleRun(context, entry.runId, viewerId),
  }),
);

builder.objectField(ScratchpadContentObject, 'run', (t) =>
  t.field({
    type: RunNode,
    nullable: true,
    description: WRITTEN_IN,
    resolve: ({ content, viewerId }, _args, context) => visibleRun(context, content?.runId ?? null, viewerId),
  }),
);

builder.objectField(Viewer, 'run', (t) =>
  t.field({
    type: RunNode,
    nullable: true,
    description: 'The run whose token was presented; null for every other credential.',
    resolve: (actor, _args, context) =>
      actor.kind === 'RUN_TOKEN' ? visibleRun(context, actor.runId, actor.participantId) : null,
  }),
);

builder.objectField(CredentialNode, 'run', (t) =>
  t.field({
    type: RunNode,
    nullable: true,
    description: 'Whose token it is, of a run token; else null.',
    resolve: ({ runId, participantId }, _args, context) =>
      visibleRun(context, runId, context.actor.kind === 'API_KEY' ? null : participantId),
  }),
);
