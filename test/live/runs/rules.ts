import type { Act, By } from './acts.ts';
import {
  ACCESS,
  changeRun,
  endRun,
  isActive,
  isMember,
  isOpen,
  isOthers,
  kill,
  LISTED,
  type Model,
  type ModelRun,
  type ModelToken,
  mayHold,
  openThread,
  PEOPLE,
  padOf,
  runOf,
  seesRun,
  threadOf,
  tokenOf,
} from './model.ts';
import { againstWriting, put, speakAs } from './writing.ts';

type Of<Name extends Act['act']> = Extract<Act, { readonly act: Name }>;

/** The participant that an actor is; null: the user. */
const personOf = (model: Model, { who, token }: By): string | null =>
  token === null ? who : runOf(model, tokenOf(model, token).run).worker;

const known = (model: Model, viewer: string | null, by: By, wanted: string): boolean => {
  if (viewer === null || viewer === wanted || LISTED.includes(wanted)) return true;
  const reach = by.token === null ? null : runOf(model, tokenOf(model, by.token).run).conversation;
  return Object.values(model.threads).some(
    (thread) =>
      (reach === null || thread.name === reach) &&
      isMember(thread, viewer) &&
      thread.members.includes(wanted),
  );
};

const newToken = (model: Model, name: string, run: ModelRun, isClaimed: boolean, by: By): void => {
  const through = by.token === null ? null : tokenOf(model, by.token);
  const isDelegators = !isClaimed && (isOthers(run) || through?.isDelegators === true);
  const isStillborn =
    !isOpen(run) ||
    (through !== null && through.dead !== null) ||
    (!isClaimed && (run.isClaimed || !mayHold(model, run, isDelegators)));
  const token: ModelToken = {
    name,
    run: run.name,
    isClaimed,
    isDelegators,
    through: by.token,
    dead: isStillborn ? 'STILLBORN' : null,
    isFresh: isStillborn,
  };
  model.tokens[name] = token;
};

/** Of the run, or made through one that is. */
const isMadeIn = (model: Model, { run, through }: ModelToken, runName: string): boolean =>
  run === runName || (through !== null && isMadeIn(model, tokenOf(model, through), runName));

const changeMember = (model: Model, name: string, who: string, to: 'remove' | 'readd'): string[] => {
  const thread = threadOf(model, name);
  if (!isMember(thread, who)) return ['NOT_FOUND'];
  const wasActive = isActive(thread, who);
  if (wasActive !== (to === 'remove')) return ['INVALID_TRANSITION'];
  const { active } = thread;
  const position = thread.events.length;
  thread.events.push({ text: `${to} ${who}`, seenBy: [...new Set([...active, who])], run: null });
  if (to === 'readd') {
    thread.active.push(who);
    thread.windows.push({ who, from: position, to: null });
    // Whoever comes back is told of the body as it is.
    const body = model.pads[name]?.contents.at(-1);
    if (body !== undefined) body.seenBy.push(who);
    return [];
  }
  thread.active = active.filter((one) => one !== who);
  for (const window of thread.windows) if (window.who === who) window.to ??= position;
  // Those below first: they too end for that reason.
  for (const run of Object.values(model.runs).reverse())
    if (run.delegator === who && run.pad !== null && padOf(model, run.pad).thread === name)
      endRun(model, run, 'CANCELLED', null, 'Whoever delegated it was removed.');
  return [];
};

const dropPad = (model: Model, name: string): void => {
  padOf(model, name).isDeleted = true;
  for (const run of Object.values(model.runs)) {
    if (run.pad !== name) continue;
    run.pad = null;
    if (isOpen(run)) changeRun(run, {});
  }
};

/** Does it, or answers why not: the codes of all that is against it. */
export const doAct = (model: Model, act: Exclude<Act, { readonly act: 'tool' }>): string[] =>
  RULES[act.act](model, act as never);

/** Each does it, or answers why not: whatever is against it, in no order. */
const RULES: {
  readonly [Name in Exclude<Act['act'], 'tool'>]: (model: Model, act: Of<Name>) => string[];
} = {
  delegate(model, { name, by, worker, ...act }) {
    const viewer = personOf(model, by);
    const against: string[] = [];
    if (!known(model, viewer, by, worker)) against.push('NOT_FOUND');
    const parentName = by.token === null ? act.parent : tokenOf(model, by.token).run;
    const parent = parentName === null ? null : runOf(model, parentName);
    const delegator = parent === null ? viewer : parent.worker;
    let pad = act.pad ?? (parent === null ? act.locator : null);
    if (parent !== null) {
      if (by.token === null && !seesRun(parent, viewer)) return ['NOT_FOUND', ...against];
      if (viewer !== null && viewer !== delegator) against.push('FORBIDDEN');
      if (!isOpen(parent)) against.push('INVALID_TRANSITION');
      if (pad !== null && pad !== parent.pad) against.push('NOT_FOUND');
      pad = parent.pad;
      if (ACCESS.indexOf(act.access ?? parent.access) > ACCESS.indexOf(parent.access))
        against.push('FORBIDDEN');
      // A parent's deadline is always nearer than the one that a child is given here.
      if (parent.hasDeadline && act.expiresInSeconds !== null) against.push('FORBIDDEN');
      if (act.maxToolCalls > parent.maxToolCalls - parent.toolCalls) against.push('FORBIDDEN');
    } else if (pad === null && delegator !== null) against.push('BAD_USER_INPUT');
    let padViewer = parent === null ? delegator : parent.padViewer;
    if (pad !== null) {
      const { thread, isDeleted } = padOf(model, pad);
      const home = threadOf(model, thread);
      if (isDeleted || !isMember(home, padViewer)) against.push('NOT_FOUND');
      else if (!isActive(home, padViewer)) against.push('PARTICIPANT_NOT_ACTIVE');
      if (home.members.includes(worker)) padViewer = worker;
    } else padViewer = null;
    if (PEOPLE[worker as keyof typeof PEOPLE] === 'HUMAN' && delegator !== null && delegator !== worker)
      against.push('BAD_USER_INPUT');
    if (act.conversation !== null) {
      const thread = threadOf(model, act.conversation);
      const isReached =
        by.token === null || runOf(model, tokenOf(model, by.token).run).conversation === thread.name;
      if (!isReached || !isMember(thread, delegator)) against.push('NOT_FOUND');
      else if (!isActive(thread, delegator)) against.push('PARTICIPANT_NOT_ACTIVE');
      if (!thread.members.includes(worker)) against.push('BAD_USER_INPUT');
      else if (!isActive(thread, worker)) against.push('PARTICIPANT_NOT_ACTIVE');
      const isTaken = Object.values(model.runs).some(
        (run) => isOpen(run) && run.worker === worker && run.conversation === thread.name,
      );
      if (isTaken) against.push('CONFLICT');
    }
    if (against.length > 0) return against;
    const conversation = act.conversation ?? `of ${name}`;
    if (act.conversation === null) openThread(model, conversation, [worker, `unit of ${name}`]);
    const run: ModelRun = {
      name,
      worker,
      delegator,
      parent: parentName,
      conversation,
      pad,
      firstPad: pad,
      access: act.access ?? parent?.access ?? 'WRITE',
      padViewer,
      input: act.text,
      maxToolCalls: act.maxToolCalls,
      hasDeadline: act.expiresInSeconds !== null || parent?.hasDeadline === true,
      isClaimed: false,
      status: 'QUEUED',
      result: null,
      error: null,
      toolCalls: 0,
      attempted: [],
      history: [],
    };
    changeRun(run, {});
    model.runs[name] = run;
    model.delegatedBy[name] = by;
    newToken(model, name, run, false, by);
    return [];
  },

  again(model, { name, run: runName, by }) {
    const run = runOf(model, runName);
    for (const token of Object.values(model.tokens))
      if (token.run === runName && !token.isClaimed) kill(token, 'CREDENTIAL_ENDED');
    newToken(model, name, run, false, by);
    return [];
  },

  claim(model, { name, run: runName, by }) {
    const run = runOf(model, runName);
    if (by.token !== null) return ['FORBIDDEN'];
    if (!seesRun(run, by.who)) return ['NOT_FOUND'];
    if (by.who !== run.worker && by.who !== null) return ['FORBIDDEN'];
    if (run.status !== 'QUEUED') return ['INVALID_TRANSITION'];
    changeRun(run, { status: 'IN_PROGRESS' });
    for (const token of Object.values(model.tokens))
      if (isMadeIn(model, token, runName)) kill(token, 'CREDENTIAL_ENDED');
    run.isClaimed = true;
    newToken(model, name, run, true, by);
    return [];
  },

  update(model, { run: runName, by, status, expiresInSeconds, text }) {
    const run = runOf(model, runName);
    const ofRun = by.token === null ? null : tokenOf(model, by.token).run;
    if (!seesRun(run, by.who, ofRun)) return ['NOT_FOUND'];
    const isWorker = ofRun === null ? by.who === run.worker : ofRun === runName;
    const isDelegator = ofRun === null && (by.who === null || by.who === run.delegator);
    const against: string[] = [];
    if (expiresInSeconds !== null && !isDelegator) against.push('FORBIDDEN');
    if (status === 'CANCELLED' && !isDelegator) against.push('FORBIDDEN');
    if (status !== null && WORKERS.includes(status) && !isWorker) against.push('FORBIDDEN');
    const from = status === null ? OPEN : (EDGES[status] ?? []);
    if (!from.includes(run.status)) against.push('INVALID_TRANSITION');
    const parent = run.parent === null ? null : runOf(model, run.parent);
    if (expiresInSeconds !== null && parent?.hasDeadline === true) against.push('FORBIDDEN');
    if (against.length > 0) return against;
    if (expiresInSeconds !== null) {
      run.hasDeadline = true;
      if (status === null) changeRun(run, {});
    }
    if (status === 'COMPLETED') endRun(model, run, status, text, null);
    else if (status === 'FAILED' || status === 'CANCELLED') endRun(model, run, status, null, text);
    else if (status !== null) changeRun(run, { status, result: status === 'INPUT_REQUIRED' ? text : null });
    return [];
  },

  lapse(model, { run: name }) {
    const run = runOf(model, name);
    if (!isOpen(run)) return [];
    run.hasDeadline = true;
    changeRun(run, {});
    endRun(model, run, 'EXPIRED', null, 'The deadline has passed.');
    return [];
  },

  append: (model, act) => writeTo(model, act),
  write: (model, act) => writeTo(model, act),

  clear(model, { pad: name, by }) {
    const pad = padOf(model, name);
    if (by.token !== null) return ['FORBIDDEN', 'NOT_FOUND'];
    if (pad.isDeleted || !isMember(threadOf(model, pad.thread), by.who)) return ['NOT_FOUND'];
    if (!isActive(threadOf(model, pad.thread), by.who)) return ['PARTICIPANT_NOT_ACTIVE'];
    pad.entries.length = 0;
    return [];
  },

  post: (model, act) => speak(model, act),
  store: (model, act) => speak(model, act),
  remove: (model, { thread, who }) => changeMember(model, thread, who, 'remove'),
  readd: (model, { thread, who }) => changeMember(model, thread, who, 'readd'),

  deletePad(model, { pad }) {
    if (padOf(model, pad).isDeleted) return ['NOT_FOUND'];
    dropPad(model, pad);
    return [];
  },

  deleteThread(model, { thread: name }) {
    const thread = threadOf(model, name);
    if (thread.isDeleted) return ['NOT_FOUND'];
    thread.isDeleted = true;
    // In one moment: of a run that ends with it no more is told than that.
    for (const run of Object.values(model.runs).reverse())
      if (run.conversation === name) endRun(model, run, 'CANCELLED', null, 'Its conversation was deleted.');
    if (model.pads[name]?.isDeleted === false) dropPad(model, name);
    return [];
  },
};

const OPEN = ['QUEUED', 'IN_PROGRESS', 'INPUT_REQUIRED'];
const WORKERS = ['IN_PROGRESS', 'INPUT_REQUIRED', 'COMPLETED', 'FAILED'];
/** From where a run may come there. */
const EDGES: Readonly<Record<string, readonly string[]>> = {
  IN_PROGRESS: ['QUEUED', 'INPUT_REQUIRED'],
  INPUT_REQUIRED: ['IN_PROGRESS'],
  COMPLETED: ['IN_PROGRESS', 'INPUT_REQUIRED'],
  FAILED: ['IN_PROGRESS', 'INPUT_REQUIRED'],
  CANCELLED: OPEN,
};

const writeTo = (model: Model, { act, pad, by, text }: Of<'append' | 'write'>): string[] => {
  const run = by.token === null ? null : runOf(model, tokenOf(model, by.token).run);
  const against = againstWriting(model, pad, by.who, run, act);
  if (against.length === 0) put(model, pad, act, text, run?.name ?? null);
  return against;
};

const speak = (model: Model, { act, thread, by, text }: Of<'post' | 'store'>): string[] => {
  const run = by.token === null ? null : runOf(model, tokenOf(model, by.token).run);
  if (run !== null && run.conversation !== thread) return ['NOT_FOUND', 'FORBIDDEN'];
  const who = personOf(model, by);
  if (who === null) throw new Error('The user says nothing as such.');
  return speakAs(model, act, thread, who, run?.name ?? null, text);
};
