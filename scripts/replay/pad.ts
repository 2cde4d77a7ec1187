import type { Api } from './api.ts';

export interface SeenEntry {
  readonly seq: number;
  /** How far the thread was when it was written. */
  readonly threadSeq: number;
  readonly content: string;
}

/** A scratchpad as one viewer reads it, page by page, from its first entry. */
export interface PadView {
  /** The body; null for whoever is removed. */
  readonly text: string | null;
  readonly entries: readonly SeenEntry[];
}

const READ = /* GraphQL */ `
  query ReadPad($scratchpadId: ID!, $after: Cursor, $first: Int!) {
    scratchpad(id: $scratchpadId) {
      content { text }
      entries(first: $first, after: $after) {
        nodes { seq threadSeq content }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
`;

interface Answer {
  readonly scratchpad: {
    readonly content: { readonly text: string } | null;
    readonly entries: {
      readonly nodes: readonly SeenEntry[];
      readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
    };
  };
}

/** With an API key: everything. With a participant's token: what it sees. */
export const readPad = async (
  api: Api,
  token: string,
  scratchpadId: string,
  pageSize = 50,
): Promise<PadView> => {
  const entries: SeenEntry[] = [];
  let after: string | null = null;
  for (;;) {
    const answer: Answer = await api.ask(token, READ, { scratchpadId, after, first: pageSize });
    const { content, entries: page } = answer.scratchpad;
    entries.push(...page.nodes);
    if (!page.pageInfo.hasNextPage) return { text: content === null ? null : content.text, entries };
    after = page.pageInfo.endCursor;
  }
};
