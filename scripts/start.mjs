import module from 'node:module';
import { pathToFileURL } from 'node:url';
import { build, generate, install, requireNode } from './setup.mjs';
import { ROOT, run } from './support.mjs';

// npm start: whatever is missing or out of date is made, then the server runs in this very process: it gets the
// signals that this one gets, and its exit code is ours.
await run(async () => {
  requireNode();
  await install();
  await generate();
  await build();
});
// What Node compiled once it need not compile again (where it can: from 22 on).
module.enableCompileCache?.();
await import(pathToFileURL(`${ROOT}/dist/main.js`).href);
