import { acknowledge, changeState, extend, leave, open, post, retract } from './acts.ts';
import { type Command, PARTICIPANTS } from './commands.ts';
import {
  isMember,
  isRetracted,
  lastEvent,
  type OracleEvent,
  type OracleThread,
  sees,
  stateNow,
} from './rules.ts';
import type { World } from './world.ts';

/** Performs commands one after the other, beginning with a thread of the first three. */
export const play = async (
  world: World,
  commands: readonly Command[],
  between: () => void = () => {},
): Promise<void> => {
  if (world.threads.length === 0) await open(world, world.handles.slice(0, 3));
  for (const command of commands) {
    await perform(world, command);
    between();
  }
};

/** Brings everybody back and says a last word everywhere, so that whoever listens has something to wait for. */
export const endWithEverybody = async (world: World): Promise<void> => {
  for (const thread of world.threads) {
    for (const member of thread.members)
      if (stateNow(thread, member) === 'REMOVED') await changeState(world, thread, member, 'ACTIVE');
    await post(world, thread, thread.members[0] ?? '');
  }
};

type Act<Name extends Command['act']> = Extract<Command, { readonly act: Name }>;

const perform = async (world: World, command: Command): Promise<void> => {
  if (command.act === 'open') {
    const members = chosenOf(world, command.members);
    if (members.length >= 2) await open(world, members);
    return;
  }
  if (command.act === 'retract') return retractSomething(world, command);
  const thread = pick(world.threads, command.thread);
  const active = thread.members.filter((member) => stateNow(thread, member) === 'ACTIVE');
  const away = thread.members.filter((member) => stateNow(thread, member) === 'REMOVED');
  const among = (likely: readonly string[], index: number): string =>
    pick(command.wild || likely.length === 0 ? world.handles : likely, index);
  switch (command.act) {
    case 'post':
      return postSomething(world, thread, among(active, command.by), command);
    case 'remove':
      return changeState(world, thread, among(active, command.member), 'REMOVED');
    case 'readd':
      return changeState(world, thread, among(away, command.member), 'ACTIVE');
    case 'leave':
      return leave(world, thread, among(active, command.by));
    case 'extend': {
      const by = command.by === null ? null : among(active, command.by);
      return extend(world, thread, by, chosenOf(world, command.added));
    }
    case 'acknowledge': {
      const by = among(thread.members, command.by);
      const reach = command.wild || !isMember(by, thread) ? thread.events.length : lastEvent(by, thread).seq;
      return acknowledge(world, thread, by, command.position % (reach + 1));
    }
    default:
      return command satisfies never;
  }
};

const postSomething = async (
  world: World,
  thread: OracleThread,
  sender: string,
  { mention, source, originating, acknowledge: upTo, condition, repeat, wild }: Act<'post'>,
): Promise<void> => {
  const { events } = world;
  const seen = wild ? events : events.filter((event) => sees(sender, event));
  const handle = mention === null ? null : pick(world.handles, mention);
  const end = isMember(sender, thread) ? lastEvent(sender, thread).seq : 0;
  await post(world, thread, sender, {
    mentions: handle !== null && (wild || isMember(handle, thread)) ? [handle] : [],
    source: source === null || seen.length === 0 ? undefined : pick(seen, source),
    originating: originating === null ? null : pick(events, originating),
    acknowledge: upTo === null ? null : upTo % (thread.events.length + 1),
    // Mostly what it has seen last, so that most pass.
    onlyIfNothingAfter:
      condition === null ? null : condition % 3 === 0 ? condition % (thread.events.length + 1) : end,
    hasKey: true,
    isRepeated: repeat,
  });
};

const retractSomething = async (world: World, { target, by, wild }: Act<'retract'>): Promise<void> => {
  const own = world.events.filter(
    (event) =>
      event.type === 'MESSAGE' &&
      stateNow(event.thread, event.sender) === 'ACTIVE' &&
      !isRetracted(null, event),
  );
  const event: OracleEvent = pick(wild || own.length === 0 ? world.events : own, target);
  const actor = !wild && event.type === 'MESSAGE' ? event.sender : pick(world.handles, by);
  await retract(world, event, actor);
};

/** By one bit each. */
const chosenOf = (world: World, bits: number): string[] =>
  world.handles.slice(0, PARTICIPANTS).filter((_, index) => (bits & (1 << index)) !== 0);

const pick = <T>(items: readonly T[], index: number): T => {
  const item = items[index % items.length];
  if (item === undefined) throw new Error('There is nothing to choose from.');
  return item;
};
