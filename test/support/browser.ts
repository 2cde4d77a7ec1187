import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'microsoft-edge'];
const FOLDERS = ['/usr/bin', '/usr/local/bin', '/snap/bin', '/opt/google/chrome', '/opt/homebrew/bin'];
const APPLICATIONS = ['Google Chrome', 'Chromium', 'Microsoft Edge'];

/** A Chromium of the machine's own that answers when it is asked for its version; undefined where there is none. */
export const findBrowser = async (): Promise<string | undefined> => {
  for (const path of process.platform === 'darwin' ? [...inApplications(), ...inFolders()] : inFolders())
    if (await answers(path)) return path;
  return undefined;
};

const inFolders = (): readonly string[] => {
  const onPath = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  const folders = [...new Set([...FOLDERS, ...onPath])];
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
};

const inApplications = (): readonly string[] =>
  ['/Applications', join(homedir(), 'Applications')].flatMap((folder) =>
    APPLICATIONS.map((name) => join(folder, `${name}.app`, 'Contents', 'MacOS', name)),
  );

/** Some packages bring a script of that name that only says where else to get the browser. */
const answers = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    execFile(path, ['--version'], { timeout: 20_000 }, (error) => resolve(error === null));
  });
