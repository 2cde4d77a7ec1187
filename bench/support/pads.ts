import type { Product } from './product.ts';
import type { Tenant } from './world.ts';

/** A thread's scratchpad, made by the owner. */
export const createPad = async ({ api }: Product, { apiKey }: Tenant, threadId: string): Promise<string> => {
  const { createScratchpad } = await api.ask<{ createScratchpad: { scratchpad: { id: string } } }>(
    apiKey,
    'mutation Create($input: CreateScratchpadInput!) { createScratchpad(input: $input) { scratchpad { id } } }',
    { input: { threadId } },
  );
  return createScratchpad.scratchpad.id;
};
