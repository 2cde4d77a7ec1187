import { AGENTS, type Command, THREAD_NAMES, THREADS } from './choose.ts';
import { Hands, type Held } from './hands.ts';
import { letLapse } from './lapse.ts';
import { GIVEN, type Told } from './stream.ts';
import { type Asked, codeOf, type World } from './world.ts';

const LARGE = 120_000;

/** Does what a schedule says, as one tenant. */
export class Play {
  readonly world: World;
  readonly hands: Hands;
  /** Messages that stand in the record, with who wrote them. */
  readonly #written: { readonly id: string; readonly who: string; readonly thread: string }[] = [];
  readonly #away = new Set<string>();

  private constructor(world: World, hands: Hands) {
    this.world = world;
    this.hands = hands;
  }

  static async of(world: World): Promise<Play> {
    return new Play(world, await Hands.of(world));
  }

  async step(commands: readonly Command[]): Promise<void> {
    await Promise.all(commands.map((command) => this.#do(command)));
  }

  async #do(command: Command): Promise<void> {
    const { on } = command;
    switch (command.act) {
      case 'post': {
        const thread = THREAD_NAMES[command.thread] ?? 'both';
        if (!THREADS[thread].some((who) => who === command.who)) return;
        await this.post(command.who, thread, on, { isLarge: command.isLarge });
        return;
      }
      case 'take':
        await this.take(command.agent, on, command.max, command.batch);
        return;
      case 'finish': {
        const one = this.#pick(command.which, command.isLate);
        if (one !== undefined) await this.#finish(one, command.how, on);
        return;
      }
      case 'lapse': {
        const one = this.#pick(command.which, false);
        if (one !== undefined) await this.lapse(one.agent, one.thread, one.deliveryId);
        return;
      }
      case 'timePasses':
        await this.lapse(command.agent, THREAD_NAMES[command.thread] ?? 'both', null);
        return;
      case 'extend': {
        const one = this.#pick(command.which, true);
        if (one !== undefined) await this.#extend(one, command.seconds, on);
        return;
      }
      case 'retract':
        await this.#retract(command.which, on);
        return;
      case 'move': {
        const thread = THREAD_NAMES[command.thread] ?? 'both';
        if (THREADS[thread].some((who) => who === command.agent)) await this.move(command.agent, thread, on);
        return;
      }
      case 'open':
        await this.hands.open(command.agent, on, command.batch, command.standby);
        return;
      case 'leave':
        await this.hands.leave(this.#stream(command.which), command.isRude);
        return;
      case 'pause':
        this.#stream(command.which)?.pause();
        return;
      case 'resume':
        this.#stream(command.which)?.resume();
        return;
      default:
        command satisfies never;
    }
  }

  #stream(which: number) {
    const open = this.hands.streams.filter(({ isOver }) => !isOver);
    return open[which % Math.max(1, open.length)];
  }

  /** One that it has in hand as far as it knows, the oldest first; `isLate`: any of the last ones. */
  #pick(which: number, isLate: boolean): Held | undefined {
    const among = isLate ? this.hands.held.slice(-24) : this.hands.held.filter(({ isDone }) => !isDone);
    return among.at((isLate ? -1 - which : which) % Math.max(1, among.length));
  }

  async post(
    who: string,
    thread: string,
    on: number,
    { isLarge = false, answers = null }: { isLarge?: boolean; answers?: string | null } = {},
  ): Promise<string> {
    const what = this.world.text();
    const { code, data, span } = await this.world.call<{
      postMessage: { message: { id: string; seq: number } };
    }>(
      who,
      on,
      'mutation ($input: PostMessageInput!) { postMessage(input: $input) { message { id seq } } }',
      {
        input: {
          threadId: this.world.threadId(thread),
          content: isLarge ? what.padEnd(LARGE, '.') : what,
          deliveryId: answers,
        },
      },
    );
    codeOf(code, ['OK', 'PARTICIPANT_NOT_ACTIVE', ...(answers === null ? [] : (['CONFLICT'] as const))]);
    const message = data?.postMessage.message ?? null;
    if (message !== null) this.#written.push({ id: message.id, who, thread });
    if (code === 'OK' || code === 'LOST')
      this.world.asked.push({
        kind: 'MESSAGE',
        thread,
        span,
        what,
        seq: message?.seq ?? null,
        answers: answers === null ? null : { agent: who, deliveryId: answers },
      });
    else if (answers !== null)
      this.world.saw(who, thread, span, {
        kind: 'REFUSED',
        deliveryId: answers,
        code: codeOf(code, ['CONFLICT', 'PARTICIPANT_NOT_ACTIVE']),
      });
    return code;
  }

  async take(agent: string, on: number, max: number, batch: number): Promise<readonly Told[] | null> {
    const { code, data, span } = await this.world.call<{ takePending: { deliveries: Told[] } }>(
      agent,
      on,
      `mutation ($input: TakePendingInput!) { takePending(input: $input) { deliveries { ${GIVEN} } } }`,
      { input: { max, batch } },
    );
    codeOf(code, ['OK']);
    if (data === null) {
      this.world.missed(agent, batch, span);
      this.world.unread(agent, span);
    }
    for (const told of data?.takePending.deliveries ?? []) this.hands.told(agent, batch, span.from, told);
    return data?.takePending.deliveries ?? null;
  }

  async #finish(one: Held, how: 'delivery' | 'answer' | 'upTo' | 'part', on: number): Promise<void> {
    if (how === 'answer') {
      const code = await this.post(one.agent, one.thread, on, { answers: one.deliveryId });
      if (code === 'OK') one.isDone = true;
      return;
    }
    const place = how === 'part' ? one.events[0] : one.events.at(-1);
    await this.acknowledge(
      one,
      on,
      how === 'upTo' ? null : one.deliveryId,
      how === 'delivery' ? null : (place ?? null),
    );
  }

  async acknowledge(
    one: Held,
    on: number,
    deliveryId: string | null,
    place: { readonly seq: number; readonly cursor: string } | null,
  ): Promise<void> {
    const { code, span } = await this.world.call(
      one.agent,
      on,
      'mutation ($input: AcknowledgeInput!) { acknowledge(input: $input) { pendingCount } }',
      { input: { threadId: this.world.threadId(one.thread), deliveryId, upTo: place?.cursor } },
    );
    if (code !== 'LOST') one.isDone = true;
    this.world.saw(one.agent, one.thread, span, {
      kind: 'ACKNOWLEDGED',
      deliveryId,
      upTo: place?.seq ?? null,
      code: codeOf(code, ['OK', 'CONFLICT']),
    });
  }

  async #extend(one: Held, seconds: number, on: number): Promise<void> {
    const { code, span } = await this.world.call(
      one.agent,
      on,
      'mutation ($input: ExtendLeaseInput!) { extendLease(input: $input) { leaseExpiresAt } }',
      { input: { deliveryId: one.deliveryId, seconds } },
    );
    this.world.saw(one.agent, one.thread, span, {
      kind: 'EXTENDED',
      deliveryId: one.deliveryId,
      seconds,
      code: codeOf(code, ['OK', 'CONFLICT']),
    });
  }

  lapse(agent: string, thread: string, deliveryId: string | null): Promise<void> {
    return letLapse(this.world, agent, thread, deliveryId);
  }

  async #retract(which: number, on: number): Promise<void> {
    const message = this.#written.at(-1 - (which % Math.max(1, this.#written.length)));
    if (message === undefined) return;
    const { code, data, span } = await this.world.call<{ retractMessage: { retraction: { seq: number } } }>(
      message.who,
      on,
      'mutation ($input: RetractMessageInput!) { retractMessage(input: $input) { retraction { seq } } }',
      { input: { messageId: message.id } },
    );
    if (code === 'ALREADY_RETRACTED') return;
    codeOf(code, ['OK', 'PARTICIPANT_NOT_ACTIVE']);
    this.#asked('RETRACTION', message.thread, message.id, {
      code,
      span,
      seq: data?.retractMessage.retraction.seq ?? null,
    });
  }

  /** Removes it, or lets it come back. */
  async move(agent: string, thread: string, on: number): Promise<void> {
    const key = `${agent} ${thread}`;
    const isAway = this.#away.has(key);
    const act = isAway ? 'readdParticipant' : 'removeParticipant';
    const { code, data, span } = await this.world.call<Record<string, { event: { seq: number } }>>(
      null,
      on,
      `mutation ($input: ParticipantStateInput!) { ${act}(input: $input) { event { seq } } }`,
      { input: { threadId: this.world.threadId(thread), participantId: this.world.idOf(agent) } },
    );
    // Of two at once, or of what was lost: it is so already.
    if (code !== 'INVALID_TRANSITION') codeOf(code, ['OK']);
    if (code !== 'LOST' && isAway) this.#away.delete(key);
    if (code !== 'LOST' && !isAway) this.#away.add(key);
    const seq = data?.[act]?.event.seq ?? null;
    this.#asked('CHANGE', thread, agent, { code, span, seq });
    if (seq !== null) await this.hands.hears(agent, isAway ? 'READDED' : 'REMOVED', thread, seq, span.from);
  }

  #asked(
    kind: Asked['kind'],
    thread: string,
    what: string,
    { code, span, seq }: Pick<Asked, 'span' | 'seq'> & { readonly code: string },
  ): void {
    if (code === 'OK' || code === 'LOST')
      this.world.asked.push({ kind, thread, span, what, seq, answers: null });
  }

  /** As the record says. */
  knows(agent: string, thread: string, isAway: boolean): void {
    if (isAway) this.#away.add(`${agent} ${thread}`);
    else this.#away.delete(`${agent} ${thread}`);
  }

  /** What waits for each agent in each thread, when nothing else is done. */
  async look(on: number): Promise<void> {
    for (const agent of AGENTS)
      for (const thread of THREAD_NAMES)
        if (THREADS[thread].some((who) => who === agent)) await this.pending(agent, thread, on);
  }

  async pending(agent: string, thread: string, on: number): Promise<readonly number[]> {
    const { code, data, span } = await this.world.call<{
      peekPending: { count: number; messages: { seq: number }[] };
    }>(
      agent,
      on,
      'query ($threadId: ID!) { peekPending(threadId: $threadId, first: 200) { count messages { seq } } }',
      { threadId: this.world.threadId(thread) },
    );
    if (codeOf(code, ['OK']) === 'LOST' || data === null) throw new Error('Nobody was to be killed.');
    const { count, messages } = data.peekPending;
    const seqs = messages.map(({ seq }) => seq);
    if (count !== seqs.length) throw new Error(`${count} are said to wait, and ${seqs.length} do.`);
    this.world.saw(agent, thread, span, { kind: 'PENDING', seqs });
    return seqs;
  }
}
