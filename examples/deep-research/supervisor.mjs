// The supervisor: node examples/deep-research/supervisor.mjs, with THREADPAD_URL, THREADPAD_TOKEN (its own), THREAD_ID, and
// the ids of two agents in ARCHIVIST and READER. It writes a plan into the thread's scratchpad, delegates a run to each, which
// they work on at the same time and in conversations of their own, and makes a synthesis of what they found.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ask, requireVariables, sees } from './api.mjs';

requireVariables('THREADPAD_TOKEN', 'THREAD_ID', 'ARCHIVIST', 'READER');
const { THREAD_ID: threadId, ARCHIVIST, READER } = process.env;

const tool = async (name, given) => {
  const { executeTool } = await ask(
    'mutation Call($input: ExecuteToolInput!) { executeTool(input: $input) { output isError } }',
    { input: { threadId, name, arguments: given } },
  );
  sees('supervisor', `${name}: ${executeTool.output}`);
  if (executeTool.isError) throw new Error(executeTool.output);
  return executeTool.output;
};

const DELEGATE = `mutation Delegate($input: DelegateRunInput!) { delegateRun(input: $input) { token run { id } } }`;

/** A run of an agent on the scratchpad, and its process; resolves when that is over. */
const delegate = async (who, participantId, program, scratchpadId) => {
  const { delegateRun } = await ask(DELEGATE, {
    input: { participantId, scratchpadId, scratchpadAccess: 'APPEND', input: { task: `Be the ${who}.` } },
  });
  const { run, token } = delegateRun;
  const worker = spawn(process.execPath, [fileURLToPath(new URL(program, import.meta.url))], {
    env: { ...process.env, THREADPAD_TOKEN: token, WORKER: who, RUN_ID: run.id },
    stdio: 'inherit',
  });
  await new Promise((resolve) => worker.once('exit', resolve));
  return run.id;
};

await tool('update_scratchpad', {
  content: 'PLAN: what do the letters say about the harvest, and since when?',
});
const { thread } = await ask('query Pad($id: ID!) { thread(id: $id) { scratchpad { id } } }', {
  id: threadId,
});
const runs = await Promise.all([
  delegate('archivist', ARCHIVIST, './worker-mcp.mjs', thread.scratchpad.id),
  delegate('reader', READER, './worker-graphql.mjs', thread.scratchpad.id),
]);
const view = await tool('read_scratchpad', {});
const reports = await Promise.all(
  runs.map(async (id) => {
    const { run } = await ask(
      'query Report($id: ID!) { run(id: $id) { status result error participant { handle } } }',
      { id },
    );
    // What a worker that failed had to say is no result; what it appended stays.
    return `${run.participant.handle}: ${run.status}${run.error === null ? '' : ` (${run.error})`}`;
  }),
);
const findings = view.split('\n').filter((line) => /^\[\d+\] /.test(line));
await tool('update_scratchpad', {
  content: ['SYNTHESIS', ...findings.map((line) => line.replace(/^\[\d+\] /, '- ')), ...reports].join('\n'),
});
await tool('read_scratchpad', {});
