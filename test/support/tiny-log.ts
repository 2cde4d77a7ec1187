import { buildSchema, GraphQLError, type GraphQLSchema, isObjectType } from 'graphql';

/** What a stream is told at its end. `COMPLETE`: nothing. */
export type LastWords = 'SERVER_DRAINING' | 'CREDENTIAL_ENDED' | 'THREAD_DELETED' | 'RUN_CLOSED' | 'COMPLETE';

const SDL = /* GraphQL */ `
  scalar Cursor
  type Query { hello: String! }
  type Event { seq: Int! }
  type Delivery { cursor: Cursor! event: Event ended: String }
  type StateDelivery { changes: Int! ended: String }
  type Subscription {
    timeline(threadId: ID!, after: Cursor): Delivery!
    threads: StateDelivery!
    countdown: Int!
  }
`;

interface Delivery {
  readonly cursor: string;
  readonly event: { readonly seq: number } | null;
  readonly ended: LastWords | null;
}

/** One log and its schema: the whole contract of a live timeline, and ways to break it. */
export interface TinyLog {
  readonly schema: GraphQLSchema;
  append(): void;
  /** Every open stream ends, after what it still had to read. */
  end(words: LastWords): void;
  /** The next `count` subscriptions are refused with this error. */
  refuse(code: string, count: number, facts?: Record<string, unknown>): void;
  /** The next `count` payloads with an event fail while they are executed: wholly, or the event alone. */
  fail(code: string, count: number, where?: 'payload' | 'event'): void;
  delete(): void;
  readonly length: () => number;
  readonly openStreams: () => number;
}

export const createTinyLog = (): TinyLog => {
  let length = 0;
  let generation = 0;
  let words: LastWords = 'COMPLETE';
  let deleted = false;
  let streams = 0;
  let refusals = { code: '', count: 0, facts: {} };
  let failures = { code: '', count: 0, where: 'payload' };
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const resolve of waiting) resolve();
    waiting.clear();
  };
  const error = (code: string, facts = {}) => new GraphQLError(code, { extensions: { code, ...facts } });
  const cursorAt = (position: number) => `c${position}`;

  const open = (after: unknown): AsyncIterableIterator<Delivery> => {
    const born = generation;
    let position = typeof after === 'string' ? Number(after.slice(1)) : length;
    let started = false;
    let over = false;
    streams++;
    const close = () => {
      if (!over) streams--;
      over = true;
      wake();
    };
    return {
      async next() {
        while (!over) {
          const payload = { cursor: cursorAt(position), event: null, ended: null };
          if (!started) {
            started = true;
            return { done: false, value: payload };
          }
          if (position < length) {
            position++;
            return {
              done: false,
              value: { ...payload, cursor: cursorAt(position), event: { seq: position } },
            };
          }
          if (born !== generation) {
            close();
            if (words !== 'COMPLETE') return { done: false, value: { ...payload, ended: words } };
          } else await new Promise<void>((resolve) => waiting.add(resolve));
        }
        return { done: true, value: undefined };
      },
      return() {
        close();
        return Promise.resolve({ done: true, value: undefined });
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  };

  const fails = (delivery: Delivery, where: string): boolean =>
    delivery.event !== null && failures.where === where && failures.count-- > 0;

  const schema = buildSchema(SDL);
  const fields = schema.getSubscriptionType()?.getFields() ?? {};
  for (const [name, subscribe] of Object.entries({
    timeline: ({ after }: Record<string, unknown>) => {
      if (deleted) throw error('NOT_FOUND');
      if (refusals.count-- > 0) throw error(refusals.code, refusals.facts);
      if (typeof after === 'string' && !/^c\d+$/.test(after)) throw error('INVALID_CURSOR');
      return open(after);
    },
    threads: async function* () {
      yield { changes: length, ended: null };
    },
    countdown: async function* () {
      yield 1;
      yield 0;
    },
  })) {
    const field = fields[name];
    if (!field) throw new Error(`No field ${name}`);
    field.subscribe = (_root, args: Record<string, unknown>) => subscribe(args);
    field.resolve = (delivery: Delivery) =>
      name === 'timeline' && fails(delivery, 'payload') ? error(failures.code) : delivery;
  }
  const event = schema.getType('Delivery');
  if (!isObjectType(event)) throw new Error('No type Delivery');
  Object.assign(event.getFields().event ?? {}, {
    resolve: (delivery: Delivery) => (fails(delivery, 'event') ? error(failures.code) : delivery.event),
  });

  return {
    schema,
    append() {
      length++;
      wake();
    },
    end(lastWords) {
      words = lastWords;
      generation++;
      wake();
    },
    refuse(code, count, facts = {}) {
      refusals = { code, count, facts };
    },
    fail(code, count, where = 'payload') {
      failures = { code, count, where };
    },
    delete() {
      deleted = true;
    },
    length: () => length,
    openStreams: () => streams,
  };
};
