import type { Services } from '../../services.ts';
import { checkedArguments, failed, failureOf, type ToolOutput } from '../answers.ts';
import type { Begun } from '../calls.ts';
import { findTool, type Tool } from '../catalogue.ts';
import { callOf, carryOut, type Request } from '../execution.ts';
import { type Taken, takeNext } from '../inboxTools.ts';
import { operatingIn } from '../operating.ts';
import type { McpCaller } from './caller.ts';
import { nothingInHand } from './words.ts';

/**
 * A call of a caller that has no thread of its own: it acts in that of the message in hand, a repeated one in that of its
 * first attempt. Errors: as `executeAt`.
 */
export const executeInHand = async (
  services: Services,
  caller: McpCaller,
  tools: readonly Tool[],
  request: Request,
): Promise<ToolOutput> => {
  const { actor, participantId } = caller;
  const call = callOf(request);
  const isTaking = request.name === 'next_message';
  const at = { actor, ownerId: actor.userId, participantId, threadId: null, run: null };
  const begun = await services.toolCalls.begin(at, call, isTaking);
  if ('output' in begun) return begun;
  if (begun.threadId !== null)
    return carryOut(services, operatingIn(actor, { threadId: begun.threadId }), begun, call, request);
  if (!isTaking) return failed(nothingInHand(tools));
  const { threadId, output, isError } = await takeAnywhere(services, caller, begun, request);
  return services.toolCalls.finishTaking(at, call, { output, isError }, threadId);
};

/** The oldest message that waits for it, wherever that is. */
const takeAnywhere = async (
  services: Services,
  { actor, participantId }: McpCaller,
  begun: Begun,
  { arguments: given, callId, signal }: Request,
): Promise<Taken> => {
  const tool = findTool('next_message');
  if (tool?.name !== 'next_message') throw new Error('next_message is not in the catalogue.');
  try {
    const asked = checkedArguments(tool, given);
    const at = { actor, as: undefined, ownerId: actor.userId, participantId, threadId: null };
    const deliveryId = callId === null ? null : begun.deliveryId;
    return await takeNext(
      { services, loaders: services.createLoaders(actor), at, signal, deliveryId },
      asked,
    );
  } catch (error) {
    const failure = failureOf(error);
    if (failure === null) throw error;
    return { ...failure, threadId: null };
  }
};
