import { build, generate, install, requireNode } from './setup.mjs';
import { run } from './support.mjs';

// npm run example:NAME: whatever is missing or out of date is made, then scripts/example-NAME.ts runs in this very process. With
// a THREADPAD_TOKEN it is examples/agent.mjs alone, on the server that the token is of.
await run(async () => {
  requireNode();
  await install();
  await generate();
  await build();
});
const name = process.argv[2];
if (name === 'agent' && process.env.THREADPAD_TOKEN) await import('../examples/agent.mjs');
else {
  const { register } = await import('tsx/esm/api');
  register();
  await import(`./example-${name}.ts`);
}
