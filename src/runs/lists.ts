import type { RunScope } from '../auth/actor.ts';
import type { KeysetRange } from '../shared/paging.ts';
import { type Database, type Statement, statement } from '../storage/database.ts';
import { type Run, type RunRow, type RunStatus, runFromRow } from './rows.ts';

export interface RunFilter {
  /** In whose conversation, or on whose scratchpad. */
  readonly threadId?: string | null | undefined;
  /** Who works. */
  readonly participantId?: string | null | undefined;
  readonly parentRunId?: string | null | undefined;
  readonly status?: RunStatus | null | undefined;
}

/** What a list may be asked for: each that is given is a value of its statement, in this order. */
const GIVEN = ['owner', 'viewer', 'run', 'thread', 'worker', 'parent', 'status', 'after', 'before'] as const;
type Given = (typeof GIVEN)[number];

const FILTERS: Partial<Record<Given, (value: string) => string>> = {
  owner: (value) => `r.owner_id = ${value}`,
  worker: (value) => `r.participant_id = ${value}`,
  status: (value) => `r.status = ${value}::run_statuses`,
  after: (value) => `r.id > ${value}`,
  before: (value) => `r.id < ${value}`,
};

/** A run that one may not see is none to whoever asks by it, as is a thread. A run's token sees no parent but its own run. */
const parentOf = (given: readonly Given[], at: (name: Given) => string): string[] => {
  if (!given.includes('parent')) return [];
  const [parent, viewer] = [at('parent'), at('viewer')];
  const isSeen = `EXISTS (SELECT 1 FROM runs q WHERE q.id = ${parent} AND ${viewer} IN (q.participant_id, q.delegator_id))`;
  return [
    `r.parent_run_id = ${parent}`,
    ...(given.includes('run') ? [`${parent} = ${at('run')}`] : given.includes('viewer') ? [isSeen] : []),
  ];
};

/** Whether the thread is there, and (where a participant asks) one of its own. */
const isKnown = (given: readonly Given[], at: (name: Given) => string): string => {
  const [owner, thread] = [at('owner'), at('thread')];
  const isMember = `EXISTS (SELECT 1 FROM thread_members m WHERE m.owner_id = ${owner} AND m.thread_id = ${thread} AND m.participant_id = ${at('viewer')})`;
  return `EXISTS (SELECT 1 FROM thread_heads h WHERE h.owner_id = ${owner} AND h.thread_id = ${thread})${given.includes('viewer') ? ` AND ${isMember}` : ''}`;
};

/** Of each array one holds: a statement finds them apart, since of two alternatives no index finds the first fifty. */
const alternativesOf = (given: readonly Given[], at: (name: Given) => string): string[][] => {
  const [viewer, run, thread] = [at('viewer'), at('run'), at('thread')];
  return [
    // What it works on and what it delegated.
    given.includes('viewer') ? [`r.participant_id = ${viewer}`, `r.delegator_id = ${viewer}`] : [],
    given.includes('run') ? [`r.id = ${run}`, `r.parent_run_id = ${run}`] : [],
    given.includes('thread')
      ? [
          // The delegator does not know the conversation: it does not find its run by that. Nor does anybody by a deleted one.
          `r.conversation_thread_id = (SELECT h.thread_id FROM thread_heads h WHERE h.owner_id = ${at('owner')} AND h.thread_id = ${thread})${given.includes('viewer') ? ` AND r.participant_id = ${viewer}` : ''}`,
          `r.scratchpad_id = (SELECT p.id FROM scratchpads p WHERE p.owner_id = ${at('owner')} AND p.thread_id = ${thread} AND ${isKnown(given, at)})`,
        ]
      : [],
  ].filter(({ length }) => length > 0);
};

const list = (given: readonly Given[], order: 'ASC' | 'DESC'): Statement<RunRow> => {
  const at = (name: Given): string => `$${given.indexOf(name) + 1}`;
  const limit = `$${given.length + 1}`;
  const filters = [...given.flatMap((name) => FILTERS[name]?.(at(name)) ?? []), ...parentOf(given, at)];
  const found = alternativesOf(given, at)
    .reduce((all, some) => all.flatMap((one) => some.map((other) => [...one, other])), [filters])
    .map(
      (all) => `(SELECT r.id FROM runs r WHERE ${all.join(' AND ')} ORDER BY r.id ${order} LIMIT ${limit})`,
    );
  // Every list is one owner's. A name has at most 63 characters.
  return statement<RunRow>(
    ['runs', ...given.slice(1), order.toLowerCase()].join('_'),
    `SELECT r.* FROM (
       SELECT f.id FROM (${found.join(' UNION ')}) f ORDER BY f.id ${order} LIMIT ${limit}
     ) s JOIN run_rows r ON r.id = s.id ORDER BY r.id ${order}`,
  );
};

/** In the order of their ids. `run`: only that one and its children. */
export const readRuns = async (
  database: Database,
  ownerId: string,
  viewerId: string | null,
  run: RunScope | null,
  filter: RunFilter,
  { after, before, limit, inverted }: KeysetRange,
): Promise<Run[]> => {
  const values: Readonly<Record<Given, string | null | undefined>> = {
    owner: ownerId,
    viewer: viewerId,
    run: run?.runId,
    thread: filter.threadId,
    worker: filter.participantId,
    parent: filter.parentRunId,
    status: filter.status,
    after: after?.[0],
    before: before?.[0],
  };
  const given = GIVEN.filter((name) => values[name] !== null && values[name] !== undefined);
  const rows = await database.query(list(given, inverted ? 'DESC' : 'ASC'), [
    ...given.map((name) => values[name]),
    limit,
  ]);
  return rows.map(runFromRow);
};
