import { isRecord } from './stream.ts';

/** What a problem means for a reader: try again (perhaps not before a while), with a fresh credential, or not at all. */
export type Verdict =
  | { readonly kind: 'retry'; readonly afterMs: number }
  | { readonly kind: 'credential' }
  | { readonly kind: 'final' };

const retry = (afterMs = 0): Verdict => ({ kind: 'retry', afterMs });
const CREDENTIAL: Verdict = { kind: 'credential' };
const FINAL: Verdict = { kind: 'final' };

/** Close codes that would come again at every attempt: the client and the server do not understand each other. */
const FATAL_CLOSE_CODES = new Set([
  1002, 1003, 1007, 1008, 1009, 1010, 4004, 4005, 4400, 4401, 4406, 4409, 4429, 4500,
]);
const CREDENTIAL_CLOSE_CODE = 4403;

export const isCloseEvent = (
  problem: unknown,
): problem is { readonly code: number; readonly reason: unknown } =>
  isRecordLike(problem) && typeof problem.code === 'number' && 'reason' in problem;

/** GraphQL errors decide by their code; a lost connection, or anything unknown, is worth another attempt. */
export const verdictOn = (problem: unknown, hasWorked: boolean): Verdict => {
  if (Array.isArray(problem)) return verdictOnErrors(problem, hasWorked);
  if (isCloseEvent(problem)) {
    if (problem.code === CREDENTIAL_CLOSE_CODE) return CREDENTIAL;
    return FATAL_CLOSE_CODES.has(problem.code) ? FINAL : retry();
  }
  const response = responseOf(problem);
  return response === undefined ? retry() : verdictOnStatus(response, hasWorked);
};

const PASSING_CODES = new Set<unknown>(['UNAVAILABLE', 'RATE_LIMITED']);

/** An unexpected error passes, perhaps, where the same operation has worked; at the first attempt it is told. */
const verdictOnErrors = (errors: readonly unknown[], hasWorked: boolean): Verdict => {
  const extensions = errors.map(extensionsOf);
  const has = (passes: (code: unknown) => boolean) => extensions.some(({ code }) => passes(code));
  if (has((code) => code === 'UNAUTHENTICATED')) return CREDENTIAL;
  if (!has((code) => PASSING_CODES.has(code) || (hasWorked && code === 'INTERNAL'))) return FINAL;
  return retry(Math.max(0, ...extensions.map((facts) => Number(facts.retryAfterMs ?? 0) || 0)));
};

/**
 * An answer that is no stream. Once a stream has worked, a 4xx without GraphQL errors comes from something in
 * between (a proxy during a deploy), so it passes; at the first attempt it means a wrong address.
 */
const verdictOnStatus = (response: ResponseFacts, hasWorked: boolean): Verdict => {
  if (response.status === 401) return CREDENTIAL;
  const passes = response.status >= 500 || response.status < 400 || [408, 425, 429].includes(response.status);
  return passes || hasWorked ? retry(response.retryAfterMs) : FINAL;
};

interface ResponseFacts {
  readonly status: number;
  readonly retryAfterMs: number;
}

const responseOf = (problem: unknown): ResponseFacts | undefined => {
  const response = isRecordLike(problem) ? problem.response : undefined;
  if (!isRecordLike(response) || typeof response.status !== 'number') return undefined;
  const headers = response.headers;
  const seconds = headers instanceof Headers ? Number(headers.get('retry-after') ?? 0) : 0;
  return { status: response.status, retryAfterMs: (seconds || 0) * 1000 };
};

/** The GraphQL errors in the body of an answer that is no stream; the problem itself where there are none. */
export const withErrorsOfBody = async (problem: unknown): Promise<unknown> => {
  const response = isRecordLike(problem) ? problem.response : undefined;
  if (!(response instanceof Response) || response.bodyUsed) return problem;
  try {
    const body: unknown = await response.json();
    const errors = isRecord(body) ? body.errors : undefined;
    return Array.isArray(errors) && errors.length > 0 ? errors : problem;
  } catch {
    return problem;
  }
};

export const hasCode = (problem: unknown, code: string): boolean =>
  Array.isArray(problem) && problem.some((error) => extensionsOf(error).code === code);

const extensionsOf = (error: unknown): Record<string, unknown> => {
  const extensions = isRecordLike(error) ? error.extensions : undefined;
  return isRecord(extensions) ? extensions : {};
};

/** Close events and errors are objects whose members stand on their prototype: only reading tells. */
const isRecordLike = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** For callers that want an `Error`: the message of the first GraphQL error, or which code the socket closed with. */
export const asError = (problem: unknown): Error => {
  if (problem instanceof Error) return problem;
  if (isCloseEvent(problem)) {
    const reason = String(problem.reason);
    return new Error(`The connection was closed with ${problem.code}${reason === '' ? '' : `: ${reason}`}.`);
  }
  const first: unknown = Array.isArray(problem) ? problem[0] : problem;
  const message = isRecordLike(first) && typeof first.message === 'string' ? first.message : String(first);
  return new Error(message, { cause: problem });
};
