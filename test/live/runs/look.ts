import type { Line, Shown, Viewer } from './shown.ts';
import { marksOf, type World } from './world.ts';

const LOOK = /* GraphQL */ `
  query ($ids: [ID!]!, $conversation: ID!, $elsewhere: ID!, $recalls: Boolean!) {
    viewer { run { id } }
    runs(first: 200) { nodes { id } }
    nodes(ids: $ids) {
      __typename id
      ... on Run {
        status result error toolCalls maxToolCalls input scratchpadAccess conversationThreadId
        participant { id } delegator { id } parentRun { id } conversationThread { id } scratchpad { id }
      }
      ... on Thread { timeline { events(first: 200) { nodes {
        __typename
        ... on Message { content run { id } }
        ... on SystemEvent { kind data }
        ... on ParticipantStateChanged { transition participant { id } }
      } } } }
      ... on Scratchpad {
        content { text run { id } } entries(first: 200) { nodes { content run { id } } }
        viewerMayWrite thread { id } formattedView
      }
    }
    recall(threadId: $conversation, first: 100) @include(if: $recalls) { nodes { payload } }
    elsewhere: recall(threadId: $elsewhere, first: 100) @include(if: $recalls) { nodes { payload } }
  }`;

type Id = { readonly id: string } | null;
interface Node {
  readonly __typename: string;
  readonly id: string;
}
interface RunNode extends Node {
  readonly status: string;
  readonly result: unknown;
  readonly error: string | null;
  readonly toolCalls: number;
  readonly maxToolCalls: number;
  readonly input: unknown;
  readonly scratchpadAccess: string | null;
  readonly conversationThreadId: string | null;
  readonly participant: Id;
  readonly delegator: Id;
  readonly parentRun: Id;
  readonly conversationThread: Id;
  readonly scratchpad: Id;
}
interface EventNode {
  readonly __typename: string;
  readonly content?: string;
  readonly run?: Id;
  readonly kind?: string;
  readonly data?: { readonly name?: string; readonly isError?: boolean; readonly runId?: string };
  readonly transition?: string;
  readonly participant?: Id;
}
interface ThreadNode extends Node {
  readonly timeline: { readonly events: { readonly nodes: readonly EventNode[] } };
}
interface PadNode extends Node {
  readonly content: { readonly text: string; readonly run: Id } | null;
  readonly entries: { readonly nodes: readonly { readonly content: string; readonly run: Id }[] } | null;
  readonly viewerMayWrite: boolean;
  readonly thread: Id;
  readonly formattedView: string | null;
}
type Recalled = { readonly nodes: readonly { readonly payload: { readonly memo: string } }[] } | null;
interface Look {
  readonly viewer: { readonly run: Id };
  readonly runs: { readonly nodes: readonly { readonly id: string }[] };
  readonly nodes: readonly (RunNode | ThreadNode | PadNode | null)[];
  readonly recall?: Recalled;
  readonly elsewhere?: Recalled;
}

/** What a server answers, in the model's names; and its whole text. */
export const actualOf = async (
  world: World,
  viewer: Viewer,
  turn: number,
): Promise<{ readonly shown: Shown; readonly text: string }> => {
  const name = viewer.kind === 'OWNER' ? null : viewer.kind === 'TOKEN' ? viewer.token.name : viewer.name;
  const conversation = viewer.kind === 'TOKEN' ? world.idOf(viewer.run.conversation) : world.idOf('talk');
  const elsewhere = world.idOf('room') === conversation ? 'talk' : 'room';
  const answer = await world.server(turn).graphql<Look>(world.secretOf(name), LOOK, {
    ids: [...world.ids].filter(([one]) => !one.startsWith('who ')).map(([, id]) => id),
    conversation,
    elsewhere: world.idOf(elsewhere),
    recalls: viewer.kind === 'TOKEN',
  });
  const { data, errors = [] } = answer;
  const unexpected = errors.filter(({ path }) => path?.[0] !== 'elsewhere' && path?.[0] !== 'recall');
  if (!data || unexpected.length > 0) throw new Error(`${name}: ${JSON.stringify(errors)}`);
  const named = (id: Id | undefined): string | null =>
    id === null || id === undefined ? null : world.nameOf(id.id);
  const is =
    <T extends Node>(type: string) =>
    (node: Node | null): node is T =>
      node?.__typename === type;
  const memos = (found: Recalled | undefined): string[] | null =>
    found ? found.nodes.map(({ payload }) => payload.memo).sort() : null;

  const runs = data.nodes.filter(is<RunNode>('Run')).map((run): [string, object] => [
    world.nameOf(run.id),
    {
      status: run.status,
      result: run.result,
      error: run.error,
      toolCalls: run.toolCalls,
      maxToolCalls: run.maxToolCalls,
      input: run.input,
      worker: named(run.participant),
      delegator: named(run.delegator),
      parent: named(run.parentRun),
      access: run.scratchpadAccess,
      pad: named(run.scratchpad),
      conversation:
        run.conversationThreadId === null
          ? null
          : [named(run.conversationThread), world.nameOf(run.conversationThreadId)],
    },
  ]);
  const threads = data.nodes
    .filter(is<ThreadNode>('Thread'))
    .map(({ id, timeline }): [string, readonly Line[]] => [
      world.nameOf(id),
      timeline.events.nodes.map((event): Line => {
        if (event.__typename === 'Message') return [event.content ?? '', named(event.run)];
        if (event.__typename === 'ParticipantStateChanged')
          return [
            `${event.transition === 'REMOVED' ? 'remove' : 'readd'} ${named(event.participant)?.slice(4)}`,
            null,
          ];
        const { data: told } = event;
        if (event.kind !== 'TOOL_RESULT') return [event.kind ?? '', null];
        return [`${told?.name}${told?.isError ? ' failed' : ''}`, world.nameOf(told?.runId ?? '')];
      }),
    ]);
  const pads = data.nodes.filter(is<PadNode>('Scratchpad')).map((pad): [string, object] => [
    world.nameOf(pad.id).slice(4),
    {
      content: pad.content === null ? null : [pad.content.text, named(pad.content.run)],
      entries: (pad.entries?.nodes ?? []).map(({ content, run }) => [content, named(run)]),
      mayWrite: pad.viewerMayWrite,
      thread: named(pad.thread),
      view: pad.formattedView === null ? null : marksOf(pad.formattedView),
    },
  ]);
  return {
    text: JSON.stringify(answer),
    shown: {
      self: named(data.viewer.run),
      listed: data.runs.nodes.map(({ id }) => world.nameOf(id)).sort(),
      runs: Object.fromEntries(runs),
      threads: Object.fromEntries(threads),
      pads: Object.fromEntries(pads),
      recalled: memos(data.recall),
      elsewhere:
        viewer.kind === 'TOKEN'
          ? (errors.find(({ path }) => path?.[0] === 'elsewhere')?.extensions?.code ?? 'OK')
          : null,
    },
  };
};
