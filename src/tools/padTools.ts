import type { Loaders } from '../loaders.ts';
import type { ViewedPad } from '../scratchpads/scratchpads.ts';
import type { Services } from '../services.ts';
import { notFound } from '../shared/errors.ts';
import { said, ToolFailure, type ToolOutput } from './answers.ts';
import type { Begun } from './calls.ts';
import type { Operating } from './operating.ts';
import { padPart } from './padPages.ts';

/** What a tool has at hand. */
export interface Workbench {
  readonly services: Services;
  readonly loaders: Loaders;
  readonly at: Operating;
  readonly begun: Begun;
  /** Makes a call that is repeated act once. */
  readonly idempotencyKey: string | undefined;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** The run's scratchpad; outside of a run that of the thread, made if it is missing. */
export const padOf = async ({ services, at }: Pick<Workbench, 'services' | 'at'>): Promise<ViewedPad> => {
  const { run, actor, threadId, as } = at;
  if (run === null) return services.scratchpads.ensure(actor, { threadId, as });
  if (run.scratchpadId === null) throw new ToolFailure('This run has no scratchpad.');
  const pad = await services.scratchpads.find(actor, { scratchpadId: run.scratchpadId });
  if (pad === null) throw notFound('Scratchpad');
  return { pad, viewerId: run.padViewerId };
};

/** As `padPart`, with the words of the tool. */
export const padText = async (
  loaders: Loaders,
  viewed: ViewedPad,
  cursor: string | undefined,
): Promise<string> => {
  const note = (next: string): string => `(There is more: read_scratchpad with cursor "${next}".)`;
  return (await padPart(loaders, viewed, cursor, note)).text;
};

export const readScratchpad = async (
  bench: Workbench,
  { cursor }: { readonly cursor?: string | undefined },
): Promise<ToolOutput> => said(await padText(bench.loaders, await padOf(bench), cursor));

/** The resource may be emptied; a model that sends an empty body has made a mistake. */
export const updateScratchpad = async (
  bench: Workbench,
  { content }: { readonly content: string },
): Promise<ToolOutput> => {
  if (content === '') throw new ToolFailure('content is empty. Send the whole new body.');
  const { services, at, idempotencyKey } = bench;
  const { pad } = await padOf(bench);
  const target = { scratchpadId: pad.scratchpadId, as: at.as };
  await services.scratchpadWriting.setContent(at.actor, { ...target, text: content, idempotencyKey });
  return said('Scratchpad updated successfully.');
};

export const appendScratchpad = async (
  bench: Workbench,
  { note }: { readonly note: string },
): Promise<ToolOutput> => {
  if (note === '') throw new ToolFailure('note is empty. Send the finding.');
  const { services, at, idempotencyKey } = bench;
  const { pad } = await padOf(bench);
  const target = { scratchpadId: pad.scratchpadId, as: at.as };
  await services.scratchpadWriting.append(at.actor, { ...target, content: note, idempotencyKey });
  return said('Note appended successfully.');
};
