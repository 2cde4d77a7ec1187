import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, generate, generateDocuments, install, requireNode } from './setup.mjs';
import { node, readIfThere, run, say, tool } from './support.mjs';

// npm test: set-up, checks, all tests. The last line is "N passed, N failed"; a check that fails counts as one.

const CHECKS = [
  ['types', [tool('typescript', 'bin/tsc'), '--noEmit', '-p', '.']],
  ['types of the pages', [tool('typescript', 'bin/tsc'), '--noEmit', '-p', 'src/pages']],
  [
    'lint and format',
    [tool('@biomejs/biome', 'bin/biome'), 'check', '--error-on-warnings', '--diagnostic-level=warn', '.'],
  ],
  ['nothing unused', [tool('knip', 'bin/knip.js')]],
  ['migrations', ['--import', 'tsx', 'scripts/migration.ts', '--check']],
  ['schema.graphql', ['--import', 'tsx', 'scripts/schema.ts', '--check']],
];

/** All at once: most of them use one core. */
const check = async () => {
  let failed = 0;
  const checks = CHECKS.map(async ([name, args]) => ({ name, ...(await node(args, { quiet: true })) }));
  for (const { name, code, text } of await Promise.all(checks)) {
    say(code === 0 ? `ok      ${name}` : `FAILED  ${name}\n${text}`);
    if (code !== 0) failed += 1;
  }
  return failed;
};

/** Vitest's own counts; a run that fails without a failed test (a file that does not load, say) counts as one. */
const test = async (args) => {
  const folder = mkdtempSync(join(tmpdir(), 'tp-report-'));
  const file = join(folder, 'report.json');
  try {
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
    const { code } = await node([tool('vitest', 'vitest.mjs'), 'run', ...reporters, ...args], {
      output: 'all',
    });
    const report = JSON.parse(readIfThere(file) ?? '{}');
    const { numPassedTests: passed = 0, numFailedTests: failures = 0 } = report;
    return { passed, failed: Math.max(failures, code === 0 ? 0 : 1) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Only for these is a browser worth its time. */
const wantsBrowser = (args) => {
  const files = args.filter((arg) => !arg.startsWith('-'));
  return files.length === 0 || files.some((file) => /e2e|graphiql/.test(file));
};

await run(async () => {
  requireNode();
  await install();
  await generate();
  await generateDocuments();
  await build();
  const args = process.argv.slice(2);
  if (wantsBrowser(args)) await node(['--import', 'tsx', 'scripts/browser.ts']);
  const failedChecks = args.length > 0 ? 0 : await check();
  const { passed, failed } = await test(args);
  console.log(`${passed} passed, ${failed + failedChecks} failed`);
  process.exitCode = failed + failedChecks === 0 ? 0 : 1;
});
