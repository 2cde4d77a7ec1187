import { inputHash } from '../shared/canonical.ts';
import { badInput, DomainError, tooLarge } from '../shared/errors.ts';
import { LIMITS, requireBytes, requireCharacters } from '../shared/input.ts';
import { type KeyReused, PAD_LIMITS, type TooLarge, type WriteKey } from './pad.ts';

export const requireEntry = (content: string, field: string): string => {
  if (content === '') throw badInput('An entry must not be empty.', { field });
  return requireBytes(content, field, PAD_LIMITS.entry);
};

/** All or none: at least one, and no more than one script may take. */
export const requireEntries = (contents: readonly string[]): readonly string[] => {
  const field = 'contents';
  const { batchEntries, batchBytes } = PAD_LIMITS;
  if (contents.length === 0) throw badInput('contents is empty: give at least one entry.', { field });
  if (contents.length > batchEntries)
    throw full(`${field} has more than ${batchEntries} entries.`, field, batchEntries);
  for (const content of contents) requireEntry(content, field);
  const bytes = contents.reduce((sum, content) => sum + Buffer.byteLength(content), 0);
  if (bytes > batchBytes) throw tooLarge(field, batchBytes);
  return contents;
};

export const requireSources = (ids: readonly string[] | null | undefined): readonly string[] => {
  const field = 'sourceIds';
  const distinct = [...new Set(ids ?? [])];
  if (distinct.length > LIMITS.sources)
    throw badInput(`${field} names more than ${LIMITS.sources}.`, { field, limit: LIMITS.sources });
  for (const id of distinct) requireCharacters(id, field, 128);
  return distinct;
};

/** A key counts among what this actor does in this way to this pad. Conditions are no part of the input. */
export const writeKey = (
  operation: string,
  { participantId, runId }: { readonly participantId: string | null; readonly runId?: string | null },
  key: string | null,
  input: { readonly [name: string]: string | readonly string[] },
): WriteKey | null =>
  key === null
    ? null
    : { key: `${operation} ${runId ?? participantId ?? 'owner'} ${key}`, hash: inputHash(input) };

/** What a script refused, as it is told; nothing was written. `field` is what the content came by. */
export const refusal = (outcome: TooLarge | KeyReused, field: string): DomainError => {
  if (outcome.kind === 'KEY_REUSED')
    return new DomainError(
      'IDEMPOTENCY_KEY_REUSED',
      'This idempotencyKey was used with another input. Take a new one.',
      { field: 'idempotencyKey' },
    );
  const { what, limit } = outcome;
  switch (what) {
    case 'CONTENT':
    case 'ENTRY':
    case 'BATCH_BYTES':
      return tooLarge(field, limit);
    case 'BATCH_ENTRIES':
      return full(`${field} has more than ${limit} entries.`, field, limit);
    case 'PAD_ENTRIES':
      return full(`A scratchpad holds at most ${limit} entries. Clear them first.`, field, limit);
    case 'PAD_BYTES':
      return full(`A scratchpad holds at most ${limit} bytes of entries. Clear them first.`, field, limit);
    default:
      return what satisfies never;
  }
};

const full = (message: string, field: string, limit: number): DomainError =>
  new DomainError('PAYLOAD_TOO_LARGE', message, { field, limit });
