// A worker whose runtime calls the tools over GraphQL.
import { ask } from './api.mjs';
import { work } from './worker.mjs';

const CALL = `mutation Call($input: ExecuteToolInput!) { executeTool(input: $input) { output isError } }`;

let count = 0;
await work(async (name, given) => {
  count += 1;
  // Tried again with the same id it would act once.
  const input = { name, arguments: given, toolCallId: `call-${count}` };
  return (await ask(CALL, { input })).executeTool;
});
