import type { Actor } from '../../src/auth/actor.ts';
import { seedTenant } from '../support/identity.ts';
import type { Product } from '../support/product.ts';

/** A human with a thread of thirty messages and one of none, and the agent on the other side. */
export const seedConversation = async ({ api }: Product) => {
  const { services } = api;
  const tenant = await seedTenant(services);
  const { owner, agent, human } = tenant;
  const token = await services.credentials.createParticipantToken(owner, { participantId: human.id });
  const other = await services.participants.create(owner, { kind: 'HUMAN', handle: 'other' });
  const long = await services.threads.open(owner, { participantIds: [human.id, agent.id] });
  const quiet = await services.threads.open(owner, { participantIds: [human.id, other.id] });
  const agentActor: Actor = { ...owner, actAs: agent.id } as Actor;
  const say = async (content: string, threadId = long.threadId) => {
    await services.timeline.post(agentActor, { threadId, content });
  };
  for (let number = 1; number <= 30; number++) await say(`Message ${number}`);
  /** Ids of everything that stands in the long thread, in order. */
  const events = async (): Promise<string[]> => {
    const rows = await services.database.prisma.event.findMany({
      where: { threadId: long.threadId },
      orderBy: { seq: 'asc' },
      select: { id: true },
    });
    return rows.map(({ id }) => id);
  };
  return { ...tenant, token: token.secret, threadId: long.threadId, quietId: quiet.threadId, say, events };
};
