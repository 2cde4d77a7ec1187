import {
  isActive,
  isMember,
  type Model,
  type ModelRun,
  OPEN_MEMORY,
  PEOPLE,
  padOf,
  say,
  threadOf,
} from './model.ts';

/** Why a run may not write to a scratchpad, or nobody in particular; nothing: it may. */
export const againstWriting = (
  model: Model,
  padName: string,
  viewer: string | null,
  run: ModelRun | null,
  kind: 'append' | 'write',
): string[] => {
  const against: string[] = [];
  if (run !== null && (run.access === 'READ' || (kind === 'write' && run.access === 'APPEND')))
    against.push('FORBIDDEN');
  const pad = padOf(model, padName);
  const home = threadOf(model, pad.thread);
  const eyes = run === null ? viewer : run.padViewer;
  if (pad.isDeleted || (run !== null && run.pad !== padName) || !isMember(home, eyes))
    against.push('NOT_FOUND');
  else if (!isActive(home, eyes)) against.push('PARTICIPANT_NOT_ACTIVE');
  return against;
};

export const put = (
  model: Model,
  padName: string,
  kind: 'append' | 'write',
  text: string,
  run: string | null,
): void => {
  const pad = padOf(model, padName);
  const trace = { text, run, seenBy: [...threadOf(model, pad.thread).active] };
  if (kind === 'write') pad.contents.push(trace);
  else {
    pad.entries.push(trace);
    pad.appended.push(trace);
  }
};

/** Says something, or remembers it, as `who`. */
export const speakAs = (
  model: Model,
  act: 'post' | 'store',
  threadName: string,
  who: string,
  run: string | null,
  text: string,
): string[] => {
  const thread = threadOf(model, threadName);
  const against: string[] = [];
  if (act === 'store' && PEOPLE[who as keyof typeof PEOPLE] === 'HUMAN') against.push('FORBIDDEN');
  if (!isMember(thread, who)) against.push('NOT_FOUND');
  else if (!isActive(thread, who)) against.push('PARTICIPANT_NOT_ACTIVE');
  if (against.length > 0) return against;
  if (act === 'post') say(thread, { text, run });
  else
    model.memories.push({
      agent: who,
      thread: threadName,
      isEverywhere: threadName === OPEN_MEMORY,
      text,
    });
  return [];
};
