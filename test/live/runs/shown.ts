import type { Model, ModelRun, ModelToken, Trace } from './model.ts';
import { ACCESS, isActive, isMember, NAMES, padOf, runOf, seesRun, threadOf } from './model.ts';
import { contentOf, entriesOf, recalled } from './toolRules.ts';
import { marksOf } from './world.ts';

/** Who looks: the user, a participant, or whoever holds a token of a run. */
export type Viewer =
  | { readonly kind: 'OWNER' }
  | { readonly kind: 'PARTICIPANT'; readonly name: string }
  | { readonly kind: 'TOKEN'; readonly token: ModelToken; readonly run: ModelRun };

export type Line = readonly [text: string, run: string | null];

/** All that a viewer is shown, by the model's names. */
export interface Shown {
  readonly self: string | null;
  readonly listed: readonly string[];
  readonly runs: Readonly<Record<string, object>>;
  readonly threads: Readonly<Record<string, readonly Line[]>>;
  readonly pads: Readonly<Record<string, object>>;
  /** In its conversation, and elsewhere; of tokens only. */
  readonly recalled: readonly string[] | null;
  readonly elsewhere: string | null;
}

const sees = ({ seenBy }: Trace, eyes: string | null): boolean => eyes === null || seenBy.includes(eyes);

/** What the rules say. */
export const expectedOf = (model: Model, viewer: Viewer): Shown => {
  const ofRun = viewer.kind === 'TOKEN' ? viewer.run : null;
  const eyes = viewer.kind === 'OWNER' ? null : viewer.kind === 'TOKEN' ? viewer.run.worker : viewer.name;
  const mayKnow = (name: string | null): string | null =>
    name !== null && seesRun(runOf(model, name), eyes, ofRun?.name) ? name : null;
  const visible = Object.values(model.runs).filter(({ name }) => mayKnow(name) !== null);
  const reaches = (name: string): boolean =>
    (ofRun === null || ofRun.conversation === name) && isMember(threadOf(model, name), eyes);
  const reachesPad = (name: string): boolean =>
    !padOf(model, name).isDeleted &&
    (ofRun === null ? isMember(threadOf(model, padOf(model, name).thread), eyes) : ofRun.pad === name);
  const padEyes = ofRun === null ? eyes : ofRun.padViewer;
  // A result names its run to all who read it.
  const line = ({ text, run, shows }: Trace): Line => [text, shows ? run : mayKnow(run)];

  return {
    self: ofRun?.name ?? null,
    listed: visible.map(({ name }) => name).sort(),
    runs: Object.fromEntries(
      visible.map((run) => [
        run.name,
        {
          status: run.status,
          result: run.result,
          error: run.error,
          toolCalls: run.toolCalls,
          maxToolCalls: run.maxToolCalls,
          input: { task: run.input },
          worker: `who ${run.worker}`,
          delegator: run.delegator === null ? null : `who ${run.delegator}`,
          parent: mayKnow(run.parent),
          access: run.pad === null ? null : run.access,
          pad: run.pad !== null && reachesPad(run.pad) ? `pad ${run.pad}` : null,
          conversation:
            (eyes === null || eyes === run.worker) && !threadOf(model, run.conversation).isDeleted
              ? [reaches(run.conversation) ? run.conversation : null, run.conversation]
              : null,
        },
      ]),
    ),
    threads: Object.fromEntries(
      Object.values(model.threads)
        .filter(({ name }) => reaches(name))
        .map(({ name, events }) => [name, events.filter((event) => sees(event, eyes)).map(line)]),
    ),
    pads: Object.fromEntries(
      Object.keys(model.pads)
        .filter(reachesPad)
        .map((name) => {
          const { thread, contents } = padOf(model, name);
          const content = contentOf(model, name, padEyes);
          const mayRun = ofRun === null || ACCESS.indexOf(ofRun.access) > 0;
          return [
            name,
            {
              content: content === null ? null : [content, mayKnow(contents.at(-1)?.run ?? null)],
              entries: entriesOf(model, name, padEyes).map(line),
              mayWrite: mayRun && isActive(threadOf(model, thread), padEyes),
              thread: reaches(thread) ? thread : null,
              view:
                content === null
                  ? null
                  : marksOf([content, ...entriesOf(model, name, padEyes).map(({ text }) => text)].join()),
            },
          ];
        }),
    ),
    ...memoriesOf(model, viewer),
  };
};

const memoriesOf = (model: Model, viewer: Viewer): Pick<Shown, 'recalled' | 'elsewhere'> => {
  if (viewer.kind !== 'TOKEN') return { recalled: null, elsewhere: null };
  const { run, token } = viewer;
  const isHuman = run.worker === 'ann';
  return {
    recalled: isHuman
      ? null
      : recalled(model, run.worker, run.conversation, token.isDelegators)
          .map(({ text }) => text)
          .sort(),
    elsewhere: 'NOT_FOUND',
  };
};

/** What a live reader in a run may have been told is not taken back: whatever came after, be it that all of it is gone. */
const onceTold = (model: Model, run: ModelRun): string[] => {
  const pad = run.firstPad === null ? null : padOf(model, run.firstPad);
  const traces = [
    ...threadOf(model, run.conversation).events.filter((event) => sees(event, run.worker)),
    ...[...(pad?.contents ?? []), ...(pad?.appended ?? [])].filter((trace) => sees(trace, run.padViewer)),
  ];
  // What it is doing is told beside the run, and each state that it came to.
  return [...run.attempted, ...marksOf(JSON.stringify([run.history, traces]))];
};

/** All that may stand anywhere in what a viewer is shown. */
export const allowedOf = (model: Model, viewer: Viewer): Set<string> => {
  const shown = expectedOf(model, viewer);
  const allowed = new Set(marksOf(JSON.stringify(shown)));
  const eyes = viewer.kind === 'OWNER' ? null : viewer.kind === 'TOKEN' ? viewer.run.worker : viewer.name;
  for (const name of Object.keys(shown.threads))
    for (const event of threadOf(model, name).events)
      if (sees(event, eyes)) for (const text of event.shows ?? []) allowed.add(text);
  if (viewer.kind === 'TOKEN') for (const text of onceTold(model, viewer.run)) allowed.add(text);
  return allowed;
};

export const viewersOf = (model: Model): Viewer[] => [
  { kind: 'OWNER' },
  ...NAMES.map((name): Viewer => ({ kind: 'PARTICIPANT', name })),
  ...Object.values(model.tokens)
    .filter(({ dead }) => dead === null)
    .map((token): Viewer => ({ kind: 'TOKEN', token, run: runOf(model, token.run) })),
];
