import { builder } from '../graphql/builder.ts';

const ParticipantKindEnum = builder.enumType('ParticipantKind', {
  description: 'What a participant is.',
  values: {
    HUMAN: { description: 'A person.' },
    AGENT: { description: 'A program that acts by itself.' },
    UNIT: { description: 'A group addressed as one.' },
  } as const,
});

export const ParticipantNode = builder.prismaObject('Participant', {
  description: 'Somebody who can be in a thread: a person, an agent, or a unit.',
  interfaces: [builder.nodeInterfaceRef()],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Globally unique; refetchable with Query.node.' }),
    kind: t.expose('kind', { type: ParticipantKindEnum, description: 'What it is.' }),
    handle: t.exposeString('handle', { description: 'Unique within the user; lower case.' }),
    displayName: t.exposeString('displayName', { description: 'What people read.' }),
    concurrentThreads: t.exposeBoolean('concurrentThreads', {
      description: 'Whether it works on several threads at once. For agents and units.',
    }),
    listed: t.exposeBoolean('listed', {
      description: 'Whether participants who share no thread with it may find it.',
    }),
    tools: t.field({
      type: ['JSON'],
      description: 'Its capabilities, as given.',
      resolve: ({ tools }) => (Array.isArray(tools) ? tools : []),
    }),
    metaData: t.field({ type: 'JSON', description: 'The user’s own.', resolve: ({ metaData }) => metaData }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made.' }),
  }),
});
