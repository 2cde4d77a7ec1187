import { createTenant, type Server, type startApp } from '../../support/app.ts';
import type { Act, By, Tool } from './acts.ts';
import { LISTED, NAMES, OPEN_MEMORY, PADS, PEOPLE, THREADS } from './model.ts';

/** What a server answered to an act. */
export interface Answered {
  readonly code: string;
  readonly message: string;
  readonly isError?: boolean;
  readonly shows?: readonly string[];
}

export type Here = Awaited<ReturnType<typeof startApp>>;

const MARK = /«\d+»/g;
export const marksOf = (text: string): string[] => [...new Set(text.match(MARK) ?? [])].sort();

/** A tenant of its own at two servers, and the ids and secrets that go with the model's names. */
export class World {
  readonly servers: readonly [Here, Server];
  readonly apiKey: string;
  /** By name: participants, threads, scratchpads, runs. */
  readonly ids = new Map<string, string>();
  /** By the names of participants and tokens. */
  readonly secrets = new Map<string, string>();
  readonly #names = new Map<string, string>();
  readonly #inputs = new Map<string, Readonly<Record<string, unknown>>>();

  constructor(servers: readonly [Here, Server], apiKey: string) {
    this.servers = servers;
    this.apiKey = apiKey;
  }

  know(name: string, id: string): void {
    this.ids.set(name, id);
    this.#names.set(id, name);
  }
  idOf(name: string): string {
    const id = this.ids.get(name);
    if (id === undefined) throw new Error(`Nothing is called ${name}.`);
    return id;
  }
  /** What an id stands for; itself where it is unknown. */
  nameOf(id: string): string {
    return this.#names.get(id) ?? id;
  }
  server(turn: number): Server {
    return this.servers[turn % 2] ?? this.servers[0];
  }
  secretOf(name: string | null): string {
    const secret = name === null ? this.apiKey : this.secrets.get(name);
    if (secret === undefined) throw new Error(`No secret of ${name}.`);
    return secret;
  }

  /** A participant acts with its own token, or the user acts as it: it is the same. */
  #caller({ who, token }: By, turn: number): { secret: string; as: { as?: string } } {
    if (token !== null) return { secret: this.secretOf(token), as: {} };
    if (who === null) return { secret: this.apiKey, as: {} };
    return turn % 3 === 0
      ? { secret: this.apiKey, as: { as: this.idOf(`who ${who}`) } }
      : { secret: this.secretOf(who), as: {} };
  }

  async mutate(
    secret: string,
    turn: number,
    name: string,
    input: Readonly<Record<string, unknown>>,
    fields: string,
    type = `${name.charAt(0).toUpperCase()}${name.slice(1)}Input`,
  ): Promise<{ readonly answered: Answered; readonly payload: Readonly<Record<string, never>> | null }> {
    const { data, errors } = await this.server(turn).graphql<Record<string, Readonly<Record<string, never>>>>(
      secret,
      `mutation ($input: ${type}!) { ${name}(input: $input) { ${fields} } }`,
      { input },
    );
    const error = errors?.[0];
    const code = error === undefined ? 'OK' : (error.extensions?.code ?? 'NONE');
    return { answered: { code, message: error?.message ?? '' }, payload: data?.[name] ?? null };
  }

  /** At the server whose turn it is. */
  async perform(act: Act, turn: number): Promise<Answered> {
    const { secret, as } = this.#caller('by' in act ? act.by : { who: null, token: null }, turn);
    const simply = async (
      name: string,
      input: Readonly<Record<string, unknown>>,
      fields: string,
      type?: string,
    ): Promise<Answered> =>
      (await this.mutate(secret, turn, name, { ...input, ...as }, fields, type)).answered;
    switch (act.act) {
      case 'delegate': {
        const input = this.#delegation(act);
        this.#inputs.set(act.name, input);
        return this.#tokenFrom(secret, turn, 'delegateRun', { ...input, ...as }, act.name, act.name);
      }
      case 'again':
        return this.#tokenFrom(
          secret,
          turn,
          'delegateRun',
          { ...this.#inputs.get(act.run), ...as },
          act.name,
          act.run,
        );
      case 'claim':
        return this.#tokenFrom(
          secret,
          turn,
          'claimRun',
          { runId: this.idOf(act.run), ...as },
          act.name,
          act.run,
        );
      case 'update': {
        const { status, expiresInSeconds, text } = act;
        const given = status === null ? {} : { status, result: text, error: text };
        return simply('updateRun', { runId: this.idOf(act.run), expiresInSeconds, ...given }, 'run { id }');
      }
      case 'lapse':
        return this.#lapse(act.run);
      case 'tool':
        return this.#call(act.tool, act.text, secret, turn, {
          ...as,
          ...(act.by.token === null ? { runId: this.idOf(act.run) } : {}),
        });
      case 'append':
        return simply(
          'appendScratchpadEntry',
          { scratchpadId: this.idOf(`pad ${act.pad}`), content: act.text },
          'cursor',
        );
      case 'write':
        return simply(
          'setScratchpadContent',
          { scratchpadId: this.idOf(`pad ${act.pad}`), text: act.text },
          'cursor',
        );
      case 'clear':
        return simply(
          'clearScratchpadEntries',
          { scratchpadId: this.idOf(`pad ${act.pad}`) },
          'scratchpad { id }',
          'ClearScratchpadInput',
        );
      case 'post':
        return simply('postMessage', { threadId: this.idOf(act.thread), content: act.text }, 'cursor');
      case 'store':
        return simply(
          'storeMemory',
          { threadId: this.idOf(act.thread), payload: { memo: act.text } },
          'entry { id }',
        );
      case 'remove':
      case 'readd':
        // Whoever leaves by itself is as much away.
        if (act.act === 'remove' && turn % 3 === 0)
          return simply(
            'leaveThread',
            { threadId: this.idOf(act.thread), as: this.idOf(`who ${act.who}`) },
            'cursor',
          );
        return simply(
          `${act.act}Participant`,
          { threadId: this.idOf(act.thread), participantId: this.idOf(`who ${act.who}`) },
          'cursor',
          'ParticipantStateInput',
        );
      case 'deletePad':
        return simply('deleteScratchpad', { scratchpadId: this.idOf(`pad ${act.pad}`) }, 'deletedId');
      case 'deleteThread':
        return simply('deleteThread', { threadId: this.idOf(act.thread) }, 'deletedId');
      default:
        return act satisfies never;
    }
  }

  #delegation(act: Extract<Act, { readonly act: 'delegate' }>): Readonly<Record<string, unknown>> {
    const { access, parent, conversation, maxToolCalls, expiresInSeconds, text, name } = act;
    return {
      participantId: this.idOf(`who ${act.worker}`),
      ...(act.pad === null ? {} : { scratchpadId: this.idOf(`pad ${act.pad}`) }),
      ...(act.locator === null ? {} : { metaData: { scratch_pad_thread: this.idOf(act.locator) } }),
      ...(access === null ? {} : { scratchpadAccess: access }),
      ...(parent === null ? {} : { parentRunId: this.idOf(parent) }),
      ...(conversation === null ? {} : { conversationThreadId: this.idOf(conversation) }),
      maxToolCalls,
      expiresInSeconds,
      input: { task: text },
      idempotencyKey: name,
    };
  }

  async #tokenFrom(
    secret: string,
    turn: number,
    mutation: string,
    input: Readonly<Record<string, unknown>>,
    tokenName: string,
    runName: string,
  ): Promise<Answered> {
    const { answered, payload } = await this.mutate(secret, turn, mutation, input, 'token run { id }');
    if (payload === null) return answered;
    const { token, run } = payload as unknown as { token: string; run: { id: string } };
    this.secrets.set(tokenName, token);
    if (runName === tokenName) this.know(runName, run.id);
    return answered;
  }

  /** As if its time had come: time is not waited for. */
  async #lapse(run: string): Promise<Answered> {
    const { database } = this.servers[0].services;
    await database.script(`
      UPDATE runs SET expires_at = clock_timestamp() - interval '1 second' WHERE id = '${this.idOf(run)}' AND finished_at IS NULL;
      UPDATE credentials c SET expires_at = r.expires_at FROM runs r
        WHERE r.id = '${this.idOf(run)}' AND r.finished_at IS NULL AND c.run_id = r.id AND c.revoked_at IS NULL;`);
    return { code: 'OK', message: '' };
  }

  async #call(
    tool: Tool,
    text: string,
    secret: string,
    turn: number,
    where: Readonly<Record<string, string>>,
  ): Promise<Answered> {
    const { answered, payload } = await this.mutate(
      secret,
      turn,
      'executeTool',
      { name: tool, arguments: argumentsOf(tool, text), ...where },
      'output isError',
    );
    if (payload === null) return answered;
    const { output, isError } = payload as unknown as { output: string; isError: boolean };
    return { ...answered, isError, shows: marksOf(output) };
  }
}

const argumentsOf = (tool: Tool, text: string): Readonly<Record<string, unknown>> => {
  switch (tool) {
    case 'read_scratchpad':
      return {};
    case 'append_scratchpad':
      return { note: text };
    case 'update_scratchpad':
    case 'send_message':
      return { content: text };
    case 'store':
      return { memory: { memo: text } };
    case 'recall':
      return { query: '' };
    default:
      return tool satisfies never;
  }
};

export const createWorld = async (servers: readonly [Here, Server]): Promise<World> => {
  const [here] = servers;
  const tenant = await createTenant(here, PEOPLE);
  const world = new World(servers, tenant.apiKey);
  for (const name of NAMES) {
    const { id = '', token = '' } = tenant.participants[name] ?? {};
    world.know(`who ${name}`, id);
    world.secrets.set(name, token);
  }
  const make = async (name: string, input: Readonly<Record<string, unknown>>, fields: string) => {
    const { payload, answered } = await world.mutate(world.apiKey, 0, name, input, fields);
    if (payload === null) throw new Error(`${name}: ${answered.code} ${answered.message}`);
    return payload as unknown as Readonly<Record<string, { readonly id: string }>>;
  };
  for (const name of LISTED)
    await make(
      'updateParticipant',
      { participantId: world.idOf(`who ${name}`), listed: true },
      'participant { id }',
    );
  for (const [name, members] of Object.entries(THREADS)) {
    const participantIds = members.map((who) => world.idOf(`who ${who}`));
    const { thread } = await make('openThread', { participantIds }, 'thread { id }');
    world.know(name, thread?.id ?? '');
  }
  for (const name of PADS) {
    const { scratchpad } = await make(
      'createScratchpad',
      { threadId: world.idOf(name) },
      'scratchpad { id }',
    );
    world.know(`pad ${name}`, scratchpad?.id ?? '');
  }
  await make('setMemoryPolicy', { threadId: world.idOf(OPEN_MEMORY), threadOnly: false }, 'thread { id }');
  return world;
};
