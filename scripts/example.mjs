import { build, generate, install, requireNode } from './setup.mjs';
import { run } from './support.mjs';

// npm run example:NAME: whatever is missing or out of date is made, then scripts/example-NAME.ts runs in this very process.
await run(async () => {
  requireNode();
  await install();
  await generate();
  await build();
});
const { register } = await import('tsx/esm/api');
register();
await import(`./example-${process.argv[2]}.ts`);
