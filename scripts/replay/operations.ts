import { z } from 'zod';

/** What a person can put right: something in the file, in the arguments, or at the server. One line. */
export class ReplayError extends Error {
  override readonly name = 'ReplayError';
}

const KINDS = ['HUMAN', 'AGENT', 'UNIT'] as const;

const who = z.string().min(1);
const text = z.string();
const operation = z.discriminatedUnion('op', [
  z.object({
    op: z.literal('open'),
    participants: z.array(z.object({ handle: z.string().min(1), kind: z.enum(KINDS) })).min(2),
  }),
  z.object({ op: z.literal('message'), who, text }),
  z.object({ op: z.literal('remove'), who }),
  z.object({ op: z.literal('readd'), who }),
  z.object({ op: z.literal('content'), who, text }),
  z.object({ op: z.literal('entry'), who, text }),
]);

type Line = z.infer<typeof operation>;
export type Opening = Extract<Line, { op: 'open' }>;
/** One line of a file, with its number for what is said about it. */
export type Operation = Exclude<Line, { op: 'open' }> & { readonly line: number };

export interface Recording {
  readonly participants: Opening['participants'];
  /** In the order in which they are to be done. */
  readonly operations: readonly Operation[];
}

const OPS = ['open', 'message', 'remove', 'readd', 'content', 'entry'];

const readLine = (line: string, number: number): Line => {
  const fail = (what: string): never => {
    throw new ReplayError(`Line ${number}: ${what}`);
  };
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return fail('this is no JSON.');
  }
  const op = z.object({ op: z.string() }).safeParse(value);
  if (!op.success) return fail('a JSON object with an "op" is meant.');
  if (!OPS.includes(op.data.op))
    return fail(`unknown operation "${op.data.op}"; known are ${OPS.join(', ')}.`);
  const parsed = operation.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  return fail(
    `"${issue?.path.join('.') ?? 'op'}" of ${op.data.op} is wrong: ${issue?.message ?? 'unreadable'}.`,
  );
};

/** Reads a file of operations, one JSON object a line: `open` first and once. Throws `ReplayError`. */
export const readRecording = (content: string): Recording => {
  const lines = content
    .split('\n')
    .map((line, index) => ({ line, number: index + 1 }))
    .filter(({ line }) => line.trim() !== '')
    .map(({ line, number }) => ({ ...readLine(line, number), line: number }));
  const [opening, ...rest] = lines;
  if (opening?.op !== 'open') throw new ReplayError('Line 1: the first operation must be "open".');
  const handles = new Set(opening.participants.map(({ handle }) => handle));
  const operations = rest.map((item): Operation => {
    if (item.op === 'open') throw new ReplayError(`Line ${item.line}: "open" comes once, at the beginning.`);
    if (!handles.has(item.who))
      throw new ReplayError(`Line ${item.line}: "${item.who}" is not among the participants.`);
    return item;
  });
  return { participants: opening.participants, operations };
};
