import { spawn } from 'node:child_process';
import { buildPages, generate, install, requireNode } from './setup.mjs';
import { ROOT, run } from './support.mjs';

// npm run dev: from the sources, again on each change.
await run(async () => {
  requireNode();
  await install();
  await generate();
  await buildPages();
});

const server = spawn(process.execPath, ['--watch', '--import', 'tsx', 'src/main.ts'], {
  cwd: ROOT,
  stdio: 'inherit',
  detached: true,
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => server.kill(signal));
server.once('exit', (code) => process.exit(code ?? 0));
