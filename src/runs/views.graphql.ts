import { requireTenant } from '../auth/acting.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import type { RunView } from '../graphql/refs.ts';
import { isId } from '../shared/ids.ts';
import type { Run } from './rows.ts';
import { seesRun } from './visibility.ts';

export const runView = (run: Run, viewerId: string | null): RunView => ({
  __typename: 'Run',
  run,
  viewerId,
});

/** The run with this id if the viewer may see it: what every field that names a run answers with. */
export const visibleRun = async (
  context: GraphQLContext,
  id: string | null,
  viewerId: string | null,
): Promise<RunView | null> => {
  if (id === null || !isId('Run', id)) return null;
  const run = await context.loaders.run.load(id);
  return run !== null && seesRun(requireTenant(context.actor), run, viewerId) ? runView(run, viewerId) : null;
};
