import type { Act, Answer } from './acts.ts';
import type { Model } from './model.ts';
import { doAct } from './rules.ts';
import { actorOf, done, refused, type Step } from './steps.ts';
import { toolSteps } from './toolRules.ts';

/** What an act does, one indivisible step after the other. */
const stepsOf = (act: Act): readonly Step[] => {
  if (act.act === 'tool') return toolSteps(act);
  const work = (model: Model) => {
    const codes = doAct(model, act);
    return codes.length === 0 ? done(model) : refused(model, codes);
  };
  return [(model) => ('by' in act ? actorOf(model, act.by, work) : [work(model)])];
};

/** Where a model may be after acts that were begun together, and what each of them then answered. */
export interface Outcome {
  readonly model: Model;
  readonly answers: readonly Answer[];
}

/** All orders of the steps of one act, or of two at once. */
export const outcomesOf = (model: Model, acts: readonly Act[]): Outcome[] => {
  const found: Outcome[] = [];
  const plans = acts.map(stepsOf);
  const walk = (at: Model, next: readonly number[], answers: readonly (Answer | null)[]): void => {
    const open = plans.flatMap((_, index) => (answers[index] === null ? [index] : []));
    if (open.length === 0) {
      found.push({ model: at, answers: answers.flatMap((answer) => answer ?? []) });
      return;
    }
    for (const index of open) {
      const step = plans[index]?.[next[index] ?? 0];
      if (step === undefined) throw new Error('An act has no answer.');
      for (const branch of step(structuredClone(at)))
        walk(
          branch.model,
          next.map((count, plan) => (plan === index ? count + 1 : count)),
          answers.map((answer, plan) => (plan === index ? branch.answer : answer)),
        );
    }
  };
  walk(
    model,
    acts.map(() => 0),
    acts.map(() => null),
  );
  return found;
};
