import { readFile } from 'node:fs/promises';
import { installations, runAll } from '../src/storage/systemPackages.ts';
import { findBrowser } from '../test/support/browser.ts';

// A browser for the tests that need one. Without one those are left out, and one line says so.

/** Ubuntu's package of that name is a pointer to another store, which containers do not have. */
const hasPackage = async (): Promise<boolean> => {
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '');
  return /^ID(_LIKE)?=.*debian/m.test(release) && !/^ID(_LIKE)?=.*ubuntu/m.test(release);
};

const install = async (): Promise<string | undefined> => {
  if (!(await hasPackage())) return undefined;
  for (const commands of await installations({ debian: 'chromium' })) {
    console.error(
      `A browser is missing; installing it: ${commands.map((command) => command.join(' ')).join(' && ')}`,
    );
    if (await runAll(commands)) return findBrowser();
  }
  return undefined;
};

if (((await findBrowser()) ?? (await install())) === undefined)
  console.error('No Chromium or Chrome here: the tests of GraphiQL in a browser are left out.');
