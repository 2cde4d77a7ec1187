import type { Json } from '../shared/canonical.ts';
import { badInput, notFound } from '../shared/errors.ts';
import { LIMITS, requireBytes, requireJson } from '../shared/input.ts';
import type { RunStatus } from './rows.ts';

/** null: as many as runs have that nobody counted out. */
export const requireToolCalls = (count: number | null | undefined): number | null => {
  const limit = LIMITS.maxToolCalls;
  const calls = count ?? null;
  if (calls === null) return null;
  if (!Number.isInteger(calls) || calls < 1 || calls > limit)
    throw badInput(`maxToolCalls must be 1 to ${limit}.`, { field: 'maxToolCalls', limit });
  return calls;
};

/** As JSON text; null for none. */
export const jsonOrNull = (value: Json | undefined, field: string): string | null =>
  value === undefined || value === null ? null : JSON.stringify(requireJson(value, field, LIMITS.runData));

/** Where an earlier format says which scratchpad is meant: the thread's. Null: it says nothing. */
export const legacyLocator = (metaData: Json | undefined): string | null => {
  if (metaData === undefined || metaData === null || typeof metaData !== 'object' || Array.isArray(metaData))
    return null;
  const { scratch_pad_thread: locator = null } = metaData as { readonly [key: string]: Json | undefined };
  if (locator === null) return null;
  if (typeof locator !== 'string') throw notFound('Thread');
  return locator;
};

export interface UpdateInput {
  readonly runId: string;
  readonly as?: string | null | undefined;
  readonly status?: RunStatus | null | undefined;
  readonly result?: Json | undefined;
  readonly error?: string | null | undefined;
  readonly expiresInSeconds?: number | null | undefined;
}

const WITH_RESULT: readonly RunStatus[] = ['COMPLETED', 'INPUT_REQUIRED'];
const WITH_ERROR: readonly RunStatus[] = ['FAILED', 'CANCELLED'];

/** What of an update is stored: the partial text of a worker that failed is not taken for a result. */
export const requireUpdate = ({
  status = null,
  result,
  error = null,
  expiresInSeconds = null,
}: UpdateInput) => {
  if (status === null && expiresInSeconds === null)
    throw badInput('Say what to change: status, expiresInSeconds, or both.', { field: 'status' });
  const given = jsonOrNull(result, 'result');
  if (error !== null) requireBytes(error, 'error', LIMITS.runError);
  if (status === null && (given !== null || error !== null))
    throw badInput('result and error go with the status that they are of.', { field: 'status' });
  return {
    status,
    result: status !== null && WITH_RESULT.includes(status) ? given : null,
    error: status !== null && WITH_ERROR.includes(status) ? error : null,
  };
};
