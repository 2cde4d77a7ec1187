import { z } from 'zod';
import { ERROR_STATUS, type ErrorCode } from '../shared/errors.ts';
import { ANSWER_HEADERS } from './headers.ts';
import { pathsOf, type RestRoute } from './route.ts';
import { COMPONENTS, PATH_PARAMS, Problem, ValidationProblem } from './schemas.ts';

type JsonObject = { readonly [key: string]: unknown };

/** The routes table as an OpenAPI document. Source: OpenAPI 3.1, whose schemas are JSON Schema 2020-12. */
export const openApiOf = (routes: readonly RestRoute[]): JsonObject => ({
  openapi: '3.1.1',
  info: {
    title: 'Threadpad',
    version: '1',
    description:
      'Threads and scratchpads over REST: the same services as GraphQL, with the same rights. Every answer has `X-Request-Id`; every failure the stable code in `X-Error-Code`.',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: '/' }],
  security: [{ apiKey: [] }, { bearer: [] }],
  tags: TAGS,
  paths: pathItems(routes),
  components: {
    schemas: componentSchemas(),
    parameters: {
      ActAs: {
        name: 'X-Act-As',
        in: 'header',
        description: 'With an API key: act and look as this participant of one’s own.',
        schema: { type: 'string' },
      },
    },
    securitySchemes: {
      apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
      bearer: { type: 'http', scheme: 'bearer' },
    },
  },
});

const TAGS = [
  { name: 'scratchpads', description: 'Shared working memory: at most one for each thread.' },
  { name: 'threads', description: 'The record, and who is in it.' },
  { name: 'tools', description: 'What a model’s tools are, and what they call.' },
  { name: 'other addresses', description: 'The same routes, where older clients look for them.' },
];

const pathItems = (routes: readonly RestRoute[]): JsonObject => {
  const items: Record<string, Record<string, unknown>> = {};
  for (const route of routes)
    pathsOf(route).forEach((path, index) => {
      const item = items[path] ?? {};
      items[path] = item;
      item[route.method.toLowerCase()] = operationOf(route, path, index);
    });
  return items;
};

const operationOf = (route: RestRoute, path: string, index: number): JsonObject => ({
  operationId: index === 0 ? route.operationId : `${route.operationId}At${index}`,
  tags: [index === 0 ? route.tag : 'other addresses'],
  summary: index === 0 ? route.summary : `${route.summary} (as at ${route.path})`,
  ...(route.description === undefined ? {} : { description: route.description }),
  parameters: [
    ...pathParameters(path),
    ...parametersIn('query', route.query),
    ...parametersIn('header', route.headers),
    { $ref: '#/components/parameters/ActAs' },
  ],
  ...(route.body === undefined ? {} : { requestBody: requestBody(route.body) }),
  responses: responsesOf(route),
});

const pathParameters = (path: string): JsonObject[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: PATH_PARAMS[name],
    schema: { type: 'string' },
  }));

const HEADER_NAMES: Readonly<Record<string, string>> = {
  'if-match': 'If-Match',
  'idempotency-key': 'Idempotency-Key',
};

const parametersIn = (place: 'query' | 'header', schema: z.ZodType | undefined): JsonObject[] => {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = inline(schema) as {
    properties?: Readonly<Record<string, JsonObject>>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name: HEADER_NAMES[name] ?? name,
    in: place,
    required: required.includes(name),
    description,
    schema: rest,
  }));
};

const requestBody = (schema: z.ZodType): JsonObject => {
  const isOptional = schema instanceof z.ZodOptional;
  return { required: !isOptional, content: json(isOptional ? (schema.unwrap() as z.ZodType) : schema) };
};

/** What can go wrong on every route. */
const EVERYWHERE: Partial<Record<ErrorCode, string>> = {
  UNAUTHENTICATED: 'No valid credential.',
  FORBIDDEN: 'The credential may not do this.',
  BAD_USER_INPUT: 'The request does not fit.',
  RATE_LIMITED: 'Too much at once: `Retry-After` says when to try again.',
  INTERNAL: 'Something unexpected: report it with `X-Request-Id`.',
  UNAVAILABLE: 'A store cannot be reached, or the server is shutting down: try again after `Retry-After`.',
};

const responsesOf = ({ answer, answerHeaders = [], errors, body }: RestRoute): JsonObject => {
  const byStatus = new Map<number, string[]>();
  const tell = (status: number, text: string): void => {
    byStatus.set(status, [...(byStatus.get(status) ?? []), text]);
  };
  for (const [code, text] of Object.entries(EVERYWHERE)) tell(ERROR_STATUS[code as ErrorCode], text);
  for (const [code, texts] of Object.entries(errors)) {
    const known = [texts].flat().map((text) => `“${text}”`);
    tell(ERROR_STATUS[code as ErrorCode], known.length === 0 ? code : `${known.join(' or ')} (${code})`);
  }
  if (body !== undefined) {
    if (errors.PAYLOAD_TOO_LARGE === undefined) tell(413, 'The body is too large (PAYLOAD_TOO_LARGE).');
    tell(415, 'The body is no JSON.');
  }
  const failures = [...byStatus].sort(([one], [other]) => one - other);
  return {
    200: {
      description: 'Done.',
      ...(answerHeaders.length === 0
        ? {}
        : {
            headers: Object.fromEntries(
              answerHeaders.map((name) => [
                name,
                { description: ANSWER_HEADERS[name], schema: { type: 'string' } },
              ]),
            ),
          }),
      content: json(answer),
    },
    ...Object.fromEntries(
      failures.map(([status, texts]) => [
        status,
        {
          description: texts.join(' '),
          headers: { 'X-Error-Code': { description: 'The stable code.', schema: { type: 'string' } } },
          content: json(status === 422 ? ValidationProblem : Problem),
        },
      ]),
    ),
  };
};

const json = (schema: z.ZodType): JsonObject => ({ 'application/json': { schema: refTo(schema) } });

const uri = (id: string): string => `#/components/schemas/${id}`;

const refTo = (schema: z.ZodType): JsonObject => {
  const { id } = COMPONENTS.get(schema) ?? {};
  if (id === undefined) throw new Error('A body or an answer has no name in the document.');
  return { $ref: uri(id) };
};

/** What a reader would stumble over: the pattern of a known format, the bounds that every safe integer has. */
const tidy = ({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void => {
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
};

const inline = (schema: z.ZodType): JsonObject => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', override: tidy });
  return rest;
};

const componentSchemas = (): JsonObject => {
  const { schemas } = z.toJSONSchema(COMPONENTS, { uri, io: 'input', override: tidy });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $schema: _, $id: __, ...rest }]) => [id, rest]),
  );
};
