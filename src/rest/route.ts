import type { z } from 'zod';
import type { Actor } from '../auth/actor.ts';
import type { Headers } from '../http/exchange.ts';
import type { Services } from '../services.ts';
import type { ErrorCode } from '../shared/errors.ts';
import type { ANSWER_HEADERS } from './headers.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The names in the braces of a path: `/v1/threads/{thread_id}`. */
type ParamOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamOf<Rest>
  : never;

/** What a route has at hand: everything is checked against its schemas. */
export interface Call<Param extends string, Query, Head, Body> {
  readonly actor: Actor;
  readonly services: Services;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
  readonly params: Readonly<Record<Param, string>>;
  readonly query: Query;
  readonly headers: Head;
  readonly body: Body;
}

export interface Whole<Body> {
  readonly body: Body;
  readonly headers?: Headers;
}

/** A list too long to be held at once: its items come page by page, and go out as `{"object":"list","data":[…]}`. */
export interface Streamed<Body> {
  readonly pages: AsyncIterable<readonly ItemOf<Body>[]>;
  readonly headers?: Headers;
}

type ItemOf<Body> = Body extends { readonly data: readonly (infer Item)[] } ? Item : never;

export type Answered<Body> = Whole<Body> | Streamed<Body>;

export interface Definition<Path extends string, Query, Head, Body, Answer> {
  readonly method: Method;
  readonly path: Path;
  /** Other paths of the same route, with the same names in braces. */
  readonly aliases?: readonly string[];
  /** Unique; what client generators name a method after. */
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly query?: z.ZodType<Query>;
  /** Request headers, by their names in lower case. */
  readonly headers?: z.ZodType<Head>;
  /** Absent: the route takes none, and reads none. */
  readonly body?: z.ZodType<Body>;
  readonly answer: z.ZodType<Answer>;
  readonly answerHeaders?: readonly (keyof typeof ANSWER_HEADERS)[];
  /**
   * What can go wrong beside what can on every route. A text is the `detail` that is answered, whatever the service said;
   * where there are several, or none, the service's own.
   */
  readonly errors: Partial<Record<ErrorCode, string | readonly string[]>>;
  /** What the service calls a field, by the name that it has here where the two differ. */
  readonly names?: Readonly<Record<string, string>>;
  /** Whether it takes texts of a megabyte. */
  readonly isContent?: boolean;
  serve(call: Call<ParamOf<Path>, Query, Head, Body>): Promise<Answered<Answer>>;
}

/** A row of the routes table: the router validates by it, and the OpenAPI document is made of it. */
export type RestRoute = Definition<string, unknown, unknown, unknown, unknown>;

export const route = <Path extends string, Query, Head, Body, Answer>(
  definition: Definition<Path, Query, Head, Body, Answer>,
): RestRoute => definition as unknown as RestRoute;

/** Every path of a route. */
export const pathsOf = ({ path, aliases = [] }: RestRoute): readonly string[] => [path, ...aliases];
