import { builder } from './builder.ts';

export const DeletePayload = builder.objectRef<{ readonly deletedId: string }>('DeletePayload').implement({
  description: 'What is gone: nothing of it can be seen from now on.',
  fields: (t) => ({ deletedId: t.exposeID('deletedId', { description: 'The id it had.' }) }),
});
