import { compareById } from './byId.ts';
import type { Ask } from './callers.ts';
import { compareLists } from './lists.ts';
import { compareHistory } from './pages.ts';
import type { Pairs } from './pairs.ts';
import type { Viewer } from './rules.ts';
import { compareThreads } from './thread.ts';
import type { World } from './world.ts';

/** Everything that is read and does not stream, for one viewer. */
export const compareReads = async (
  world: World,
  ask: Ask,
  viewer: Viewer,
  pairs: Pairs,
  round: number,
): Promise<void> => {
  await compareThreads(world, ask, viewer, pairs);
  await compareHistory(world, ask, viewer, pairs, round);
  await compareById(world, ask, viewer, pairs, round);
  await compareLists(world, ask, viewer, pairs);
};
