import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { Services } from '../../services.ts';
import type { Json } from '../../shared/canonical.ts';
import { DomainError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import { failed, type ToolOutput } from '../answers.ts';
import { parametersOf } from '../catalogue.ts';
import { executeAt } from '../execution.ts';
import { isPlain, type McpCaller, placeOf, toolsFor, workplaceOf } from './caller.ts';
import { ProtocolServer } from './protocolServer.ts';
import { CALL_ID } from './requests.ts';
import { listedResources, ownResourceOf, readResource, resourceTemplates } from './resources.ts';
import { executeInHand } from './taking.ts';
import { instructionsFor, nothingInHand, whatThereIs } from './words.ts';

export interface ServerDeps {
  readonly services: Services;
  readonly log: Logger;
  readonly caller: McpCaller;
  readonly requestId: string;
  /** Whether the client asks who this is, and is told how to work here. */
  readonly isGreeting: boolean;
  /** Keeps what the client wants to hear of; null where the protocol's own streams do. */
  readonly subscriptions: {
    subscribe(uri: string): Promise<void>;
    unsubscribe(uri: string): Promise<void>;
  } | null;
}

const INFO = { name: 'threadpad', title: 'Threadpad', version: '0.1.0' } as const;

/**
 * An MCP server for one request of one caller: nothing is kept in it, so any process may answer the next. Source: Model
 * Context Protocol 2025-11-25 and 2026-07-28.
 */
export const createMcpServer = async (deps: ServerDeps): Promise<Server> => {
  const { services, log, caller, requestId, subscriptions, isGreeting } = deps;
  const options = {
    capabilities: { tools: {}, resources: { subscribe: true, listChanged: isPlain(caller) } },
    ...(isGreeting ? { instructions: instructionsFor(await toolsFor(services, caller), caller) } : {}),
  };
  const server = new ProtocolServer(INFO, options, log, requestId);

  const call = async (name: string, given: Json, { mcpReq }: ServerContext): Promise<ToolOutput> => {
    const tools = await toolsFor(services, caller);
    const isOffered = tools.some((tool) => tool.name === name);
    if (!isOffered) return failed(`There is no tool "${name}" for you. ${whatThereIs(tools)}`);
    const meta = mcpReq._meta?.[CALL_ID];
    const callId = typeof meta === 'string' ? meta : null;
    const shownId = callId ?? String(mcpReq.id);
    const request = { name, arguments: given, callId, shownId, signal: mcpReq.signal };
    if (isPlain(caller)) return executeInHand(services, caller, tools, request);
    return executeAt(services, workplaceOf(caller), request);
  };

  server.setRequestHandler('tools/list', async () => ({
    tools: (await toolsFor(services, caller)).map((tool) => ({
      name: tool.name,
      description: tool.description,
      inputSchema: parametersOf(tool),
      annotations: { readOnlyHint: tool.isReadOnly, openWorldHint: false },
    })),
  }));

  server.setRequestHandler('tools/call', async ({ params }, context): Promise<CallToolResult> => {
    const given = (params.arguments ?? {}) as Json;
    const { output, isError } = await call(params.name, given, context).catch(toldToModel);
    return { content: [{ type: 'text', text: output }], isError };
  });

  server.setRequestHandler('resources/list', async () => ({
    resources: listedResources(caller.actor, (await placeOf(services, caller)) !== null),
  }));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: resourceTemplates(caller.actor),
  }));

  server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
    const at = await placeOf(services, caller);
    if (at === null) {
      const words = nothingInHand(await toolsFor(services, caller));
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, words);
    }
    return { contents: [await readResource(services, services.createLoaders(caller.actor), at, uri)] };
  });

  if (subscriptions !== null) {
    server.setRequestHandler('resources/subscribe', async ({ params: { uri } }) => {
      const asked = ownResourceOf(caller.actor, uri);
      if (asked === null || asked.cursor !== undefined)
        throw new ProtocolError(
          ProtocolErrorCode.InvalidParams,
          'There is no such resource to subscribe to.',
        );
      await subscriptions.subscribe(uri);
      return {};
    });
    server.setRequestHandler('resources/unsubscribe', async ({ params: { uri } }) => {
      await subscriptions.unsubscribe(uri);
      return {};
    });
  }
  return server;
};

/** What a tool's runtime would be told: here the model is all there is. */
const toldToModel = (error: unknown): ToolOutput => {
  if (error instanceof DomainError && error.code !== 'INTERNAL') return failed(error.message);
  throw error;
};
