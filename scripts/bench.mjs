import { build, generate, install, requireNode } from './setup.mjs';
import { run } from './support.mjs';

// npm run bench: what is measured is the build.
await run(async () => {
  requireNode();
  await install();
  await generate();
  await build();
});
const { register } = await import('tsx/esm/api');
register();
await import('../bench/main.ts');
