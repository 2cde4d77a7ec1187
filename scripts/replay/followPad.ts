import type { Member } from './members.ts';
import { openStream } from './stream.ts';

export interface PadChange {
  readonly __typename: string;
  readonly entry?: {
    readonly seq: number;
    readonly content: string;
    readonly author: { readonly handle: string } | null;
  };
  readonly content?: { readonly text: string; readonly updatedBy: { readonly handle: string } | null };
}

/** A scratchpad as one participant has it from live delivery alone, from its first change on. */
export interface PadFollowing {
  /** Every entry that arrived, by its position in the pad. */
  readonly entries: readonly { readonly seq: number; readonly content: string }[];
  /** The body as it was last told. */
  readonly text: () => string;
  /** How often the connection was lost and taken up again. */
  readonly retries: () => number;
  /** Why it ended before it was told to. */
  readonly problem: () => unknown;
  /** Resolves when so many entries and this body have arrived, or nothing will any more. */
  received(entries: number, text: string): Promise<void>;
  stop(): Promise<void>;
}

const FOLLOW = /* GraphQL */ `
  subscription FollowPad($scratchpadId: ID!, $after: Cursor) {
    scratchpad(scratchpadId: $scratchpadId, after: $after) {
      cursor
      change {
        __typename
        ... on EntryAppended { entry { seq content author { handle } } }
        ... on ContentUpdated { content { text updatedBy { handle } } }
      }
      ended
    }
  }
`;

interface FollowOptions {
  /** `ws://…/graphql` */
  readonly socketUrl: string;
  readonly scratchpadId: string;
  readonly member: Member;
  readonly after: string;
  readonly onChange?: ((change: PadChange) => void) | undefined;
}

/** Follows the scratchpad live as one participant, over a connection of its own. */
export const followPad = ({
  socketUrl,
  scratchpadId,
  member,
  after,
  onChange,
}: FollowOptions): PadFollowing => {
  const entries: { seq: number; content: string }[] = [];
  let text = '';
  const request = { query: FOLLOW, variables: { scratchpadId, after } };
  const { until, ...stream } = openStream<{ scratchpad: { change: PadChange | null } | null }>(
    socketUrl,
    member.token,
    request,
    ({ scratchpad }) => {
      const change = scratchpad?.change;
      if (!change) return;
      if (change.entry) entries.push({ seq: change.entry.seq, content: change.entry.content });
      if (change.content) text = change.content.text;
      onChange?.(change);
    },
  );
  return {
    ...stream,
    entries,
    text: () => text,
    received: (count, expected) => until(() => entries.length >= count && text === expected),
  };
};

const LONGEST = 400;

/** One line for a person, or a few. */
export const asPadLine = ({ __typename, entry, content }: PadChange): string => {
  const short = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text);
  if (entry) return `       + ${entry.author?.handle ?? 'the user'} notes: ${short(entry.content)}`;
  if (content) return `       = ${content.updatedBy?.handle ?? 'the user'} writes: ${short(content.text)}`;
  return `       · ${__typename}`;
};
