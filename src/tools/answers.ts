import type { z } from 'zod';
import type { Json } from '../shared/canonical.ts';
import { DomainError } from '../shared/errors.ts';
import { requireSafeJson } from '../shared/input.ts';
import { cut } from '../shared/text.ts';
import type { Tool } from './catalogue.ts';

/** What a model reads. A failure is a text that it can act on, flagged. */
export interface ToolOutput {
  readonly output: string;
  readonly isError: boolean;
}

export const said = (output: string): ToolOutput => ({ output, isError: false });
export const failed = (message: string): ToolOutput => ({
  output: `Error: ${cut(message, FAILURE)}`,
  isError: true,
});

/** UTF-16 units of a failure: it may quote what was given, however long that is. */
const FAILURE = 4_000;

/** Thrown inside a tool for what the model itself can put right. */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure';
}

/** Codes that are nobody's to answer but the runtime's: it presents another credential, or tries again. */
const FOR_THE_RUNTIME: ReadonlySet<string> = new Set(['UNAUTHENTICATED', 'INTERNAL', 'UNAVAILABLE']);

/** A failure as the model is told of it; null for what is not the model's business. */
export const failureOf = (error: unknown): ToolOutput | null => {
  if (error instanceof ToolFailure) return failed(error.message);
  if (!(error instanceof DomainError) || FOR_THE_RUNTIME.has(error.code)) return null;
  return failed(error.message);
};

/**
 * The arguments as the tool's schema has them; a text is read as JSON, which is how models write them. Throws
 * `ToolFailure` with what is wrong, in words.
 */
export const checkedArguments = <Parameters extends z.ZodObject>(
  tool: Tool<string, Parameters>,
  given: Json,
): z.output<Parameters> => {
  const value = typeof given === 'string' ? parsed(tool, given) : given;
  try {
    requireSafeJson(value, 'arguments');
  } catch (error) {
    throw error instanceof DomainError ? new ToolFailure(error.message) : error;
  }
  const { data, error } = tool.parameters.safeParse(value ?? {});
  if (error !== undefined) throw new ToolFailure(error.issues.map((issue) => faultOf(tool, issue)).join(' '));
  return data as z.output<Parameters>;
};

const parsed = (tool: Tool, text: string): Json => {
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new ToolFailure(`The arguments of ${tool.name} are not valid JSON.`);
  }
};

const faultOf = (tool: Tool, issue: z.core.$ZodIssue): string => {
  const at = issue.path.join('.');
  if (issue.code === 'unrecognized_keys') {
    const names = issue.keys.map((key) => JSON.stringify(key)).join(', ');
    const known = Object.keys(tool.parameters.shape);
    return `${tool.name} takes no argument ${names}: ${
      known.length === 0 ? 'it takes none at all' : `it takes ${known.join(', ')}`
    }. Whose it is, and where, is settled already.`;
  }
  if (issue.code === 'invalid_type' && issue.input === undefined && at !== '')
    return `${tool.name} needs the argument "${at}".`;
  return `${at === '' ? `The arguments of ${tool.name}` : `"${at}"`}: ${issue.message}.`;
};

/** An object as a model reads it. */
export const jsonText = (value: object): string => JSON.stringify(value);
