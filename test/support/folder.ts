import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder that is removed with the test. */
export const temporaryFolder = async (): Promise<{ path: string } & AsyncDisposable> => {
  const path = await mkdtemp(join(tmpdir(), 'tp-test-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
};
