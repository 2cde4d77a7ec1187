import { builder } from '../graphql/builder.ts';
import { ACT_AS, KEY, pageArgs } from '../graphql/pageArgs.ts';
import { MemoryEntryNode, type MemoryView, RunNode, ThreadNode } from '../graphql/refs.ts';
import { ParticipantNode } from '../participants/participants.graphql.ts';
import { visibleRun } from '../runs/views.graphql.ts';
import { visibleSources } from '../scratchpads/sources.graphql.ts';
import { memoryPage, memoryView } from './views.graphql.ts';

MemoryEntryNode.implement({
  description: 'One entry of an agent’s memory. Entries are appended and never change.',
  interfaces: [builder.nodeInterfaceRef()],
  isTypeOf: (value) => typeof value === 'object' && value !== null && 'memory' in value,
  fields: (t) => ({
    id: t.id({
      description: 'Globally unique; an agent refetches with Query.node what it recalls everywhere.',
      resolve: ({ memory }) => memory.id,
    }),
    timestamp: t.field({
      type: 'DateTime',
      description: 'When it was stored.',
      resolve: ({ memory }) => memory.timestamp,
    }),
    payload: t.field({
      type: 'JSON',
      description: 'What is remembered; at most 256 KiB. An empty object once it is erased.',
      resolve: ({ memory }) => (memory.isErased ? {} : memory.payload),
    }),
    thread: t.field({
      type: ThreadNode,
      nullable: true,
      description: 'Where the agent worked; null for nowhere, and where the viewer may not see the thread.',
      resolve: ({ memory, viewerId }, _args, context) =>
        memory.threadId === null ? null : context.loaders.look.load({ threadId: memory.threadId, viewerId }),
    }),
    threadOnly: t.boolean({
      nullable: true,
      description:
        'Whether it is recalled in that thread only, as the thread’s policy was then; null outside of any thread.',
      resolve: ({ memory }) => memory.threadOnly,
    }),
    threadSeq: t.int({
      nullable: true,
      description: 'How far that thread was then; null outside of any thread.',
      resolve: ({ memory }) => memory.threadSeq,
    }),
    run: t.field({
      type: RunNode,
      nullable: true,
      description: 'The run that stored it, if one did and the viewer may see it.',
      resolve: ({ memory, viewerId }, _args, context) => visibleRun(context, memory.runId, viewerId),
    }),
    sources: t.field({
      type: [builder.nodeInterfaceRef()],
      description: 'What it derives from; those the viewer may not see, or not recall here, are left out.',
      resolve: ({ memory, viewerId, recalledIn }, _args, context) =>
        visibleSources(context, memory.sourceIds, viewerId, recalledIn),
    }),
    isErased: t.boolean({
      description: 'Whether its payload was erased; the entry itself stays.',
      resolve: ({ memory }) => memory.isErased,
    }),
  }),
});

const MemoryEntryEdge = builder.edgeObject({
  type: MemoryEntryNode,
  name: 'MemoryEntryEdge',
  description: 'An entry and where it stands.',
});

const MemoryEntryConnection = builder.connectionObject(
  {
    type: MemoryEntryNode,
    name: 'MemoryEntryConnection',
    description: 'A page of memory, as many as asked for or as fit into 1 MiB.',
  },
  MemoryEntryEdge,
);

builder.queryField('recall', (t) =>
  t.field({
    type: MemoryEntryConnection,
    nullable: true,
    description:
      'What an agent or unit remembers in a thread it is in, also while removed: what it stored there, what was stored under a policy that is not threadOnly, and what belongs to no thread. By words: entries with all of them or, where none has, any; the best first, of the newest 2,000. Else the newest first. Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE, INVALID_CURSOR, NOT_FOUND, FORBIDDEN (humans).',
    args: {
      threadId: t.arg.id({ required: true, description: 'The thread in which the agent works.' }),
      as: t.arg.id({ description: ACT_AS }),
      query: t.arg.string({
        description: 'Words of whatever language, found in all texts of the payloads; at most 4 KiB.',
      }),
      match: t.arg({
        type: 'JSON',
        description: 'Only payloads that contain this JSON, such as {"type": "task", "done": false}.',
      }),
      ...pageArgs,
    },
    resolve: (_root, args, context) =>
      memoryPage(context, () => context.services.memories.recall(context.actor, args)),
  }),
);

builder.objectField(ParticipantNode, 'memory', (t) =>
  t.field({
    type: MemoryEntryConnection,
    nullable: true,
    description: 'All that it stored, newest first. The user’s only: null for everybody else.',
    args: pageArgs,
    resolve: ({ id }, args, context) =>
      memoryPage(context, () => context.services.memories.pageOf(context.actor, id, args)),
  }),
);

const StoreMemoryInput = builder.inputType('StoreMemoryInput', {
  description: 'What to remember. The stamp is the server’s.',
  fields: (t) => ({
    threadId: t.id({
      description: 'The thread in which the agent works; an API key may leave it out: recalled everywhere.',
    }),
    payload: t.field({ type: 'JSON', required: true, description: 'Any JSON; at most 256 KiB.' }),
    as: t.id({ description: ACT_AS }),
    sourceIds: t.idList({
      description: 'Events, entries and memories it derives from: at most 50, each visible to the agent.',
    }),
    idempotencyKey: t.string({ description: KEY }),
  }),
});

const MemoryEntryPayload = builder.objectRef<{ readonly entry: MemoryView }>('MemoryEntryPayload').implement({
  description: 'What was stored.',
  fields: (t) => ({
    entry: t.expose('entry', { type: MemoryEntryNode, description: 'The entry with its stamp.' }),
  }),
});

builder.mutationField('storeMemory', (t) =>
  t.field({
    type: MemoryEntryPayload,
    description:
      'Appends an entry to the memory of an agent or unit. In a thread it must be an active member, and the thread’s policy at this moment is stamped. Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE, NOT_FOUND, FORBIDDEN (humans), PARTICIPANT_NOT_ACTIVE, IDEMPOTENCY_KEY_REUSED.',
    args: { input: t.arg({ type: StoreMemoryInput, required: true, description: 'The entry.' }) },
    resolve: async (_root, { input }, { actor, services }) => {
      const payload = input.payload ?? null;
      const { entry, viewerId } = await services.memories.store(actor, { ...input, payload });
      return { entry: memoryView(entry, viewerId, entry.threadId) };
    },
  }),
);
