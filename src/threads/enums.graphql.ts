import { builder } from '../graphql/builder.ts';

export const ParticipantStateEnum = builder.enumType('ParticipantState', {
  description: 'Whether a member takes part now.',
  values: {
    ACTIVE: { description: 'Takes part: sees what happens, and may post.' },
    REMOVED: { description: 'Sees what happened up to its removal, and nothing after it.' },
  } as const,
});
