import { builder } from '../graphql/builder.ts';
import { pageArgs } from '../graphql/pageArgs.ts';
import type { Participant } from '../storage/generated/prisma/client.ts';

const ParticipantKindEnum = builder.enumType('ParticipantKind', {
  description: 'What a participant is.',
  values: {
    HUMAN: { description: 'A person.' },
    AGENT: { description: 'An AI agent.' },
    UNIT: { description: 'A group that is addressed as one.' },
  } as const,
});

export const ParticipantNode = builder.prismaObject('Participant', {
  description: 'Somebody who can be in a thread.',
  interfaces: [builder.nodeInterfaceRef()],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Global id, `part_…`.' }),
    kind: t.expose('kind', { type: ParticipantKindEnum, description: 'Human, agent or unit.' }),
    handle: t.exposeString('handle', { description: 'Unique for its user, in lower case.' }),
    displayName: t.exposeString('displayName', { description: 'What people read.' }),
    concurrentThreads: t.exposeBoolean('concurrentThreads', {
      description: 'For agents and units: whether work in several threads may be in flight at once.',
    }),
    listed: t.exposeBoolean('listed', {
      description: 'Whether participants that share no thread with it may find it.',
    }),
    tools: t.field({
      type: ['JSON'],
      description:
        'Capabilities: JSON objects, each with a `type`. Known are `scratchpad`, `memory` and `thread`, of which `hydrateTools` and MCP make tools; others are kept and pass through.',
      resolve: ({ tools }) => (Array.isArray(tools) ? tools : []),
    }),
    metaData: t.expose('metaData', {
      type: 'JSON',
      description: 'A JSON object of the user’s, never interpreted.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made.' }),
  }),
});

const ParticipantEdge = builder.edgeObject({
  type: ParticipantNode,
  name: 'ParticipantEdge',
  description: 'A participant and where it stands.',
});

const ParticipantConnection = builder.connectionObject(
  {
    type: ParticipantNode,
    name: 'ParticipantConnection',
    description: 'A page of participants, in the order in which they were made.',
  },
  ParticipantEdge,
);

builder.queryFields((t) => ({
  participant: t.field({
    type: ParticipantNode,
    nullable: true,
    description: 'By id or by handle, exactly one of them. Null for what does not exist or may not be seen.',
    args: {
      id: t.arg.id({ description: 'Its id.' }),
      handle: t.arg.string({ description: 'Its handle, in whatever case.' }),
    },
    resolve: (_root, args, { actor, services }) => services.participants.find(actor, args),
  }),
  participants: t.field({
    type: ParticipantConnection,
    nullable: true,
    description:
      'Those the viewer may see: the user all of its own; a participant itself, those it shares a thread with, and the listed.',
    args: { kind: t.arg({ type: ParticipantKindEnum, description: 'Only of this kind.' }), ...pageArgs },
    resolve: (_root, { kind, ...page }, { actor, services }) =>
      services.participants.page(actor, { kind }, page),
  }),
}));

const ParticipantPayload = builder
  .objectRef<{ readonly participant: Participant }>('ParticipantPayload')
  .implement({
    description: 'The participant as it is now.',
    fields: (t) => ({
      participant: t.expose('participant', { type: ParticipantNode, description: 'Made or changed.' }),
    }),
  });

const CreateParticipantInput = builder.inputType('CreateParticipantInput', {
  description: 'A new participant of the caller’s user.',
  fields: (t) => ({
    kind: t.field({ type: ParticipantKindEnum, required: true, description: 'Human, agent or unit.' }),
    handle: t.string({
      required: true,
      description:
        'Unique for the user; `[a-z0-9][a-z0-9._-]*`, at most 128 characters, folded to lower case.',
    }),
    displayName: t.string({ description: 'At most 256 characters; the handle if absent.' }),
    concurrentThreads: t.boolean({ description: 'For agents and units; true if absent.' }),
    listed: t.boolean({ description: 'Whether strangers of the same user may find it; false if absent.' }),
    tools: t.field({ type: ['JSON'], description: 'JSON objects, each with a `type`; none if absent.' }),
    metaData: t.field({ type: 'JSON', description: 'A JSON object of at most 16 KiB.' }),
  }),
});

const UpdateParticipantInput = builder.inputType('UpdateParticipantInput', {
  description:
    'What to change. What is absent or null stays. A participant may change its own displayName only.',
  fields: (t) => ({
    participantId: t.id({ required: true, description: 'Whom to change.' }),
    displayName: t.string({ description: 'At most 256 characters.' }),
    concurrentThreads: t.boolean({ description: 'For agents and units.' }),
    listed: t.boolean({ description: 'Whether strangers of the same user may find it.' }),
    tools: t.field({ type: ['JSON'], description: 'JSON objects, each with a `type`; replaces all.' }),
    metaData: t.field({ type: 'JSON', description: 'A JSON object of at most 16 KiB; replaces all.' }),
  }),
});

const CloneParticipantInput = builder.inputType('CloneParticipantInput', {
  description: 'A new agent or unit after the pattern of another.',
  fields: (t) => ({
    participantId: t.id({ required: true, description: 'The pattern: an agent or unit.' }),
    handle: t.string({ required: true, description: 'The new one’s handle, as in CreateParticipantInput.' }),
    displayName: t.string({ description: 'At most 256 characters; the pattern’s if absent.' }),
  }),
});

builder.mutationFields((t) => ({
  createParticipant: t.field({
    type: ParticipantPayload,
    description:
      'API key only. Errors: CONFLICT with `existingId` where the handle is taken, BAD_USER_INPUT, PAYLOAD_TOO_LARGE.',
    args: {
      input: t.arg({ type: CreateParticipantInput, required: true, description: 'The new participant.' }),
    },
    resolve: async (_root, { input }, { actor, services }) => ({
      participant: await services.participants.create(actor, input),
    }),
  }),
  updateParticipant: t.field({
    type: ParticipantPayload,
    description:
      'API key; a participant its own displayName. Errors: NOT_FOUND, FORBIDDEN, BAD_USER_INPUT, PAYLOAD_TOO_LARGE.',
    args: { input: t.arg({ type: UpdateParticipantInput, required: true, description: 'The changes.' }) },
    resolve: async (_root, { input }, { actor, services }) => ({
      participant: await services.participants.update(actor, input),
    }),
  }),
  cloneParticipant: t.field({
    type: ParticipantPayload,
    description:
      'API key only. A new agent or unit with the other’s properties and a snapshot of its memory, in no thread. Errors: as createParticipant, NOT_FOUND.',
    args: {
      input: t.arg({ type: CloneParticipantInput, required: true, description: 'Pattern and handle.' }),
    },
    resolve: async (_root, { input }, { actor, services }) => ({
      participant: await services.participants.clone(actor, input),
    }),
  }),
}));
