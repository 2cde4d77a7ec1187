import type { Actor } from '../auth/actor.ts';
import { requireViewCharacters, viewAsk, viewOf } from '../scratchpads/formatted.ts';
import type { Services } from '../services.ts';
import { readPage, requireActive, requireLook } from './pads.ts';

/** What a model sees of a thread's scratchpad, which is made if it is missing. */
export const formattedViewOf = async (
  services: Services,
  actor: Actor,
  threadId: string,
): Promise<string> => {
  const { pad } = await services.scratchpads.ensure(actor, { threadId });
  const look = await requireLook(services, actor, pad);
  const characters = requireViewCharacters(null);
  const { page, ...ask } = viewAsk(characters);
  const answer = await readPage(services, { pad, look }, page, ask);
  requireActive(answer.seen);
  return viewOf(answer, characters);
};
