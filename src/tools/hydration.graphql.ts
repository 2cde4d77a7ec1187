import { builder } from '../graphql/builder.ts';
import { hydrate } from './hydration.ts';

builder.queryFields((t) => ({
  hydrateTools: t.field({
    type: ['JSON'],
    description:
      'Capabilities as concrete functions for a model: `{"type": "scratchpad"}`, `{"type": "memory"}`, `{"type": "thread"}` become definitions `{type: "function", function: {name, description, parameters}}`, first and each name once; everything else follows unchanged. Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE.',
    args: {
      tools: t.arg({
        type: ['JSON'],
        required: true,
        description: 'What a participant stores in `tools`, or any other list of tools.',
      }),
    },
    resolve: (_root, { tools }, { actor }) => hydrate(actor, tools),
  }),
}));
