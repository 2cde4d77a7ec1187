// A worker's scripted model. It is given the conversation so far and says what to do next, as a real one would: which tool to
// call, or that it is done. `call` is how its runtime reaches the tools: that differs between the two workers, nothing else does.
import { finish, requireVariables, sees } from './api.mjs';

requireVariables('THREADPAD_TOKEN', 'WORKER', 'RUN_ID');
const { WORKER: who, RUN_ID: runId, FAILS } = process.env;

const FINDINGS = {
  archivist: 'The archive holds 412 letters; 37 of them are about the harvest (register 1887, p. 12).',
  reader: 'The letters of 1887 speak of three dry summers, and of none before (letters 3, 19 and 31).',
};

/** Step by step: look at the plan, add a finding, be done. */
const model = (answers) => {
  if (answers.length === 0) return { tool: 'read_scratchpad', given: {} };
  if (answers.length === 1) return { tool: 'append_scratchpad', given: { note: FINDINGS[who] } };
  return { done: `Added: ${FINDINGS[who]}` };
};

export const work = async (call) => {
  const answers = [];
  try {
    for (;;) {
      const step = model(answers);
      if (step.done !== undefined) {
        if (FAILS === who) throw new Error('The lamp went out.');
        await finish({ runId, status: 'COMPLETED', result: { summary: step.done } });
        return;
      }
      const { output, isError } = await call(step.tool, step.given);
      sees(who, `${step.tool}: ${output}`);
      if (isError) throw new Error(output);
      answers.push(output);
    }
  } catch (error) {
    await finish({ runId, status: 'FAILED', error: error.message });
  }
};
