import type { Json } from '../shared/canonical.ts';
import { cut } from '../shared/text.ts';
import type { ToolOutput } from './answers.ts';
import type { Operating } from './operating.ts';

/** What each of a scratchpad's tools does, in the words that user interfaces listen for. */
const OPERATIONS: Readonly<Record<string, string>> = {
  read_scratchpad: 'read',
  update_scratchpad: 'update',
  append_scratchpad: 'append',
};

/** Characters of what was appended. */
const ENTRY = 2_000;

/** What those who follow a run are told while a tool works on its scratchpad; null for other tools, and outside of runs. */
export const activityOf = (
  at: Operating,
  name: string,
  given: Json,
  result: ToolOutput | null,
): { readonly runId: string; readonly activity: Json } | null => {
  const operation = OPERATIONS[name];
  if (at.run === null || operation === undefined) return null;
  const note = typeof given === 'object' && given !== null && 'note' in given ? given.note : null;
  return {
    runId: at.run.id,
    activity: {
      type: 'scratchpad_status',
      operation,
      state: result === null ? 'in_progress' : result.isError ? 'error' : 'success',
      tool: name,
      activity: result?.isError === true ? cut(result.output, ENTRY) : null,
      entry: operation === 'append' && typeof note === 'string' ? cut(note, ENTRY).toWellFormed() : null,
      run_id: at.run.id,
      assistant_id: at.participantId,
      origin: 'tool',
    },
  };
};
