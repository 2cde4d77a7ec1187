import { requireTenant } from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import type { Json } from '../shared/canonical.ts';
import { LIMITS, requireJson } from '../shared/input.ts';
import { type Capability, capabilityOf, parametersOf, TOOLS, type Tool } from './catalogue.ts';

/** A function as models of many makers take it. Source: OpenAI's function calling. */
const functionOf = (tool: Tool): Json => ({
  type: 'function',
  function: {
    name: tool.name,
    description: tool.description,
    parameters: parametersOf(tool) as Json,
  },
});

/** The capabilities among what a participant stores, each once, in their order. */
export const capabilitiesIn = (tools: readonly unknown[]): ReadonlySet<Capability> =>
  new Set(tools.map(capabilityIn).filter((capability) => capability !== undefined));

/** The tools of these capabilities, each once, in the capabilities' order. */
export const toolsOf = (capabilities: Iterable<Capability>): (typeof TOOLS)[number][] =>
  [...capabilities].flatMap((capability) => TOOLS.filter((tool) => tool.capability === capability));

/**
 * Capabilities as concrete functions, first and each name once; whatever else is in the list follows, unchanged and in
 * its order. A function that bears the name of one of them is left out: a model takes no name twice.
 * For everybody but the administrator. Errors: FORBIDDEN, BAD_USER_INPUT, PAYLOAD_TOO_LARGE.
 */
export const hydrate = (actor: Actor, tools: readonly Json[]): Json[] => {
  requireTenant(actor);
  requireJson(tools, 'tools', LIMITS.tools);
  const platform = toolsOf(capabilitiesIn(tools));
  const taken = new Set<string>(platform.map(({ name }) => name));
  const others = tools.filter(
    (entry) => capabilityIn(entry) === undefined && !taken.has(functionName(entry) ?? ''),
  );
  return [...platform.map(functionOf), ...others];
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What carries a `function` is a definition already. */
const capabilityIn = (entry: unknown): Capability | undefined =>
  isObject(entry) && !('function' in entry) ? capabilityOf(entry.type) : undefined;

const functionName = (entry: Json): string | undefined => {
  if (!isObject(entry) || !isObject(entry.function)) return undefined;
  return typeof entry.function.name === 'string' ? entry.function.name : undefined;
};
