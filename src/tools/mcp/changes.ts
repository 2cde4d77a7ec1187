import type { ServerEvent, ServerEventBus } from '@modelcontextprotocol/server';
import { stopOn } from '../../live/stopping.ts';
import { type Notifying, notifyOf, notifyOfList } from './notifying.ts';
import { resourcesOf } from './resources.ts';

/**
 * What one caller's `subscriptions/listen` stream hears of: the resources as that caller sees them, followed only while
 * somebody listens. The SDK passes on what the client asked for.
 */
export const createChangeBus = (deps: Omit<Notifying, 'tell'>, over: AbortSignal): ServerEventBus => ({
  // Changes come from the logs alone.
  publish: () => undefined,
  subscribe: (listener: (event: ServerEvent) => void) => {
    const stop = new AbortController();
    const release = stopOn(stop, [over]);
    const tell = async (uri: string): Promise<void> => listener({ kind: 'resource_updated', uri });
    const listed = async (): Promise<void> => listener({ kind: 'resources_list_changed' });
    const following = [
      ...resourcesOf(deps.caller.actor).map(({ uri }) => notifyOf(uri, '', { ...deps, tell }, stop.signal)),
      notifyOfList({ ...deps, tell: listed }, stop.signal),
    ];
    for (const one of following)
      one.catch((error: unknown) => deps.log.error({ err: error }, 'A resource is not followed any more.'));
    return () => {
      release();
      stop.abort();
    };
  },
});
