import {
  type ASTNode,
  type ASTVisitor,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  Kind,
  visit,
} from 'graphql';
import type { Actor } from '../auth/actor.ts';
import type { Session } from '../auth/session.ts';
import { canonicalJson, type Json, sha256 } from '../shared/canonical.ts';
import type { Caller, KnownCaller, Transport } from './caller.ts';

/** A result that is the same for many streams: it is made a text once for all of them. */
export class SharedPayload implements ExecutionResult {
  readonly data: NonNullable<ExecutionResult['data']> | null;
  readonly extensions: { readonly cursor: string };
  #text: string | null = null;

  constructor(data: NonNullable<ExecutionResult['data']> | null, cursor: string) {
    this.data = data;
    this.extensions = { cursor };
  }

  get text(): string {
    this.#text ??= JSON.stringify(this);
    return this.#text;
  }
}

/** A payload as JSON. */
export const textOf = (payload: ExecutionResult): string =>
  payload instanceof SharedPayload ? payload.text : JSON.stringify(payload);

/** Where it is an answer to all: an error is told in the name of one caller. */
export const sharedPayload = ({ data, errors }: ExecutionResult, cursor: string): SharedPayload | null =>
  errors === undefined ? new SharedPayload(data ?? null, cursor) : null;

/**
 * Notes whether an execution asks who it is for. One that does not is the same for everybody to whom the event may be told,
 * which was decided for each before; whatever it asks, of the caller or the viewer, makes the result that reader's own.
 */
export class Watch {
  isPersonal = false;

  caller(caller: KnownCaller): KnownCaller {
    return new WatchedCaller(caller, this);
  }

  event(event: object & { readonly viewerId?: unknown }): object {
    const get = (): unknown => {
      this.isPersonal = true;
      return event.viewerId;
    };
    return Object.create(event, { viewerId: { enumerable: true, get } });
  }
}

class WatchedCaller implements Caller {
  readonly #caller: KnownCaller;
  readonly #watch: Watch;

  constructor(caller: KnownCaller, watch: Watch) {
    this.#caller = caller;
    this.#watch = watch;
  }

  get actor(): Actor {
    return this.#asked.actor;
  }

  get session(): Session | null {
    return this.#asked.session;
  }

  get requestId(): string {
    return this.#asked.requestId;
  }

  get transport(): Transport {
    return this.#asked.transport;
  }

  get signal(): AbortSignal | null {
    return this.#asked.signal;
  }

  get lastEventId(): string | null {
    return this.#asked.lastEventId;
  }

  get #asked(): KnownCaller {
    this.#watch.isPersonal = true;
    return this.#caller;
  }
}

/** Milliseconds for which a result serves those who come to the same event: as long as what was read for it is shared. */
const MOMENT_MS = 50;

interface Shared {
  readonly until: number;
  /** `PERSONAL`: it is no other's. */
  outcome: SharedPayload | 'PERSONAL' | Promise<SharedPayload | null>;
}

/** Results of one event, by what is asked of it. */
export interface Sharing {
  /** What has been made or is being made of `subject` for `question`; null: it is no other's; undefined: nothing yet. */
  find(subject: object, question: string): SharedPayload | Promise<SharedPayload | null> | null | undefined;
  /** Others wait for `making`, which never rejects. */
  offer(subject: object, question: string, making: Promise<SharedPayload | null>): void;
}

export const createSharing = (): Sharing => {
  const subjects = new WeakMap<object, Map<string, Shared>>();
  return {
    find(subject, question) {
      const shared = subjects.get(subject)?.get(question);
      if (shared === undefined || performance.now() >= shared.until) return undefined;
      return shared.outcome === 'PERSONAL' ? null : shared.outcome;
    },
    offer(subject, question, making) {
      const questions = subjects.get(subject) ?? new Map<string, Shared>();
      subjects.set(subject, questions);
      const shared: Shared = { until: performance.now() + MOMENT_MS, outcome: making };
      questions.set(question, shared);
      void making.then((payload) => {
        shared.outcome = payload ?? 'PERSONAL';
      });
    },
  };
};

const documents = new WeakMap<
  DocumentNode,
  { readonly number: number; readonly variables: ReadonlySet<string> }
>();
let lastDocument = 0;

/** What the streams ask alike that differ at most in what they follow and from where on, which the event has decided. */
export const questionOf = ({ document, operationName, variableValues }: ExecutionArgs): string => {
  let known = documents.get(document);
  if (known === undefined) {
    known = { number: ++lastDocument, variables: variablesBelow(document) };
    documents.set(document, known);
  }
  const given = Object.entries(variableValues ?? {}).filter(([name]) => known.variables.has(name));
  return sha256(`${known.number} ${operationName ?? ''} ${canonicalJson(Object.fromEntries(given) as Json)}`);
};

/** The variables that say more than what an operation's root field is given. */
const variablesBelow = (document: DocumentNode): ReadonlySet<string> => {
  const names = new Set<string>();
  const below = document.definitions.flatMap((definition): readonly ASTNode[] => {
    if (definition.kind !== Kind.OPERATION_DEFINITION) return [definition];
    const roots = definition.selectionSet.selections.map((node) =>
      node.kind === Kind.FIELD ? { ...node, arguments: [] } : node,
    );
    return [...(definition.directives ?? []), ...roots];
  });
  const visitor: ASTVisitor = { [Kind.VARIABLE]: ({ name }) => void names.add(name.value) };
  for (const node of below) visit(node, visitor);
  return names;
};
