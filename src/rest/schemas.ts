import { z } from 'zod';

/** What the OpenAPI document calls each schema. */
export const COMPONENTS = z.registry<{ id: string }>();

const component = <Schema extends z.ZodType>(id: string, schema: Schema): Schema => {
  COMPONENTS.add(schema, { id });
  return schema;
};

/** A component that clients take with fields they do not know. */
export const open = <Shape extends z.ZodRawShape>(id: string, description: string, shape: Shape) =>
  component(id, z.object(shape).describe(description));

/** A component that refuses unknown fields: of a body, and of an answer whose clients do. */
export const strict = <Shape extends z.ZodRawShape>(id: string, description: string, shape: Shape) =>
  component(id, z.strictObject(shape).describe(description));

export const union = <const Members extends readonly [z.ZodObject, z.ZodObject, ...z.ZodObject[]]>(
  id: string,
  description: string,
  members: Members,
) => component(id, z.discriminatedUnion('type', members).describe(description));

export const time = (description: string) =>
  z.iso.datetime({ offset: false }).describe(`${description} ISO 8601 in UTC.`);
export const id = (description: string) => z.string().describe(description);
export const cursor = (description: string) => z.string().describe(description);
export const metaData = (description: string) =>
  z.record(z.string(), z.unknown()).describe(`${description} At most 16 KiB.`);

/** `?limit=`: 1 to 200. */
export const limit = (description: string) =>
  z.coerce.number().int().min(1).max(200).optional().describe(description);

/** Parameters of paths, by their names in braces. */
export const PATH_PARAMS: Readonly<Record<string, string>> = {
  thread_id: 'The thread.',
  scratchpad_id: 'The scratchpad.',
  participant_id: 'The participant.',
  message_id: 'The message.',
};

export const Problem = open('Problem', 'What went wrong. The stable code is in the header `X-Error-Code`.', {
  detail: z.string().describe('What happened and what to do.'),
});

const Fault = open('ValidationFault', 'One thing that is wrong with a request.', {
  type: z.string().describe('missing, string_too_short, extra_forbidden, string_type, value_error …'),
  loc: z
    .array(z.union([z.string(), z.int()]))
    .describe('Where: `body`, `query`, `header` or `path`, then the way into it.'),
  msg: z.string().describe('What is wrong.'),
  input: z.unknown().describe('What was sent there, unless it is long.'),
});

export const ValidationProblem = open('ValidationProblem', 'A request that does not fit its route.', {
  detail: z.array(Fault).describe('All that is wrong with it.'),
});
