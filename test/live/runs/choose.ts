import fc from 'fast-check';
import { type Act, type By, type Status, TOOLS } from './acts.ts';
import { ACCESS, isOpen, type Model, type ModelRun, NAMES, PADS, THREADS } from './model.ts';

/** One thing that is done: which, and a number that everything else about it is drawn from when its turn comes. */
export interface Command {
  readonly kind: (typeof KINDS)[number];
  readonly number: number;
  /** Drawn from everything, not from what makes sense: most of that is refused. */
  readonly wild: boolean;
}

const KINDS = [
  ...Array<'delegate'>(6).fill('delegate'),
  ...Array<'child'>(3).fill('child'),
  ...Array<'claim'>(4).fill('claim'),
  ...Array<'move'>(6).fill('move'),
  ...Array<'end'>(2).fill('end'),
  ...Array<'tool'>(8).fill('tool'),
  ...Array<'write'>(6).fill('write'),
  ...Array<'say'>(4).fill('say'),
  ...Array<'member'>(6).fill('member'),
  'again',
  'again',
  'lapse',
  'clear',
  'deletePad',
  'deleteThread',
] as const;

const number = fc.nat({ max: 2 ** 31 - 1 });
const command: fc.Arbitrary<Command> = fc.record({
  kind: fc.constantFrom(...KINDS),
  number,
  wild: fc.nat({ max: 5 }).map((value) => value === 5),
});

const of = (kind: Command['kind']): fc.Arbitrary<readonly Command[]> =>
  fc.tuple(fc.record({ kind: fc.constant(kind), number, wild: fc.constant(false) }));

/**
 * What is done one after the other; two in one place are begun together. First things are written and members come and go, so
 * that not everybody sees the same when the first run begins.
 */
export const schedules = (length: number): fc.Arbitrary<readonly (readonly Command[])[]> =>
  fc
    .tuple(
      fc.tuple(...(['write', 'member', 'write', 'write', 'member', 'member', 'say'] as const).map(of)),
      fc.array(
        fc.oneof(
          { weight: 3, arbitrary: fc.tuple(command) },
          { weight: 1, arbitrary: fc.tuple(command, command) },
        ),
        { minLength: Math.floor(length / 2), maxLength: length, size: 'max' },
      ),
    )
    .map(([before, then]) => [...before, ...then]);

/** Draws one thing after the other from a number. */
const drawing = (number: number) => {
  let state = number;
  // Mulberry32.
  const below = (count: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % count;
  };
  const pick = <T>(items: readonly T[]): T | undefined => items[below(Math.max(1, items.length))];
  return { pick, oneIn: (count: number): boolean => below(count) === 0 };
};
type Draw = ReturnType<typeof drawing>;

const OWNER: By = { who: null, token: null };
const as = (who: string): By => ({ who, token: null });
const holding = (token: string): By => ({ who: null, token });

/** What it comes to now, as act number `index`; null: there is nothing to do it with. */
export const choose = (
  model: Model,
  { kind, number, wild }: Command,
  index: number,
  isAlone: boolean,
): Act | null => {
  const draw = drawing(number);
  const { pick, oneIn } = draw;
  const text = `«${index}»`;
  const name = `${kind}-${index}`;
  const among = <T>(likely: readonly T[], all: readonly T[]): T | undefined =>
    pick(wild || likely.length === 0 ? all : likely);
  const runs = Object.values(model.runs);
  const open = runs.filter(isOpen);
  const tokens = Object.values(model.tokens);
  const alive = tokens.filter(({ dead }) => dead === null);
  const token = among(alive, tokens)?.name;
  const anyToken = token === undefined ? [] : [holding(token)];
  const run = among(open, runs);
  const threads = Object.keys(wild ? model.threads : THREADS).filter(
    (one) => wild || model.threads[one]?.isDeleted === false,
  );
  const pads = Object.keys(model.pads).filter((one) => wild || model.pads[one]?.isDeleted === false);
  const needsRun = ['child', 'claim', 'again', 'move', 'end', 'tool', 'lapse'].includes(kind);
  switch (needsRun && open.length === 0 && !wild ? 'delegate' : kind) {
    case 'delegate':
      return delegation(model, draw, { name, text, pads, isAlone, wild });
    case 'child': {
      if (run === undefined) return null;
      const own = alive.find((one) => one.run === run.name)?.name;
      const others = pick([as(run.worker), OWNER, as('boss')]) ?? OWNER;
      const by = own === undefined || oneIn(4) ? others : holding(own);
      return {
        act: 'delegate',
        name,
        text,
        by,
        worker: pick(wild ? NAMES : ['out', 'far', 'mate', run.worker]) ?? 'far',
        pad: pick([null, null, run.pad, wild ? 'duo' : null]) ?? null,
        locator: null,
        access: pick([null, null, ...ACCESS]) ?? null,
        parent: by.token === null ? run.name : null,
        conversation: oneIn(4) ? run.conversation : null,
        maxToolCalls: 3,
        expiresInSeconds: oneIn(7) ? 900 : null,
      };
    }
    case 'claim': {
      const wanted = among(
        runs.filter(({ status }) => status === 'QUEUED'),
        runs,
      );
      if (wanted === undefined) return null;
      const anybody = [OWNER, as('ann'), as('boss'), as('far'), ...anyToken];
      return {
        act: 'claim',
        name,
        run: wanted.name,
        by: wild ? (pick(anybody) ?? OWNER) : as(wanted.worker),
      };
    }
    case 'again': {
      const by = run && model.delegatedBy[run.name];
      return run === undefined || by === undefined ? null : { act: 'again', name, run: run.name, by };
    }
    case 'move':
    case 'end': {
      if (run === undefined) return null;
      const setsDeadline = kind === 'move' && oneIn(9);
      const status = wild ? pick(STATUSES) : statusFor(run, kind, draw);
      const own = alive.filter((one) => one.run === run.name).map((one) => holding(one.name));
      const callsOff = setsDeadline || status === 'CANCELLED';
      const theirs = callsOff
        ? [OWNER, OWNER, as(run.delegator ?? run.worker)]
        : [as(run.worker), ...own, ...own];
      return {
        act: 'update',
        run: run.name,
        by: pick(wild ? [OWNER, ...NAMES.map(as), ...anyToken] : theirs) ?? OWNER,
        status: setsDeadline ? null : (status ?? 'FAILED'),
        expiresInSeconds: setsDeadline ? 900 : null,
        text,
      };
    }
    case 'lapse':
      return run === undefined ? null : { act: 'lapse', run: run.name };
    case 'tool': {
      if (run === undefined) return null;
      const own = alive.filter((one) => one.run === run.name).map((one) => holding(one.name));
      const anybody = [as(run.worker), OWNER, as('boss'), as('mate'), ...anyToken];
      const by = pick(wild ? anybody : [as(run.worker), OWNER, ...own, ...own, ...own]) ?? OWNER;
      // A token that says nothing of the run works in its own.
      const at = by.token === null ? run.name : (model.tokens[by.token]?.run ?? run.name);
      return { act: 'tool', run: at, by, tool: pick(TOOLS) ?? 'recall', text };
    }
    case 'write': {
      const by = pick([...anyToken, as(pick(['ann', 'boss', 'mate', 'out', 'far']) ?? 'ann')]) ?? OWNER;
      const own = by.token === null ? null : model.runs[model.tokens[by.token]?.run ?? '']?.pad;
      const pad = own && !wild ? own : pick(pads);
      return pad === undefined ? null : { act: oneIn(3) ? 'write' : 'append', pad, by, text };
    }
    case 'clear': {
      const pad = pick(pads);
      return pad === undefined ? null : { act: 'clear', pad, by: pick([as('boss'), ...anyToken]) ?? OWNER };
    }
    case 'say': {
      const by = pick([...anyToken, as(pick(NAMES) ?? 'ann')]) ?? OWNER;
      const own = by.token === null ? null : model.runs[model.tokens[by.token]?.run ?? '']?.conversation;
      const theirs = threads.filter((one) => model.threads[one]?.members.includes(by.who ?? ''));
      const thread = own && !wild ? own : pick(wild ? threads : theirs);
      return thread === undefined
        ? null
        : { act: pick(['post', 'store'] as const) ?? 'post', thread, by, text };
    }
    case 'member': {
      // Mostly where there is a scratchpad, and those who have been away before: they see less than others.
      const homes = threads.filter((one) => PADS.includes(one));
      const found = model.threads[pick(oneIn(4) || homes.length === 0 ? threads : homes) ?? ''];
      if (found === undefined) return null;
      const away = found.members.filter((who) => !found.active.includes(who));
      const to = away.length > 0 && !oneIn(4) ? 'readd' : 'remove';
      const who = among(to === 'readd' ? away : found.active, NAMES);
      return who === undefined || who.startsWith('unit') ? null : { act: to, thread: found.name, who };
    }
    case 'deletePad': {
      const pad = pick(pads);
      return pad === undefined || oneIn(2) ? null : { act: 'deletePad', pad };
    }
    case 'deleteThread': {
      const thread = pick(oneIn(3) ? threads : open.map(({ conversation }) => conversation));
      return thread === undefined ? null : { act: 'deleteThread', thread };
    }
    default:
      return null;
  }
};

const delegation = (
  model: Model,
  { pick, oneIn }: Draw,
  {
    name,
    text,
    pads,
    isAlone,
    wild,
  }: { name: string; text: string; pads: readonly string[]; isAlone: boolean; wild: boolean },
): Act => {
  const isStrange = wild || oneIn(6);
  const pad = pick(pads) ?? null;
  const home = pad === null ? undefined : model.threads[pad];
  const members = isStrange ? NAMES : (home?.active ?? NAMES);
  const by = pick([OWNER, ...members.map(as), ...members.map(as)]) ?? OWNER;
  const worker = pick(isStrange ? NAMES : ['out', 'far', 'mate', 'mate', 'boss', by.who ?? 'boss']) ?? 'out';
  const talks = Object.values(model.threads).filter((one) =>
    [worker, by.who ?? worker].every((who) => isStrange || one.active.includes(who)),
  );
  // Where a thread has no scratchpad any more, another would be made.
  const isLocated = isAlone && oneIn(6) && pad !== null && model.pads[pad]?.isDeleted === false;
  return {
    act: 'delegate',
    name,
    text,
    by,
    worker,
    pad: isLocated || (wild && oneIn(2)) ? null : pad,
    locator: isLocated ? pad : null,
    access: pick([null, ...ACCESS]) ?? null,
    parent: null,
    conversation: oneIn(3) ? (pick(talks)?.name ?? null) : null,
    maxToolCalls: pick([1, 2, 3]) ?? 1,
    expiresInSeconds: oneIn(5) ? 900 : null,
  };
};

const STATUSES: readonly Status[] = [
  'QUEUED',
  'IN_PROGRESS',
  'INPUT_REQUIRED',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
  'EXPIRED',
];

const statusFor = ({ status }: ModelRun, kind: string, { pick }: Draw): Status | undefined => {
  if (kind === 'end') return pick(['CANCELLED', 'COMPLETED', 'FAILED'] as const);
  return status === 'IN_PROGRESS' ? 'INPUT_REQUIRED' : 'IN_PROGRESS';
};
