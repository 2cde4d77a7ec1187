import type { LogSource, Notice } from '../live/source.ts';
import { type PadAddress, padChannel } from './keys.ts';
import type { PadChange, PadPosition } from './pad.ts';
import type { Plane } from './plane.ts';
import { contentFrom, entryFrom, type StoredContent, type StoredEntry } from './records.ts';

/**
 * A followed pad's key: one log for each epoch, and within it for each stretch without a fail-over. A log that goes on
 * under another key is gone under this one: whoever follows it then looks (`read` with `wants.position`) whether its
 * position holds, and follows the present one, or tells of the reset.
 */
export const padLogKey = (
  { ownerId, threadId, scratchpadId }: PadAddress,
  { epoch, tag }: Pick<PadPosition, 'epoch' | 'tag'>,
): string => [ownerId, threadId, scratchpadId, epoch || NONE, tag || NONE].join(' ');

const NONE = '-';

const splitKey = (key: string): { pad: PadAddress; epoch: string; tag: string } => {
  const [ownerId = '', threadId = '', scratchpadId = '', epoch = '', tag = ''] = key.split(' ');
  const given = (part: string): string => (part === NONE ? '' : part);
  return { pad: { ownerId, threadId, scratchpadId }, epoch: given(epoch), tag: given(tag) };
};

/** The changes of pads as logs that `live/` can follow. A pad without state has no item until it has one. */
export const padSource = (plane: Pick<Plane, 'changes' | 'heads'>): LogSource<PadChange> => ({
  name: 'scratchpad',
  mayFallBack: true,
  channel: (key) => padChannel(splitKey(key).pad.scratchpadId),
  async read(key, after, limit) {
    const { pad, epoch, tag } = splitKey(key);
    return (await plane.changes(pad, { epoch, tag, rev: after, seq: 0 }, limit)) ?? [];
  },
  async heads(keys) {
    const split = keys.map(splitKey);
    const ends = await plane.heads(split.map(({ pad }) => pad));
    return new Map(
      ends.flatMap((end, index) => {
        const { epoch, tag } = split[index] ?? {};
        return end?.epoch === epoch && end?.tag === tag ? [[keys[index] ?? '', end?.rev ?? 0] as const] : [];
      }),
    );
  },
  decode: (message, key) => decode(message, splitKey(key)),
  voids: ({ kind }) => kind === 'CONTENT_CLEARED' || kind === 'ENTRIES_CLEARED',
  size: (change) =>
    512 +
    (change.kind === 'ENTRY' ? 2 * change.entry.content.length : 0) +
    (change.kind === 'CONTENT' ? 2 * change.content.text.length : 0),
});

/** As the scripts announce: where the log stands now, and the change itself while it is small. */
interface Announcement {
  readonly gone?: true;
  readonly epoch: string;
  readonly tag: string;
  readonly position: number;
  readonly seq: number;
  readonly entry?: StoredEntry;
  readonly content?: StoredContent;
}

const decode = (
  message: string,
  { pad, epoch, tag }: ReturnType<typeof splitKey>,
): Notice<PadChange> | null => {
  const said = JSON.parse(message) as Announcement;
  if (said.gone === true || said.epoch !== epoch || said.tag !== tag) return { gone: true };
  return { position: said.position, item: changeOf(said, pad) };
};

const changeOf = (said: Announcement, { scratchpadId }: PadAddress): PadChange | undefined => {
  const { epoch, tag, position, seq } = said;
  const at = { epoch, tag, rev: position, seq };
  if (said.entry !== undefined)
    return { kind: 'ENTRY', position, at, entry: entryFrom(said.entry, scratchpadId, epoch) };
  if (said.content !== undefined)
    return { kind: 'CONTENT', position, at, content: contentFrom(said.content, epoch) };
  return undefined;
};
