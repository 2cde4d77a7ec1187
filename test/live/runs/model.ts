import type { Access, By, Status } from './acts.ts';

/**
 * Runs in plain lines: who works for whom on what, who may see it, and which tokens live. What was said and written is
 * kept with those who were active in that moment, so nothing here knows of windows.
 */

export const PEOPLE = { ann: 'HUMAN', boss: 'AGENT', mate: 'AGENT', out: 'AGENT', far: 'AGENT' } as const;
export type Name = keyof typeof PEOPLE;
export const NAMES = Object.keys(PEOPLE) as Name[];
/** Others of the tenant may find them. */
export const LISTED: readonly string[] = ['out', 'far'];
/** The members of the threads that are there before anything happens; the first two have a scratchpad each. */
export const THREADS: Readonly<Record<string, readonly Name[]>> = {
  team: ['ann', 'boss', 'mate'],
  duo: ['boss', 'mate', 'out'],
  talk: ['boss', 'out'],
  room: ['boss', 'mate', 'far'],
};
export const PADS: readonly string[] = ['team', 'duo'];
/** Whose memories are recalled elsewhere too. */
export const OPEN_MEMORY = 'room';

export const ACCESS: readonly Access[] = ['READ', 'APPEND', 'WRITE'];

/** Something that was said or written; `seenBy`: the participants who were active then. */
export interface Trace {
  readonly text: string;
  readonly seenBy: string[];
  /** In which run. */
  readonly run: string | null;
  /** Marks that its answer showed: no more than these may stand in it. */
  readonly shows?: readonly string[];
}

export interface ModelThread {
  readonly name: string;
  readonly members: readonly string[];
  active: string[];
  isDeleted: boolean;
  readonly events: Trace[];
  /** Since which event each member was active, and until which. */
  readonly windows: { readonly who: string; readonly from: number; to: number | null }[];
}

export interface ModelPad {
  readonly thread: string;
  isDeleted: boolean;
  readonly entries: Trace[];
  /** Those that were cleared too. */
  readonly appended: Trace[];
  /** All that the content ever was; the last is what it is. */
  readonly contents: Trace[];
}

export interface Snapshot {
  readonly status: Status;
  readonly result: string | null;
  readonly error: string | null;
  readonly toolCalls: number;
}

export interface ModelRun extends Snapshot {
  readonly name: string;
  readonly worker: string;
  readonly delegator: string | null;
  readonly parent: string | null;
  readonly conversation: string;
  pad: string | null;
  /** What it began with, be it gone. */
  readonly firstPad: string | null;
  readonly access: Access;
  /** Through whose eyes the scratchpad is seen; null: the user's. */
  readonly padViewer: string | null;
  readonly input: string;
  readonly maxToolCalls: number;
  hasDeadline: boolean;
  isClaimed: boolean;
  status: Status;
  result: string | null;
  error: string | null;
  toolCalls: number;
  /** With what its tools were called. */
  readonly attempted: string[];
  /** Each state that it came to, in order. */
  readonly history: Snapshot[];
}

export interface ModelToken {
  readonly name: string;
  readonly run: string;
  readonly isClaimed: boolean;
  /** Another than the worker holds it. */
  readonly isDelegators: boolean;
  /** The token that it was made through. */
  readonly through: string | null;
  /** Why it is dead; null: it lives. */
  dead: 'RUN_CLOSED' | 'CREDENTIAL_ENDED' | 'STILLBORN' | null;
  /** Died in this very step: what it does in the same moment may be done or refused. */
  isFresh: boolean;
}

export interface Memory {
  readonly agent: string;
  readonly thread: string;
  readonly isEverywhere: boolean;
  readonly text: string;
}

export interface Model {
  readonly threads: Record<string, ModelThread>;
  readonly pads: Record<string, ModelPad>;
  readonly runs: Record<string, ModelRun>;
  readonly tokens: Record<string, ModelToken>;
  /** Who asked for a run first. */
  readonly delegatedBy: Record<string, By>;
  readonly memories: Memory[];
  /** What calls under way will answer, by their text. */
  readonly working: Record<string, ToolResult>;
}

export interface ToolResult {
  readonly isError: boolean;
  /** Texts that it shows. */
  readonly shows: readonly string[];
}

export const newModel = (): Model => {
  const model: Model = {
    threads: {},
    pads: {},
    runs: {},
    tokens: {},
    delegatedBy: {},
    memories: [],
    working: {},
  };
  for (const [name, members] of Object.entries(THREADS)) openThread(model, name, members);
  for (const name of PADS)
    model.pads[name] = { thread: name, isDeleted: false, entries: [], appended: [], contents: [] };
  return model;
};

export const openThread = (model: Model, name: string, members: readonly string[]): void => {
  model.threads[name] = {
    name,
    members,
    active: [...members],
    isDeleted: false,
    events: [{ text: 'THREAD_OPENED', seenBy: [...members], run: null }],
    windows: members.map((who) => ({ who, from: 0, to: null })),
  };
};

const required = <T>(found: T | undefined, name: string): T => {
  if (found === undefined) throw new Error(`The model knows no ${name}.`);
  return found;
};
export const threadOf = (model: Model, name: string): ModelThread => required(model.threads[name], name);
export const padOf = (model: Model, name: string): ModelPad => required(model.pads[name], name);
export const runOf = (model: Model, name: string): ModelRun => required(model.runs[name], name);
export const tokenOf = (model: Model, name: string): ModelToken => required(model.tokens[name], name);

/** The run that delegated it, and so on. */
export const runsAbove = (model: Model, { parent }: ModelRun): ModelRun[] =>
  parent === null ? [] : [runOf(model, parent), ...runsAbove(model, runOf(model, parent))];

const OPEN: readonly Status[] = ['QUEUED', 'IN_PROGRESS', 'INPUT_REQUIRED'];
export const isOpen = ({ status }: ModelRun): boolean => OPEN.includes(status);

export const isMember = (thread: ModelThread, who: string | null): boolean =>
  !thread.isDeleted && (who === null || thread.members.includes(who));
export const isActive = (thread: ModelThread, who: string | null): boolean =>
  who === null || thread.active.includes(who);

export const say = (thread: ModelThread, trace: Omit<Trace, 'seenBy'>): void => {
  thread.events.push({ ...trace, seenBy: [...thread.active] });
};

/** A state that a run comes to. */
export const changeRun = (run: ModelRun, change: Partial<Snapshot>): void => {
  Object.assign(run, change);
  const { status, result, error, toolCalls } = run;
  run.history.push({ status, result, error, toolCalls });
};

export const kill = (token: ModelToken, why: 'RUN_CLOSED' | 'CREDENTIAL_ENDED'): void => {
  if (token.dead !== null) return;
  token.dead = why;
  token.isFresh = true;
};

/** Ends a run if it is open, with its tokens, and all below it. */
export const endRun = (
  model: Model,
  run: ModelRun,
  status: Status,
  result: string | null,
  error: string | null,
): void => {
  if (!isOpen(run)) return;
  changeRun(run, { status, result, error });
  for (const token of Object.values(model.tokens)) if (token.run === run.name) kill(token, 'RUN_CLOSED');
  for (const child of Object.values(model.runs))
    if (child.parent === run.name)
      endRun(model, child, 'CANCELLED', null, 'The run that delegated it has ended.');
};

/** `who` was active all along while `other` was, and will be while it is: it sees as much. */
const seesAsMuch = (thread: ModelThread, who: string | null, other: string | null): boolean =>
  who === null ||
  (other !== null &&
    thread.windows
      .filter((window) => window.who === other)
      .every(({ from, to }) =>
        thread.windows.some(
          (window) =>
            window.who === who &&
            window.from <= from &&
            (window.to === null || (to !== null && window.to >= to)),
        ),
      ));

/** Whether a token that does not come from a claim may speak for the worker. */
export const mayHold = (model: Model, run: ModelRun, isDelegators: boolean): boolean => {
  if (!isDelegators) return true;
  if (run.conversation !== `of ${run.name}`) return false;
  if (run.pad === null) return true;
  const viewer = run.parent === null ? run.delegator : runOf(model, run.parent).padViewer;
  return seesAsMuch(threadOf(model, padOf(model, run.pad).thread), viewer, run.padViewer);
};

/** Whether another than its worker may yet hold a token of it. */
export const isOpenToDelegator = (model: Model, run: ModelRun): boolean =>
  !run.isClaimed &&
  (isOthers(run) || (run.parent !== null && isOpenToDelegator(model, runOf(model, run.parent))));

export const isOthers = ({ delegator, worker }: ModelRun): boolean =>
  delegator !== null && delegator !== worker;

/** Who sees a run: the user, its worker and its delegator; with a token of a run that one and its children. */
export const seesRun = (run: ModelRun, viewer: string | null, ofRun: string | null = null): boolean =>
  ofRun === null
    ? viewer === null || run.worker === viewer || run.delegator === viewer
    : run.name === ofRun || run.parent === ofRun;
