import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ConcreteRequest } from 'relay-runtime';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Runs relay-compiler on the documents of this folder and `schema.graphql`. It is strict about Relay's conventions. */
export const compile = async (): Promise<(name: string) => Promise<ConcreteRequest>> => {
  await mkdir(here('./__generated__'), { recursive: true });
  const compiler = createRequire(import.meta.url).resolve('relay-compiler/cli.js');
  await promisify(execFile)(process.execPath, [compiler, 'relay.config.json'], {
    cwd: here('.'),
  });
  return async (name) => {
    const path = here(`./__generated__/${name}.graphql.ts`);
    const artifact = (await import(path)) as { default: ConcreteRequest };
    return artifact.default;
  };
};
