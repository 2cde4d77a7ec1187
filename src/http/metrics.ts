import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export interface OperationOutcome {
  readonly transport: string;
  readonly kind: string;
  /** GraphQL: the operation's first root field. REST: the route. Both are bounded in number. */
  readonly field: string;
  /** `OK`, or the code of the first error. */
  readonly code: string;
  readonly seconds: number;
}

export interface Metrics {
  socketOpened(): void;
  socketClosed(): void;
  subscriptionOpened(): void;
  subscriptionClosed(): void;
  operationDone(outcome: OperationOutcome): void;
  /** What the hub of this process follows; read when metrics are. */
  watchHub(counts: () => { readonly tails: number; readonly channels: number }): void;
  /** The Prometheus text format. */
  text(): Promise<string>;
  readonly contentType: string;
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export const createMetrics = (): Metrics => {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  let hub = () => ({ tails: 0, channels: 0 });
  const sockets = new Gauge({ name: 'threadpad_sockets', help: 'Open WebSocket connections.', registers });
  const subscriptions = new Gauge({
    name: 'threadpad_subscriptions',
    help: 'Open subscriptions, over WebSocket and SSE.',
    registers,
  });
  new Gauge({
    name: 'threadpad_tails',
    help: 'Logs that this process follows.',
    registers,
    collect() {
      this.set(hub().tails);
    },
  });
  new Gauge({
    name: 'threadpad_channels',
    help: 'Redis channels that this process listens to.',
    registers,
    collect() {
      this.set(hub().channels);
    },
  });
  const operations = new Counter({
    name: 'threadpad_operations_total',
    help: 'GraphQL operations by their first root field, REST requests by their route, with transport and outcome.',
    labelNames: ['transport', 'kind', 'field', 'code'],
    registers,
  });
  const durations = new Histogram({
    name: 'threadpad_operation_seconds',
    help: 'From the beginning of an operation or request to its answer; of a subscription to its opening.',
    labelNames: ['kind', 'field'],
    buckets: SECONDS,
    registers,
  });

  return {
    socketOpened: () => sockets.inc(),
    socketClosed: () => sockets.dec(),
    subscriptionOpened: () => subscriptions.inc(),
    subscriptionClosed: () => subscriptions.dec(),
    operationDone({ transport, kind, field, code, seconds }) {
      operations.inc({ transport, kind, field, code });
      durations.observe({ kind, field }, seconds);
    },
    watchHub(counts) {
      hub = counts;
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
};
