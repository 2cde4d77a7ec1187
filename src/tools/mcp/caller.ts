import { ownParticipant, requireTenant } from '../../auth/acting.ts';
import type { ScratchpadAccess, TenantActor } from '../../auth/actor.ts';
import type { Session } from '../../auth/session.ts';
import type { Services } from '../../services.ts';
import { forbidden, notFound } from '../../shared/errors.ts';
import { isId } from '../../shared/ids.ts';
import type { Capability, TOOLS } from '../catalogue.ts';
import { messageInHand } from '../hand.ts';
import { capabilitiesIn, toolsOf } from '../hydration.ts';
import { type Operating, operatingIn } from '../operating.ts';

/** Who is at the other end, and where it works. */
export interface McpCaller {
  /** The credential’s life. */
  readonly session: Session;
  readonly actor: TenantActor;
  readonly participantId: string;
  /** Of the path, or the run’s; null on the plain path, where it is that of the message in hand. */
  readonly threadId: string | null;
}

/** Errors: FORBIDDEN, NOT_FOUND (the thread of the path, as one that never existed). */
export const requireCaller = async (
  services: Services,
  session: Session,
  threadId: string | null,
): Promise<McpCaller> => {
  const actor = requireTenant(session.actor);
  const participantId = ownParticipant(actor);
  if (participantId === null)
    throw forbidden('MCP is for participants: use the token of one, or name one in X-Act-As.');
  const ofRun = actor.kind === 'RUN_TOKEN' ? actor.conversationThreadId : null;
  if (threadId !== null) await requireThread(services, actor, threadId, participantId);
  return { session, actor, participantId, threadId: threadId ?? ofRun };
};

const requireThread = async (
  services: Services,
  actor: TenantActor,
  threadId: string,
  viewerId: string,
): Promise<void> => {
  const isElsewhere = actor.kind === 'RUN_TOKEN' && actor.conversationThreadId !== threadId;
  const look =
    isElsewhere || !isId('Thread', threadId)
      ? null
      : await services.createLoaders(actor).look.load({ threadId, viewerId });
  if (look === null) throw notFound('Thread');
};

/** Where calls act that no message in hand says it of. */
export const workplaceOf = ({ actor, threadId }: McpCaller): Operating => operatingIn(actor, { threadId });

/** Where a call acts; null where no message is in hand that would say. */
export const placeOf = async (services: Services, caller: McpCaller): Promise<Operating | null> => {
  if (!isPlain(caller)) return workplaceOf(caller);
  const { actor, participantId } = caller;
  const hand = await messageInHand(services, { actor, participantId });
  return hand === null ? null : operatingIn(actor, { threadId: hand.threadId });
};

/**
 * Where calls act, and each time that it is another place: on the plain path that of the message in hand. Until `over`.
 */
export async function* placesOf(
  services: Services,
  caller: McpCaller,
  over: AbortSignal,
): AsyncGenerator<Operating | null> {
  const { actor, participantId } = caller;
  let wake = (): void => undefined;
  const ended = (): void => wake();
  over.addEventListener('abort', ended, { once: true });
  const news: (string | null)[] = [];
  const leave = isPlain(caller)
    ? services.hands.watch({ ownerId: actor.userId, participantId }, (threadId) => {
        news.splice(0, 1, threadId);
        wake();
      })
    : () => undefined;
  try {
    if (!isPlain(caller)) yield await placeOf(services, caller);
    while (!over.aborted) {
      const [threadId] = news.splice(0);
      if (threadId !== undefined) yield threadId === null ? null : operatingIn(actor, { threadId });
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    leave();
    over.removeEventListener('abort', ended);
  }
}

/** Whether what is in hand says where calls act. */
export const isPlain = ({ threadId }: McpCaller): boolean => threadId === null;

/** A run may be without one, or its scratchpad be gone; a thread has one, or is given it. */
export const hasScratchpad = (actor: TenantActor): boolean =>
  actor.kind !== 'RUN_TOKEN' || actor.scratchpadId !== null;

/** Each may do what those before it may. */
const ACCESSES: readonly ScratchpadAccess[] = ['READ', 'APPEND', 'WRITE'];

/** A run’s worker has what its work needs; a participant the capabilities that are stored with it. */
const capabilitiesOf = async (
  services: Services,
  { actor, participantId }: McpCaller,
): Promise<ReadonlySet<Capability>> => {
  if (actor.kind === 'RUN_TOKEN')
    return new Set<Capability>(
      hasScratchpad(actor) ? ['scratchpad', 'memory', 'thread'] : ['memory', 'thread'],
    );
  const participant = await services.participants.find(actor, { id: participantId });
  return capabilitiesIn(Array.isArray(participant?.tools) ? participant.tools : []);
};

export const toolsFor = async (
  services: Services,
  caller: McpCaller,
): Promise<readonly (typeof TOOLS)[number][]> => {
  const tools = toolsOf(await capabilitiesOf(services, caller));
  const { actor } = caller;
  if (actor.kind !== 'RUN_TOKEN') return tools;
  const allowed = ACCESSES.indexOf(actor.access);
  return tools.filter(({ access }) => ACCESSES.indexOf(access) <= allowed);
};
