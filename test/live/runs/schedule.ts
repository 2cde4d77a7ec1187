import { expect } from 'vitest';
import type { Server } from '../../support/app.ts';
import { until } from '../../support/until.ts';
import type { Act, Answer } from './acts.ts';
import { type Command, choose } from './choose.ts';
import { actualOf } from './look.ts';
import { type Model, newModel, runOf, tokenOf } from './model.ts';
import { outcomesOf } from './orders.ts';
import { allowedOf, expectedOf, type Shown, type Viewer, viewersOf } from './shown.ts';
import { RunFollower, TokenSocket } from './watch.ts';
import { type Answered, createWorld, type Here, marksOf, type World } from './world.ts';

/** Plays a schedule at two servers, and compares after each step all that anybody is shown with the model. */
export const playSchedule = async (
  servers: readonly [Here, Server],
  schedule: readonly (readonly Command[])[],
): Promise<void> => {
  const world = await createWorld(servers);
  const play = new Play(world);
  try {
    for (const [index, commands] of schedule.entries()) await play.step(index, commands);
  } finally {
    await play.close();
  }
};

const fits = (answer: Answer, { code, isError, shows }: Answered): boolean =>
  answer.codes.includes(code) &&
  (answer.isError === undefined || answer.isError === isError) &&
  (answer.shows === undefined || isError === true || JSON.stringify(answer.shows) === JSON.stringify(shows));

class Play {
  readonly #world: World;
  /** Where the model may be: one, but for a while after two acts whose order cannot be told yet. */
  #models: Model[] = [newModel()];
  readonly #followers: RunFollower[] = [];
  readonly #sockets = new Map<string, TokenSocket>();
  /** What was done, for whoever reads of a failure. */
  readonly #story: string[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  get #model(): Model {
    const [model] = this.#models;
    if (model === undefined) throw new Error('No order of what was done fits.');
    return model;
  }

  async step(index: number, commands: readonly Command[]): Promise<void> {
    const isAlone = commands.length === 1;
    const acts = commands.flatMap(
      (command, place) => choose(this.#model, command, index * 2 + place, isAlone) ?? [],
    );
    if (acts.length === 0) return;
    for (const model of this.#models) for (const token of Object.values(model.tokens)) token.isFresh = false;
    const answers = await Promise.all(acts.map((act, place) => this.#world.perform(act, index + place)));
    const endedAt = performance.now();
    this.#story.push(
      acts.map((act, place) => `${JSON.stringify(act)} → ${JSON.stringify(answers[place])}`).join(' ∥ '),
    );
    this.#orders(acts, answers);
    await this.#learn(acts);
    const isLapse = acts.some(({ act }) => act === 'lapse');
    try {
      // Before the first run there is nothing to see of runs.
      if (Object.keys(this.#model.runs).length === 0) return;
      await this.#tokensEnd(acts, endedAt);
      await this.#compare(index);
      await this.#follow(index, isLapse || acts.length > 1);
    } catch (error) {
      throw new Error(`${told(error)}\n${this.#story.join('\n')}`, { cause: error });
    }
  }

  /** Keeps the orders in which what was done would have been answered as it was. */
  #orders(acts: readonly Act[], answers: readonly Answered[]): void {
    const all = this.#models.flatMap((model) => outcomesOf(model, acts));
    const fitting = all.filter((outcome) =>
      outcome.answers.every((answer, place) => {
        const answered = answers[place];
        return answered !== undefined && fits(answer, answered);
      }),
    );
    if (fitting.length === 0)
      throw new Error(
        `No order answers so: ${JSON.stringify(all.map((outcome) => outcome.answers))}\n${this.#story.join('\n')}`,
      );
    const distinct = new Map(fitting.map(({ model }) => [JSON.stringify(model), model]));
    this.#models = [...distinct.values()];
  }

  /** The private conversations of new runs, by the user's view. */
  async #learn(acts: readonly Act[]): Promise<void> {
    for (const act of acts) {
      if (act.act !== 'delegate' || this.#world.ids.get(act.name) === undefined) continue;
      const { data } = await this.#world
        .server(0)
        .graphql<{ run: { conversationThreadId: string } }>(
          this.#world.apiKey,
          'query ($id: ID!) { run(id: $id) { conversationThreadId } }',
          { id: this.#world.idOf(act.name) },
        );
      if (act.conversation === null) this.#world.know(`of ${act.name}`, data?.run.conversationThreadId ?? '');
    }
  }

  /** Whoever holds a token that ended is told so at every door of each process, within a second. */
  async #tokensEnd(acts: readonly Act[], endedAt: number): Promise<void> {
    const lapsed = acts.flatMap((act) => (act.act === 'lapse' ? [act.run] : []));
    if (lapsed.length > 0)
      await until(async () => {
        const { shown } = await actualOf(this.#world, { kind: 'OWNER' }, 0);
        return lapsed.every((name) => isFinal(shown, name));
      }, 50);
    // A token whose time is over is dead by itself; what is below its run, once that is said.
    const saidAt = lapsed.length > 0 ? performance.now() : endedAt;
    await this.#settle(endedAt);
    const dead = Object.values(this.#model.tokens).filter((token) => token.dead !== null && token.isFresh);
    await Promise.all(
      dead.map(async ({ name, run, dead: why }) => {
        const secret = this.#world.secretOf(name);
        const since = lapsed.includes(run) ? endedAt : saidAt;
        await Promise.all([0, 1].map((turn) => isRefused(this.#world, secret, turn, since)));
        const socket = this.#sockets.get(name);
        if (socket === undefined) return;
        const reasons = this.#models.map((model) => model.tokens[name]?.dead);
        const { code, ended, at } = await socket.end();
        const isKnown = reasons.some((reason) => reason === ended);
        expect({ name, code, ended }).toEqual({ name, code: 4403, ended: isKnown ? ended : why });
        // Also where the machine is busy.
        expect(at - saidAt, `The socket of ${name} was closed late.`).toBeLessThan(3_000);
      }),
    );
  }

  /** Of two who asked for the same token at once one has it: a second later it is known which. */
  async #settle(endedAt: number): Promise<void> {
    const lives = (model: Model, name: string): boolean => model.tokens[name]?.dead === null;
    const unsettled = Object.keys(this.#model.tokens).filter((name) =>
      this.#models.some((model) => lives(model, name) !== lives(this.#model, name)),
    );
    if (unsettled.length > 0) await until(() => performance.now() - endedAt > 1_000);
    for (const name of unsettled) {
      const isAlive = !(await isDead(this.#world.server(0), this.#world.secretOf(name)));
      this.#models = this.#models.filter((model) => lives(model, name) === isAlive);
    }
  }

  /** What everybody is shown is what one of the models says, and nothing else stands in any answer. */
  async #compare(index: number): Promise<void> {
    const viewers = viewersOf(this.#model);
    const looks = await Promise.all(
      viewers.map((viewer, place) => actualOf(this.#world, viewer, index + place)),
    );
    const agreeing = this.#models.filter((model) =>
      viewers.every((viewer, place) =>
        isSame(expectedOf(model, inModel(model, viewer)), looks[place]?.shown),
      ),
    );
    if (agreeing.length === 0)
      for (const [place, viewer] of viewers.entries())
        expect({ ...nameOf(viewer), ...looks[place]?.shown }).toEqual({
          ...nameOf(viewer),
          ...expectedOf(this.#model, viewer),
        });
    if (agreeing.length === 0) throw new Error('No model agrees with all that is shown.');
    this.#models = agreeing;
    const shownTo = new Map(
      viewers.map((viewer, place) => [JSON.stringify(nameOf(viewer)), looks[place]?.shown]),
    );
    for (const [place, viewer] of viewers.entries()) {
      const allowed = allowedOf(this.#model, viewer);
      const look = looks[place];
      const leaked = marksOf(look?.text ?? '').filter((mark) => !allowed.has(mark));
      expect({ ...nameOf(viewer), leaked }).toEqual({ ...nameOf(viewer), leaked: [] });
      if (viewer.kind === 'TOKEN') throughOwnEyes(viewer, look?.shown, shownTo);
    }
  }

  /** Whoever follows is told of the same. */
  async #follow(index: number, isLoose: boolean): Promise<void> {
    const model = this.#model;
    for (const run of Object.values(model.runs)) {
      if (this.#followers.some((follower) => follower.run === run.name)) continue;
      const viewer = [null, run.delegator, run.worker][index % 3] ?? null;
      const follower = new RunFollower(this.#world, run, viewer, index);
      this.#followers.push(follower);
      await follower.compare(this.#models, true);
    }
    for (const follower of this.#followers) await follower.compare(this.#models, isLoose);
    for (const token of Object.values(model.tokens)) {
      if (token.dead !== null) continue;
      const known = this.#sockets.get(token.name);
      if (known === undefined)
        this.#sockets.set(token.name, await TokenSocket.open(this.#world, model, token, index + 1));
      else await known.compare(this.#models);
    }
    for (const [name, socket] of [...this.#sockets]) {
      for (const one of this.#models)
        for (const mark of allowedOf(one, tokenViewer(one, name))) socket.allowed.add(mark);
      expect({ name, leaked: socket.leaked }).toEqual({ name, leaked: [] });
      if (model.tokens[name]?.dead === null) continue;
      this.#sockets.delete(name);
      await socket.close();
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#followers, ...this.#sockets.values()].map((one) => one.close()));
  }
}

/** With both sides, of what was compared. */
const told = (error: unknown): string => {
  const { message, actual, expected } = error as Error & { actual?: unknown; expected?: unknown };
  if (actual === undefined || actual === null || typeof actual !== 'object') return message;
  const wanted = (expected ?? {}) as Readonly<Record<string, unknown>>;
  return Object.entries(actual)
    .filter(([key, value]) => !isSame(value, wanted[key]))
    .map(([key, value]) => `${key}: ${JSON.stringify(value)} instead of ${JSON.stringify(wanted[key])}`)
    .concat(message, JSON.stringify(Object.values(wanted)[0]))
    .join('\n');
};

const isSame = (one: unknown, other: unknown): boolean => canonical(one) === canonical(other);
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

const isFinal = (shown: Shown, name: string): boolean => {
  const { status } = (shown.runs[name] ?? { status: '' }) as { status: string };
  return !['QUEUED', 'IN_PROGRESS', 'INPUT_REQUIRED'].includes(status);
};

const nameOf = (viewer: Viewer): { readonly viewer: string } => ({
  viewer: viewer.kind === 'OWNER' ? 'owner' : viewer.kind === 'TOKEN' ? viewer.token.name : viewer.name,
});

const tokenViewer = (model: Model, name: string): Viewer => {
  const token = tokenOf(model, name);
  return { kind: 'TOKEN', token, run: runOf(model, token.run) };
};

const inModel = (model: Model, viewer: Viewer): Viewer =>
  viewer.kind === 'TOKEN' ? tokenViewer(model, viewer.token.name) : viewer;

/** Of the scratchpad a run shows no more than whose eyes it looks through are shown themselves. */
const throughOwnEyes = (
  { run }: Extract<Viewer, { readonly kind: 'TOKEN' }>,
  shown: Shown | undefined,
  all: ReadonlyMap<string, Shown | undefined>,
): void => {
  if (run.padViewer === null || run.pad === null) return;
  const own = all.get(JSON.stringify({ viewer: run.padViewer }))?.pads[run.pad];
  const through = marksOf(JSON.stringify(shown?.pads[run.pad] ?? {}));
  const theirs = new Set(marksOf(JSON.stringify(own ?? {})));
  expect(through.filter((mark) => !theirs.has(mark))).toEqual([]);
};

const isDead = async (server: Server, secret: string): Promise<boolean> =>
  (await server.graphql(secret, '{ viewer { run { id } } }')).errors?.[0]?.extensions?.code ===
  'UNAUTHENTICATED';

/** What is sent later than a second after the ending is refused, at each door. */
const isRefused = async (world: World, secret: string, turn: number, endedAt: number): Promise<void> => {
  const server = world.server(turn);
  for (;;) {
    const sentAt = performance.now();
    if (await isDead(server, secret)) break;
    expect(sentAt - endedAt, 'Its token lives on.').toBeLessThan(1_000);
  }
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  const rest = await fetch(new URL('/v1/scratchpads', server.url), { headers });
  const mcp = await fetch(new URL('/mcp', server.url), {
    method: 'POST',
    headers: { ...headers, accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  });
  await Promise.all([rest.text(), mcp.text()]);
  expect([rest.status, mcp.status]).toEqual([401, 401]);
};
