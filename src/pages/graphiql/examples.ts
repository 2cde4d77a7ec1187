/** What the examples are filled in with; null becomes a placeholder. */
export interface Facts {
  readonly key: string | null;
  readonly threadId: string | null;
  readonly scratchpadId: string | null;
  readonly participantIds: readonly string[];
  readonly actAs: string | null;
}

export interface Tab {
  readonly query: string;
  readonly variables?: string;
  readonly headers?: string;
}

export const headersOf = (key: string | null, more: Record<string, string> = {}): string =>
  json({ Authorization: `Bearer ${key ?? ''}`, ...more });

/** The tour: who one is, a thread, a message in it, what stands in it, what comes, and another's view of it. */
export const exampleTabs = ({ key, threadId, scratchpadId, participantIds, actAs }: Facts): Tab[] => {
  const thread = threadId ?? 'thread_…';
  const [first = 'part_…', second = 'part_…'] = participantIds;
  const self = actAs ?? first;
  const headers = headersOf(key);
  return [
    { query: WHO_AM_I, headers },
    // All of them, as far as they are known: the thread of this set is found, not another one made.
    {
      query: OPEN_THREAD,
      variables: json({
        input: { participantIds: participantIds.length >= 2 ? participantIds : [first, second] },
      }),
      headers,
    },
    {
      query: POST_MESSAGE,
      variables: json({ input: { threadId: thread, as: self, content: 'Hello from GraphiQL' } }),
      headers,
    },
    { query: READ_TIMELINE, variables: json({ threadId: thread, last: 20 }), headers },
    { query: FOLLOW_TIMELINE, variables: json({ threadId: thread }), headers },
    { query: READ_SCRATCHPAD, variables: json({ threadId: thread }), headers },
    {
      query: APPEND_FINDING,
      variables: json({
        input: { scratchpadId: scratchpadId ?? 'sp_…', as: self, content: 'A finding from GraphiQL' },
      }),
      headers,
    },
    { query: FOLLOW_SCRATCHPAD, variables: json({ threadId: thread }), headers },
    {
      query: AS_PARTICIPANT,
      variables: json({ threadId: thread }),
      headers: headersOf(key, { 'X-Act-As': self }),
    },
  ];
};

const json = (value: unknown): string => JSON.stringify(value, null, 2);

const WHO_AM_I = `# Whose key is this, whom can it see?
# The key itself stands in Headers: the second
# view below this editor, beside Variables.
# Run with the button, or Ctrl-Enter.
query WhoAmI {
  viewer {
    user { id name }
    participant { id handle displayName }
    credential { kind label prefix expiresAt }
  }
  participants(first: 10) {
    nodes { id kind handle displayName }
  }
}
`;

const OPEN_THREAD = `# Finds the one thread of these participants,
# or creates it.
mutation OpenThread($input: OpenThreadInput!) {
  openThread(input: $input) {
    created
    thread {
      id
      participants {
        participant { handle displayName }
        state
      }
    }
  }
}
`;

const POST_MESSAGE = `# Says something as one of the members. With
# FollowTimeline running in a second window (this
# page once more), it arrives there at once.
mutation PostMessage($input: PostMessageInput!) {
  postMessage(input: $input) {
    cursor
    message {
      id
      seq
      content
      sender { handle displayName }
    }
  }
}
`;

const READ_TIMELINE = `# The newest events of a thread.
# Page back with last and before.
query ReadTimeline($threadId: ID!, $last: Int!, $before: Cursor) {
  thread(id: $threadId) {
    timeline {
      end
      events(last: $last, before: $before) {
        nodes {
          __typename
          seq
          at
          ... on Message { content sender { displayName } isRetracted }
          ... on ParticipantStateChanged { transition participant { displayName } }
          ... on Retraction { message { id } reason }
          ... on SystemEvent { kind }
        }
        pageInfo { hasPreviousPage startCursor }
      }
    }
  }
}
`;

const FOLLOW_TIMELINE = `# Follows a thread live. When the connection
# breaks, it goes on where it was: every event
# once and in order. It ends when you leave this
# tab: post from a second window. To start further
# back, add "after" with a cursor to Variables.
subscription FollowTimeline($threadId: ID!, $after: Cursor) {
  timeline(threadId: $threadId, after: $after) {
    cursor
    event {
      __typename
      seq
      at
      ... on Message { content sender { displayName } }
      ... on ParticipantStateChanged { transition participant { displayName } }
      ... on Retraction { message { id } reason }
      ... on SystemEvent { kind }
    }
    ended
  }
}
`;

const READ_SCRATCHPAD = `# The thread's shared working memory: a body that
# is rewritten, and findings that are added.
query ReadScratchpad($threadId: ID!) {
  thread(id: $threadId) {
    scratchpad {
      id
      content { text version updatedBy { displayName } }
      entries(last: 20) {
        nodes { seq content author { displayName } }
        pageInfo { hasPreviousPage startCursor }
      }
      formattedView
    }
  }
}
`;

const APPEND_FINDING = `# Adds a finding. However many append at once,
# each has its place in the list. Where the thread
# has no scratchpad yet, createScratchpad makes it.
mutation AppendFinding($input: AppendScratchpadEntryInput!) {
  appendScratchpadEntry(input: $input) {
    cursor
    entry { seq content author { displayName } }
  }
}
`;

const FOLLOW_SCRATCHPAD = `# Follows the thread's scratchpad live, and goes on
# where it was after a lost connection. It waits for
# one that is not there yet.
subscription FollowScratchpad($threadId: ID!, $after: Cursor) {
  scratchpad(threadId: $threadId, after: $after) {
    cursor
    change {
      __typename
      ... on EntryAppended { entry { seq content author { displayName } } }
      ... on ContentUpdated { content { text version updatedBy { displayName } } }
      ... on ContentCleared { actor { displayName } }
      ... on EntriesCleared { actor { displayName } }
      ... on ScratchpadReset { scratchpad { formattedView } }
    }
    ended
  }
}
`;

const AS_PARTICIPANT = `# The same thread through the eyes of one
# participant: see X-Act-As in Headers.
query AsParticipant($threadId: ID!) {
  thread(id: $threadId) {
    viewerState
    unreadCount
    lastMessage { content sender { displayName } }
    timeline {
      viewer { handle }
      windows { from until }
    }
  }
  threads(first: 5) {
    nodes {
      id
      unreadCount
      participants { participant { displayName } state }
    }
  }
}
`;
