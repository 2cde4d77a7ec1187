import type { z } from 'zod';
import type { Actor } from '../auth/actor.ts';
import type { Services } from '../services.ts';
import { inputHash, type Json, sha256 } from '../shared/canonical.ts';
import { DomainError } from '../shared/errors.ts';
import { LIMITS, requireCharacters, requireJson } from '../shared/input.ts';
import { activityOf } from './activity.ts';
import { checkedArguments, failed, failureOf, type ToolOutput } from './answers.ts';
import type { Begun, ToolCall } from './calls.ts';
import { findTool, TOOLS, type ToolName } from './catalogue.ts';
import { acknowledgeMessage, nextMessage, peekPending } from './inboxTools.ts';
import { recallMemory, storeMemory } from './memoryTools.ts';
import { readMessages, retractMessage, sendMessage } from './messageTools.ts';
import { type Operating, operatingWith, type WantedOperating } from './operating.ts';
import { appendScratchpad, readScratchpad, updateScratchpad, type Workbench } from './padTools.ts';

export interface ExecuteInput extends WantedOperating {
  readonly name: string;
  /** An object, or its JSON as a text. */
  readonly arguments: Json;
  readonly toolCallId?: string | null | undefined;
}

export interface Executed extends ToolOutput {
  readonly conversationThreadId: string;
  readonly toolCallId: string | null;
}

type ArgumentsOf = {
  readonly [Definition in (typeof TOOLS)[number] as Definition['name']]: z.output<Definition['parameters']>;
};

const HANDLERS: {
  readonly [Name in ToolName]: (bench: Workbench, given: ArgumentsOf[Name]) => Promise<ToolOutput>;
} = {
  read_scratchpad: readScratchpad,
  update_scratchpad: updateScratchpad,
  append_scratchpad: appendScratchpad,
  send_message: sendMessage,
  read_messages: readMessages,
  message_retract: retractMessage,
  store: storeMemory,
  recall: recallMemory,
  peek_pending: peekPending,
  next_message: nextMessage,
  acknowledge_message: acknowledgeMessage,
};

const run = async (bench: Workbench, name: string, given: Json): Promise<ToolOutput> => {
  const tool = findTool(name);
  if (tool === undefined)
    return failed(`There is no tool "${name}". There are: ${TOOLS.map((one) => one.name).join(', ')}.`);
  try {
    const handler = HANDLERS[tool.name] as (bench: Workbench, given: unknown) => Promise<ToolOutput>;
    return await handler(bench, checkedArguments<z.ZodObject>(tool, given));
  } catch (error) {
    const failure = failureOf(error);
    if (failure === null) throw error;
    return failure;
  }
};

/** A legal megabyte of text can be more as JSON. */
const ARGUMENTS_BYTES = 8 * 1024 * 1024;

/** A tool call as it came in. */
export interface Request {
  readonly name: string;
  readonly arguments: Json;
  readonly callId: string | null;
  readonly shownId: string | null;
  readonly signal: AbortSignal;
}

/** Errors: PAYLOAD_TOO_LARGE, BAD_USER_INPUT. */
export const callOf = ({ name, arguments: given, callId, shownId }: Request): ToolCall => {
  requireJson(given, 'arguments', ARGUMENTS_BYTES);
  return { name, callId, shownId, hash: inputHash({ name, arguments: given }) };
};

/**
 * Runs one tool for whoever works there. What the model did wrong is its answer, flagged; the runtime's own mistakes, and
 * a store that is away, are thrown. Errors: NOT_FOUND, FORBIDDEN, BAD_USER_INPUT, IDEMPOTENCY_KEY_REUSED, INVALID_TRANSITION
 * (the run is over), UNAVAILABLE (with the same toolCallId it may be tried again).
 */
export const executeAt = async (services: Services, at: Operating, request: Request): Promise<ToolOutput> => {
  const call = callOf(request);
  const begun = await services.toolCalls.begin(at, call).catch(overBudget);
  return 'output' in begun ? begun : carryOut(services, at, begun, call, request);
};

/** What has begun. Errors: as `executeAt`. */
export const carryOut = async (
  services: Services,
  at: Operating,
  begun: Begun,
  call: ToolCall,
  { arguments: given, signal }: Request,
): Promise<ToolOutput> => {
  const { name, callId } = call;
  const isKept = at.run !== null || callId !== null;
  const tell = (done: ToolOutput | null): void => {
    const told = activityOf(at, name, given, done);
    if (told !== null) services.runs.publishActivity(told.runId, told.activity);
  };
  if (at.run !== null) services.runNotices.changed(at.run.id);
  tell(null);
  const bench: Workbench = {
    services,
    loaders: services.createLoaders(at.actor),
    at,
    begun,
    idempotencyKey:
      callId === null ? undefined : `tool-${sha256(`${at.run?.id ?? ''} ${callId}`).slice(0, 40)}`,
    signal,
  };
  const result = await run(bench, name, given).catch((error: unknown) => {
    // The caller learns why; whoever follows the run, that it is not under way any more.
    tell(failed(error instanceof DomainError ? error.message : 'It could not be done.'));
    throw error;
  });
  tell(result);
  return isKept
    ? services.toolCalls.finish(at, call, result, await shownIn(services, at, name, result))
    : result;
};

/** That its calls are used up is the model's to know: it has to come to an end. */
const overBudget = (error: unknown): ToolOutput => {
  if (error instanceof DomainError && error.code === 'LOOP_LIMIT') return failed(error.message);
  throw error;
};

/**
 * What of a result stands in the conversation, whose members may see less than the worker does: what a tool showed to it
 * stands only where nobody else reads. Outside of a run the conversation is the scratchpad's own thread, in which nothing
 * of a scratchpad is ever written.
 */
const shownIn = async (
  services: Services,
  at: Operating,
  name: string,
  { output, isError }: ToolOutput,
): Promise<string | null> => {
  const tool = findTool(name);
  if (at.run === null && tool?.capability === 'scratchpad') return null;
  const isForAll = isError || tool?.isForWorkerAlone !== true;
  return isForAll || (await services.toolCalls.isPrivate(at)) ? output : NOT_SHOWN;
};

const NOT_SHOWN = '(not shown: it is the worker’s alone)';

/** As `executeAt`, where the credential and the runtime say. */
export const execute = async (
  services: Services,
  actor: Actor,
  input: ExecuteInput,
  signal: AbortSignal,
): Promise<Executed> => {
  const at = await operatingWith(services, actor, input);
  const callId = input.toolCallId ?? null;
  if (callId !== null) requireCharacters(callId, 'toolCallId', LIMITS.idempotencyKey);
  requireCharacters(input.name, 'name', LIMITS.kind);
  const answer = await executeAt(services, at, {
    name: input.name,
    arguments: input.arguments,
    callId,
    shownId: callId,
    signal,
  });
  return { ...answer, conversationThreadId: at.threadId, toolCallId: callId };
};
