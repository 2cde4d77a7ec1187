import { buildPages, generate, install, requireNode } from './setup.mjs';
import { run } from './support.mjs';

// npm run replay: whatever is missing or out of date is made, then the replay runs in this very process.
await run(async () => {
  requireNode();
  await install();
  await generate();
  await buildPages();
});
const { register } = await import('tsx/esm/api');
register();
await import('./replay.ts');
