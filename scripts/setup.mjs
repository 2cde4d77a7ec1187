import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  execute,
  fingerprint,
  node,
  once,
  ROOT,
  readIfThere,
  requireSuccess,
  SetupError,
  say,
  tool,
} from './support.mjs';

/** As package.json's `engines` has it. */
export const requireNode = () => {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if ((major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major >= 24) return;
  throw new SetupError(
    `Node 20 (from 20.19), 22 (from 22.12), or 24 and newer is needed; this is ${process.versions.node}.`,
  );
};

/** node_modules as the lock file says. A folder that is right already, however it came, is left alone. */
export const install = async () => {
  const stamp = () => fingerprint(['package-lock.json'], `${process.platform} ${process.arch}`);
  await once('install', {
    of: stamp,
    makes: ['node_modules/.package-lock.json'],
    work: async () => {
      if (isInstalled()) return;
      say('Installing packages …');
      requireSuccess(
        await npm(['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund']),
        'npm ci',
      );
    },
  });
};

const npm = (args) => {
  // The npm that runs this script, if one does: it need not be in PATH.
  const running = process.env.npm_execpath;
  return running?.endsWith('.js')
    ? node([running, ...args], { quiet: true })
    : execute('npm', args, { quiet: true });
};

/** Whether npm's own record of what it installed agrees with the lock file. */
const isInstalled = () => {
  const installed = packages(join(ROOT, 'node_modules', '.package-lock.json'));
  const wanted = packages(join(ROOT, 'package-lock.json'));
  if (installed === undefined || wanted === undefined) return false;
  return Object.entries(wanted).every(
    ([path, { version, optional }]) =>
      path === '' || (installed[path]?.version ?? (optional ? version : '')) === version,
  );
};

const packages = (file) => {
  try {
    return JSON.parse(readIfThere(file)).packages;
  } catch {
    return undefined;
  }
};

/** Prisma's client and Pothos' types. Neither needs the engine binary that Prisma would want to download. */
export const generate = async () => {
  const made = await once('generate', {
    of: () => fingerprint(['prisma/schema.prisma', 'package-lock.json']),
    makes: ['src/storage/generated/prisma', 'src/storage/generated/pothos.ts'],
    work: async () => {
      const env = process.env.PRISMA_SCHEMA_ENGINE_BINARY
        ? {}
        : { PRISMA_SCHEMA_ENGINE_BINARY: join(ROOT, 'package.json') };
      const quietly = { CHECKPOINT_DISABLE: '1', PRISMA_HIDE_UPDATE_MESSAGE: '1' };
      const result = await node([tool('prisma', 'build/index.js'), 'generate'], {
        quiet: true,
        env: { ...env, ...quietly },
      });
      requireSuccess(result, 'Generating the database client');
    },
  });
  if (made) say('Generated the database client.');
};

const PAGES = 'dist/pages';

/** dist: the server and the client, and the pages that the server serves. */
export const build = async () => {
  const built = await once('build', {
    of: () =>
      fingerprint([
        'src',
        'tsconfig.json',
        'tsconfig.build.json',
        'tsconfig.client.json',
        'package-lock.json',
      ]),
    makes: ['dist'],
    except: [PAGES],
    work: async () => {
      say('Building …');
      emptyDist();
      await compile('tsconfig.build.json');
      // The client is what others import: the one part with declarations.
      await compile('tsconfig.client.json');
    },
  });
  await buildPages();
  return built;
};

const compile = async (project) =>
  requireSuccess(await node([tool('typescript', 'bin/tsc'), '-p', project], { quiet: true }), 'The build');

/** What was removed from the sources must not be there to be imported. */
const emptyDist = () => {
  const dist = join(ROOT, 'dist');
  mkdirSync(dist, { recursive: true });
  for (const name of readdirSync(dist))
    if (`dist/${name}` !== PAGES) rmSync(join(dist, name), { recursive: true });
};

export const buildPages = async () => {
  await once('pages', {
    of: () => fingerprint(['src/pages', 'src/client', 'package-lock.json']),
    makes: [PAGES],
    work: async () => {
      say('Building GraphiQL …');
      const args = ['build', '--config', 'src/pages/graphiql/vite.config.ts'];
      requireSuccess(
        await node([tool('vite', 'bin/vite.js'), ...args], { quiet: true, env: { NODE_ENV: 'production' } }),
        'The build of GraphiQL',
      );
    },
  });
};

/** The types of the documents in tests and client. */
export const generateDocuments = async () => {
  await once('codegen', {
    of: () => fingerprint(['schema.graphql', 'codegen.ts', 'test', 'src/client', 'package-lock.json']),
    makes: ['test/support/gql'],
    work: async () => {
      const result = await node([tool('@graphql-codegen/cli', 'cjs/bin.js'), '--config', 'codegen.ts'], {
        quiet: true,
      });
      requireSuccess(result, 'Typing the GraphQL documents');
    },
  });
};
