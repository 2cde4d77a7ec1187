import { exampleTabs, type Facts, headersOf, type Tab } from './examples.ts';
import { post, textsOf } from './fetcher.ts';
import type { Visit } from './visit.ts';

export interface Opening {
  /** Used where the browser remembers no tabs. */
  readonly tabs: Tab[];
  readonly headers: string;
  /** Whether the link brought a key, which then goes before what is remembered. */
  readonly isVisit: boolean;
}

const REMEMBERED = 'graphiql:tabState';

/** What the page opens with: what it remembers, or what a link brought along and the examples made with that. */
export const opening = async (visit: Visit | null): Promise<Opening> => {
  const remembered = rememberedTabs();
  if (visit === null) {
    const headers = remembered.find((tab) => tab.headers)?.headers ?? headersOf(null);
    return { tabs: exampleTabs(NOTHING), headers, isVisit: false };
  }
  const facts = await factsFor(visit);
  const examples = exampleTabs(facts);
  const headers = headersOf(visit.key);
  const names = new Set(examples.map(({ query }) => nameOf(query)));
  const own = remembered.filter(({ query }) => query.trim() !== '' && !names.has(nameOf(query)));
  for (const name of ['tabState', 'query', 'variables', 'headers', 'operationName'])
    localStorage.removeItem(`graphiql:${name}`);
  return { tabs: [...examples, ...own.map((tab) => ({ ...tab, headers }))], headers, isVisit: true };
};

/** What stands in a header editor; nothing while it is not JSON. */
export const headersIn = (text: string): Readonly<Record<string, string>> => {
  try {
    return textsOf(JSON.parse(text) as Record<string, unknown>);
  } catch {
    return {};
  }
};

const NOTHING: Facts = { key: null, threadId: null, scratchpadId: null, participantIds: [], actAs: null };

const FACTS = `query Facts {
  participants(first: 2) { nodes { id } }
  threads(first: 1) { nodes { id scratchpad { id } participants { participant { id } } } }
}`;

interface FactsResult {
  readonly participants?: { readonly nodes: readonly { readonly id: string }[] } | null;
  readonly threads?: {
    readonly nodes: readonly {
      readonly id: string;
      readonly scratchpad: { readonly id: string } | null;
      readonly participants: readonly { readonly participant: { readonly id: string } }[];
    }[];
  } | null;
}

/** Asks the server for what the link does not say. A key that is refused shows itself in the status. */
const factsFor = async ({ key, actAs, threadId }: Visit): Promise<Facts> => {
  const result = await post({ query: FACTS }, { Authorization: `Bearer ${key}` }).catch(() => undefined);
  const { participants, threads } = (result?.data ?? {}) as FactsResult;
  const thread = threads?.nodes[0];
  const members = thread?.participants.map(({ participant }) => participant.id) ?? [];
  const known = participants?.nodes.map(({ id }) => id) ?? [];
  const participantIds = members.length >= 2 ? members : known;
  return {
    key,
    threadId: threadId ?? thread?.id ?? null,
    scratchpadId: threadId === null || threadId === thread?.id ? (thread?.scratchpad?.id ?? null) : null,
    participantIds,
    actAs: actAs ?? participantIds[0] ?? null,
  };
};

const rememberedTabs = (): Tab[] => {
  try {
    const state: unknown = JSON.parse(localStorage.getItem(REMEMBERED) ?? 'null');
    const tabs = (state as { tabs?: unknown } | null)?.tabs;
    return Array.isArray(tabs) ? tabs.flatMap(tabOf) : [];
  } catch {
    return [];
  }
};

const tabOf = (value: unknown): Tab[] => {
  const { query, variables, headers } = value as Record<string, unknown>;
  if (typeof query !== 'string') return [];
  return [
    {
      query,
      ...(typeof variables === 'string' ? { variables } : {}),
      ...(typeof headers === 'string' ? { headers } : {}),
    },
  ];
};

const nameOf = (query: string): string | undefined =>
  /^(?!#).*(?:query|mutation|subscription)\s+(\w+)/m.exec(query)?.[1];
