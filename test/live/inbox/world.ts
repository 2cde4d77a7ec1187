import { createTenant, type Tenant } from '../../support/app.ts';
import { ADMIN_TOKEN } from '../../support/identity.ts';
import { openThread } from '../../support/inbox.ts';
import { AGENTS, PEOPLE, THREAD_NAMES, THREADS } from './choose.ts';
import type { Code, Observation, Seen, Span, Unseen } from './observed.ts';
import type { Processes } from './processes.ts';

export type Open = { -readonly [Key in keyof Span]: Span[Key] };

/** What a server answered, and when; `LOST`: it was killed before. */
export interface Answered<Data> {
  readonly code: string;
  readonly data: Data | null;
  readonly span: Open;
}

/** What may stand in the record, as whoever asked for it knows. */
export interface Asked {
  readonly kind: 'MESSAGE' | 'RETRACTION' | 'CHANGE';
  readonly thread: string;
  readonly span: Span;
  /** Of a message its text, of a retraction the message’s id, of a change whom it is about. */
  readonly what: string;
  /** Null: it was never told. */
  readonly seq: number | null;
  readonly answers: { readonly agent: string; readonly deliveryId: string } | null;
}

export interface Notice {
  readonly agent: string;
  readonly kind: string;
  readonly thread: string;
  readonly seq: number;
}

/** A tenant of its own at two servers, and all that was seen of its inboxes. */
export class World {
  readonly processes: Processes;
  readonly tenant: Tenant;
  readonly asked: Asked[] = [];
  readonly notices: Notice[] = [];
  readonly #threadIds: ReadonlyMap<string, string>;
  readonly #names: ReadonlyMap<string, string>;
  readonly #seen = new Map<string, Observation[]>(AGENTS.map((agent) => [agent, []]));
  readonly #unseen = new Map<string, Unseen[]>(AGENTS.map((agent) => [agent, []]));
  readonly #unread: { readonly agent: string; readonly span: Span }[] = [];
  #lost: Open[] = [];
  #count = 0;

  private constructor(processes: Processes, tenant: Tenant, threadIds: ReadonlyMap<string, string>) {
    this.processes = processes;
    this.tenant = tenant;
    this.#threadIds = threadIds;
    this.#names = new Map([...threadIds].map(([name, id]) => [id, name]));
  }

  static async create(processes: Processes): Promise<World> {
    const server = await processes.server(0);
    const kinds = [
      ...PEOPLE.map((who) => [who, 'HUMAN'] as const),
      ...AGENTS.map((who) => [who, 'AGENT'] as const),
    ];
    const tenant = await createTenant(server, Object.fromEntries(kinds));
    const { errors } = await server.graphql(
      tenant.apiKey,
      'mutation ($input: UpdateParticipantInput!) { updateParticipant(input: $input) { participant { id } } }',
      { input: { participantId: tenant.participants.solo?.id, concurrentThreads: false } },
    );
    if (errors) throw new Error(JSON.stringify(errors));
    const threadIds = new Map<string, string>();
    for (const name of THREAD_NAMES) threadIds.set(name, await openThread(server, tenant, ...THREADS[name]));
    return new World(processes, tenant, threadIds);
  }

  threadId(name: string): string {
    return this.#threadIds.get(name) ?? '';
  }
  threadName(id: string): string {
    return this.#names.get(id) ?? id;
  }
  tokenOf(who: string | null): string {
    return who === null ? this.tenant.apiKey : (this.tenant.participants[who]?.token ?? ADMIN_TOKEN);
  }
  idOf(who: string): string {
    return this.tenant.participants[who]?.id ?? '';
  }
  /** Unlike every other. */
  text(): string {
    this.#count += 1;
    return `«${this.#count}»`;
  }

  /** One operation of a participant (null: the user), at this server or the other. */
  async call<Data>(
    who: string | null,
    on: number,
    query: string,
    variables: Readonly<Record<string, unknown>>,
  ): Promise<Answered<Data>> {
    const server = await this.processes.server(on);
    const span: Open = { from: performance.now(), to: Number.POSITIVE_INFINITY };
    try {
      const asking = server.graphql<Data>(this.tokenOf(who), query, variables);
      this.processes.begun();
      const { data, errors } = await asking;
      span.to = performance.now();
      const code = errors === undefined ? 'OK' : (errors[0]?.extensions?.code ?? JSON.stringify(errors));
      return { code, data: data ?? null, span };
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.#lost.push(span);
      return { code: 'LOST', data: null, span };
    }
  }

  saw(agent: string, thread: string, span: Span, seen: Seen): void {
    this.#seen.get(agent)?.push({ span, thread, ...seen });
  }

  /** Not all that this agent took now comes to it. */
  missed(agent: string, batch: number, span: Open): void {
    this.#unseen.get(agent)?.push({ span, batch });
  }

  /** What it was told then it may not have read. */
  unread(agent: string, span: Span): void {
    this.#unread.push({ agent, span });
  }
  unreadBy(agent: string): readonly Span[] {
    return this.#unread.filter((one) => one.agent === agent).map(({ span }) => span);
  }

  seenBy(agent: string): readonly Observation[] {
    return this.#seen.get(agent) ?? [];
  }
  unseenBy(agent: string): readonly Unseen[] {
    return this.#unseen.get(agent) ?? [];
  }

  /** Nothing that was lost so far is still going on. */
  settled(): void {
    for (const span of this.#lost) span.to = performance.now();
    this.#lost = [];
  }
}

/** The codes that there may be; any other is a failure of its own. */
export const codeOf = (code: string, allowed: readonly Code[]): Code => {
  const found = [...allowed, 'LOST' as const].find((one) => one === code);
  if (found === undefined) throw new Error(`Answered with ${code}.`);
  return found;
};
