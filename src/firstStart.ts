import type { Actor } from './auth/actor.ts';
import type { Services } from './services.ts';
import { log } from './shared/log.ts';

export interface Example {
  readonly apiKey: string;
  readonly threadId: string;
}

export const isWithoutUsers = async ({ database }: Services): Promise<boolean> =>
  (await database.prisma.user.findFirst({ select: { id: true } })) === null;

/**
 * On the first start with the embedded database: a user, a person, an agent and their thread, so that there is
 * something to look at. Null when there is any user already.
 */
export const makeExample = async (services: Services): Promise<Example | null> => {
  if (!(await isWithoutUsers(services))) return null;
  const { user, apiKey, credential } = await services.users.create({ kind: 'ADMIN' }, { name: 'Example' });
  const owner: Actor = { kind: 'API_KEY', userId: user.id, credentialId: credential.id, actAs: null };
  const ada = await services.participants.create(owner, { kind: 'HUMAN', handle: 'ada', displayName: 'Ada' });
  const scout = await services.participants.create(owner, {
    kind: 'AGENT',
    handle: 'scout',
    displayName: 'Scout',
  });
  const { threadId } = await services.threads.open(owner, { participantIds: [ada.id, scout.id] });
  await services.timeline.post(owner, { threadId, as: ada.id, content: 'Hello Scout, what is new?' });
  const { pad } = await services.scratchpads.create(owner, { threadId });
  // Whatever is wrong with Redis: the key above is shown once, and now.
  await services.scratchpadWriting
    .setContent(owner, { scratchpadId: pad.scratchpadId, as: ada.id, text: 'Plan: find newer figures.' })
    .catch((error: unknown) =>
      log.warn(
        { reason: error instanceof Error ? error.message : String(error) },
        'The example’s scratchpad stays empty.',
      ),
    );
  return { apiKey, threadId };
};
