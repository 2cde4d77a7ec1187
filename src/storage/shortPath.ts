import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The kernel takes about 104 (macOS) to 108 bytes for the path of a Unix socket. */
const MAX_BYTES = 100;

/**
 * A name for `folder` that leaves room for a socket's name behind it: itself, or a symbolic link in the temporary
 * folder. The socket lies in `folder` either way, so that processes with different links meet at the same one.
 */
export const shortPath = async (
  folder: string,
  longestName: string,
): Promise<{ path: string; dispose: () => Promise<void> }> => {
  if (Buffer.byteLength(join(folder, longestName)) <= MAX_BYTES)
    return { path: folder, dispose: () => Promise.resolve() };
  const parent = await mkdtemp(join(tmpdir(), 'tp-'));
  const path = join(parent, 'l');
  await symlink(folder, path, 'dir');
  return { path, dispose: () => rm(parent, { recursive: true, force: true }) };
};
