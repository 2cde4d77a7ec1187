import type { Act, Answer, Tool } from './acts.ts';
import {
  changeRun,
  isActive,
  isMember,
  isOpen,
  isOpenToDelegator,
  type Memory,
  type Model,
  type ModelRun,
  PEOPLE,
  padOf,
  runOf,
  runsAbove,
  say,
  seesRun,
  threadOf,
  tokenOf,
} from './model.ts';
import { actorOf, type Branch, refused, type Step } from './steps.ts';
import { againstWriting, put, speakAs } from './writing.ts';

type ToolAct = Extract<Act, { readonly act: 'tool' }>;

/** Content is for the active; null: it may not be read. */
export const contentOf = (model: Model, padName: string, eyes: string | null): string | null => {
  const pad = padOf(model, padName);
  return isActive(threadOf(model, pad.thread), eyes) ? (pad.contents.at(-1)?.text ?? '') : null;
};

export const entriesOf = (model: Model, padName: string, eyes: string | null) =>
  padOf(model, padName).entries.filter(({ seenBy }) => eyes === null || seenBy.includes(eyes));

/** `isDelegators`: whoever holds the worker's token without being it learns only what was stored there. */
export const recalled = (model: Model, agent: string, thread: string, isDelegators: boolean): Memory[] =>
  model.memories.filter(
    (memory) =>
      memory.agent === agent && (memory.thread === thread || (memory.isEverywhere && !isDelegators)),
  );

/** A call is counted, acts, and its result stands in the conversation: three moments. */
export const toolSteps = ({ run: name, by, tool, text }: ToolAct): Step[] => {
  const begin = (model: Model): Branch => {
    const run = runOf(model, name);
    if (by.token !== null && tokenOf(model, by.token).run !== name) return refused(model, ['NOT_FOUND']);
    if (by.token === null && !seesRun(run, by.who)) return refused(model, ['NOT_FOUND']);
    const against: string[] = [];
    if (by.token === null && by.who !== null && by.who !== run.worker) against.push('FORBIDDEN');
    if (!isOpen(run)) against.push('INVALID_TRANSITION', 'NOT_FOUND');
    if (against.length > 0) return refused(model, against);
    const above = runsAbove(model, run);
    if ([run, ...above].some(({ toolCalls, maxToolCalls }) => toolCalls >= maxToolCalls))
      return { model, answer: { codes: ['OK'], isError: true, shows: [] } };
    run.attempted.push(text);
    changeRun(run, {
      toolCalls: run.toolCalls + 1,
      status: run.status === 'QUEUED' ? 'IN_PROGRESS' : run.status,
    });
    for (const one of above) changeRun(one, { toolCalls: one.toolCalls + 1 });
    return { model, answer: null };
  };

  const work = (model: Model): Branch[] => {
    const run = runOf(model, name);
    const token = by.token === null ? null : tokenOf(model, by.token);
    const isLate = !isOpen(run) || (token !== null && token.dead !== null);
    const copy = structuredClone(model);
    const branches: Branch[] = [];
    if (isLate) {
      copy.working[text] = { isError: true, shows: [] };
      branches.push({ model: copy, answer: null });
    }
    const answer = act(model, run, token?.isDelegators === true);
    model.working[text] = { isError: answer === null, shows: answer ?? [] };
    branches.push({ model, answer: null });
    return branches;
  };

  /** The texts that the answer shows; null: it failed. */
  const act = (model: Model, run: ModelRun, byDelegator: boolean): readonly string[] | null => {
    const { pad, padViewer, worker, conversation } = run;
    const isHuman = PEOPLE[worker as keyof typeof PEOPLE] === 'HUMAN';
    switch (tool) {
      case 'read_scratchpad': {
        if (pad === null) return null;
        const content = contentOf(model, pad, padViewer);
        if (content === null) return null;
        return [content, ...entriesOf(model, pad, padViewer).map((entry) => entry.text)];
      }
      case 'append_scratchpad':
      case 'update_scratchpad': {
        const kind = tool === 'append_scratchpad' ? 'append' : 'write';
        if (pad === null || againstWriting(model, pad, null, run, kind).length > 0) return null;
        put(model, pad, kind, text, name);
        return [];
      }
      case 'send_message':
      case 'store': {
        const kind = tool === 'store' ? 'store' : 'post';
        return speakAs(model, kind, conversation, worker, name, text).length > 0 ? null : [];
      }
      case 'recall':
        if (isHuman || !isMember(threadOf(model, conversation), worker)) return null;
        return recalled(model, worker, conversation, byDelegator).map((memory) => memory.text);
      default:
        return tool satisfies never;
    }
  };

  const finish = (model: Model): Branch => {
    const run = runOf(model, name);
    const result = model.working[text];
    if (result === undefined) throw new Error('A call ends that was not begun.');
    delete model.working[text];
    const thread = threadOf(model, run.conversation);
    if (thread.isDeleted) return refused(model, ['NOT_FOUND']);
    const isOwnPad = run.pad !== null && padOf(model, run.pad).thread === thread.name;
    const isToldAll =
      (by.token !== null && tokenOf(model, by.token).isDelegators) || !isOpenToDelegator(model, run);
    const isPrivate = run.conversation === `of ${name}` && isToldAll;
    if (isActive(thread, run.worker) && !(isOwnPad && isAboutPad(tool)))
      say(thread, {
        text: `${tool}${result.isError ? ' failed' : ''}`,
        run: name,
        shows: isPrivate ? result.shows : [],
      });
    const answer: Answer = {
      codes: ['OK'],
      isError: result.isError,
      shows: result.shows.filter((shown) => shown !== '').sort(),
    };
    return { model, answer };
  };

  return [(model) => actorOf(model, by, begin), work, (model) => [finish(model)]];
};

const isAboutPad = (tool: Tool): boolean => tool.endsWith('_scratchpad');
