import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// Plain Node, without any package: these run before node_modules exist.

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** A step of set-up could not be done; the message is one line for whoever started it. */
export class SetupError extends Error {}

/** Runs `main`; a failure is one readable line and a non-zero exit. Where it came from stands in the log. */
export const run = async (main) => {
  try {
    process.chdir(ROOT);
    await main();
  } catch (error) {
    say(error instanceof SetupError ? error.message : unforeseen(error));
    process.exit(1);
  }
};

const unforeseen = (error) => {
  const [line] = String(error?.message ?? error).split('\n');
  return `Set-up failed: ${line}${writeLog(error?.stack ?? String(error))}`;
};

/** Keeps `text`, and says where; a folder that cannot be written to must not hide what went wrong. */
const writeLog = (text) => {
  const file = join(ROOT, 'setup.log');
  try {
    writeFileSync(file, `${text}\n`);
    return ` (all of it in ${file})`;
  } catch {
    return '';
  }
};

export const say = (line) => console.error(line);

/** The file of an executable of node_modules: run with this very Node, whatever stands in PATH. */
export const tool = (name, file) => join(ROOT, 'node_modules', name, file);

/**
 * Runs a program to its end. `quiet` keeps its output back and gives it in the result; otherwise it goes to
 * standard error, or, with `output: 'all'`, where ours goes.
 */
export const execute = (program, args, { quiet = false, env = {}, output = 'stderr' } = {}) =>
  new Promise((resolve) => {
    const shown = output === 'all' ? 'inherit' : ['ignore', 2, 2];
    const child = spawn(program, args, {
      cwd: ROOT,
      // As npm would have it: tools find each other, also when a script was started without npm.
      env: {
        ...process.env,
        PATH: `${join(ROOT, 'node_modules', '.bin')}${delimiter}${process.env.PATH}`,
        ...env,
      },
      stdio: quiet ? ['ignore', 'pipe', 'pipe'] : shown,
    });
    let text = '';
    child.stdout?.on('data', (data) => {
      text += data;
    });
    child.stderr?.on('data', (data) => {
      text += data;
    });
    child.once('error', (error) => resolve({ code: 127, text: error.message }));
    child.once('close', (code, signal) => resolve({ code: code ?? (signal ? 1 : 0), text }));
  });

export const node = (args, options) => execute(process.execPath, args, options);

/** Fails with the step's name and the most telling line of its output; the whole of it goes to a file. */
export const requireSuccess = ({ code, text }, step) => {
  if (code === 0) return;
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const telling =
    lines.find((line) => /error|fail|cannot|not found|refused|ENO|EACC/i.test(line)) ?? lines.at(-1) ?? '';
  throw new SetupError(`${step} failed: ${telling.slice(0, 300)}${writeLog(text)}`);
};

/** The SHA-256 of files and folders, by their names and contents, and of `extra`. */
export const fingerprint = (paths, extra = '') => {
  const hash = createHash('sha256').update(extra);
  for (const path of paths) addTo(hash, path);
  return hash.digest('hex');
};

const addTo = (hash, path) => {
  const place = join(ROOT, path);
  const stats = statSync(place, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (stats.isDirectory()) {
    for (const name of readdirSync(place).sort()) addTo(hash, `${path}/${name}`);
    return;
  }
  hash.update(`${path}\0${stats.size}\0`).update(readFileSync(place));
};

/**
 * Does `work` unless it was done for the same fingerprint before and all that it made is still there, file by file.
 * `except`: what stands in there, but is made by another step.
 */
export const once = async (name, { of, makes, except = [], work }) => {
  const stamp = join(ROOT, 'node_modules', '.threadpad', name);
  const state = () => `${of()}\n${makes.map((path) => inventory(path, except)).join('\n')}`;
  if (readIfThere(stamp) === state()) return false;
  await work();
  for (const path of makes)
    if (statSync(join(ROOT, path), { throwIfNoEntry: false }) === undefined)
      throw new SetupError(`Set-up failed: the step "${name}" ended well but did not make ${path}.`);
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, state());
  return true;
};

/** The names and sizes of the files in a folder, or of one file: the same whether what is excepted is there or not. */
export const inventory = (path, except) => {
  const place = join(ROOT, path);
  const stats = statSync(place, { throwIfNoEntry: false });
  if (stats === undefined) return '';
  if (!stats.isDirectory()) return `${path} ${stats.size}`;
  const inside = readdirSync(place)
    .sort()
    .map((name) => `${path}/${name}`);
  return inside
    .filter((one) => !except.includes(one))
    .map((one) => inventory(one, except))
    .join('\n');
};

export const readIfThere = (path) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
};
