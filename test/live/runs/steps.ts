import type { Answer, By } from './acts.ts';
import { type Model, tokenOf } from './model.ts';

/** One of the ways in which a step may come out; `answer` null: the act goes on. */
export interface Branch {
  readonly model: Model;
  readonly answer: Answer | null;
}

/** Changes the model that it is given, or copies of it where it may come out in several ways. */
export type Step = (model: Model) => Branch[];

export const done = (model: Model): Branch => ({ model, answer: { codes: ['OK'] } });
export const refused = (model: Model, codes: readonly string[]): Branch => ({ model, answer: { codes } });

/** What somebody is told who comes too late, in the same moment. */
const TOO_LATE = [
  'UNAUTHENTICATED',
  'INVALID_TRANSITION',
  'NOT_FOUND',
  'FORBIDDEN',
  'PARTICIPANT_NOT_ACTIVE',
];

/** As whoever acts: a token that is dead does nothing; one that died a moment ago, perhaps. */
export const actorOf = (model: Model, { token }: By, work: (model: Model) => Branch): Branch[] => {
  if (token === null) return [work(model)];
  const { dead, isFresh } = tokenOf(model, token);
  if (dead === null) return [work(model)];
  if (!isFresh) return [refused(model, ['UNAUTHENTICATED'])];
  const copy = structuredClone(model);
  return [refused(model, TOO_LATE), work(copy)];
};
