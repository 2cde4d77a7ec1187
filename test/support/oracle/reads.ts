import { compareById } from './byId.ts';
import type { Ask } from './callers.ts';
import { compareLists } from './lists.ts';
import { compareHistory } from './pages.ts';
import { lacks, type Pairs } from './pairs.ts';
import type { Viewer } from './rules.ts';
import { compareThreads } from './thread.ts';
import type { World } from './world.ts';

/** Everything that is read and does not stream, for one viewer. */
export const compareReads = async (
  world: World,
  ask: Ask,
  viewer: Viewer,
  { pairs, wanted, round }: { readonly pairs: Pairs; readonly wanted: number; readonly round: number },
): Promise<void> => {
  if (lacks(pairs, 'thread', wanted)) await compareThreads(world, ask, viewer, pairs);
  if (lacks(pairs, 'history', wanted)) await compareHistory(world, ask, viewer, pairs, round);
  if (lacks(pairs, 'by id', wanted)) await compareById(world, ask, viewer, pairs, round);
  if (lacks(pairs, 'threads', wanted)) await compareLists(world, ask, viewer, pairs);
};
