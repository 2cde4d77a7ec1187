/** The shapes that graphql-ws and graphql-sse share, so that neither has to be installed for the other's sake. */

export interface StreamRequest {
  readonly query: string;
  readonly operationName?: string;
  readonly variables?: Record<string, unknown>;
  readonly extensions?: Record<string, unknown>;
}

export interface StreamResult {
  readonly data?: unknown;
  readonly errors?: readonly unknown[] | undefined;
  readonly extensions?: unknown;
}

/** After `error` or `complete` nothing follows. */
export interface StreamSink<Result = StreamResult> {
  next(result: Result): void;
  error(problem: unknown): void;
  complete(): void;
}

/** A graphql-ws or graphql-sse `Client`, as far as following needs one. */
export interface StreamClient {
  subscribe(request: StreamRequest, sink: StreamSink): () => void;
  dispose(): void | Promise<void>;
  /** graphql-ws only: what happens to the socket that all subscriptions share. */
  on?(event: 'closed', listener: (event: unknown) => void): () => void;
  on?(event: 'ping' | 'pong', listener: (received: boolean) => void): () => void;
  terminate?(): void;
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
