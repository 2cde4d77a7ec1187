/** Which pad: tenant, thread and pad name its keys and nothing else does. */
export interface PadAddress {
  readonly ownerId: string;
  readonly threadId: string;
  readonly scratchpadId: string;
}

type PadKey = Pick<PadAddress, 'ownerId' | 'scratchpadId'>;

/** The braces are a Cluster's hash tag: all keys of a pad lie in one slot, so that one script reaches them. */
const keyOf = ({ ownerId, scratchpadId }: PadKey, name: string): string =>
  `scratchpad:${ownerId}:{${scratchpadId}}:${name}`;

/** In the order in which every script takes them. `import` stands only while a large legacy list is taken over. */
const NAMES = ['gone', 'meta', 'content', 'entries', 'idem', 'import'] as const;

export const padKeys = (pad: PadKey): string[] => NAMES.map((name) => keyOf(pad, name));

export const importKey = (pad: PadKey): string => keyOf(pad, 'import');

/** Where a long text is laid until the script of its write (named by its request id) makes it the content. */
export const draftKey = (pad: PadKey, requestId: string): string => keyOf(pad, `draft:${requestId}`);

/** Where changes of a pad are announced, in the script that makes them. */
export const padChannel = (scratchpadId: string): string => `live:pad:${scratchpadId}`;

/** What earlier versions left behind. In a Cluster each may lie in a slot of its own. */
export interface LegacyKeys {
  /** STRING, JSON `{ content, last_updated }`, unix seconds. */
  readonly notebook: string;
  /** STRING, JSON `{ content, updated_at }`. */
  readonly content: string;
  /** LIST, JSON `{ content, created_at }` each. */
  readonly entries: string;
}

export const legacyKeys = ({ ownerId, threadId, scratchpadId }: PadAddress): LegacyKeys => ({
  notebook: `scratchpad:${threadId}:notebook`,
  content: `scratchpad:${ownerId}:${scratchpadId}:content`,
  entries: `scratchpad:${ownerId}:${scratchpadId}:entries`,
});
