import DataLoader from 'dataloader';
import { readEntryId } from '../shared/ids.ts';
import type { Look } from '../timeline/look.ts';
import type { Pad, PadEntry } from './pad.ts';
import type { PadPage } from './plane.ts';
import type { PageAsk, Reading, SeenState, WantedPad } from './reading.ts';
import type { Scratchpad } from './rows.ts';

/** What one field asks of a pad, as one viewer. */
export interface PadQuestion {
  readonly pad: Pad;
  readonly viewerId: string | null;
  readonly content?: boolean;
  readonly page?: PageAsk;
  /** A single entry, by seq. */
  readonly seq?: number;
}

export interface PadAnswer {
  readonly seen: SeenState;
  /** The page that was asked for. */
  readonly page: PadPage | null;
}

/** `HIDDEN`: the viewer may not know of the thread. `GONE`: the pad was deleted meanwhile. */
export type PadReply = PadAnswer | 'HIDDEN' | 'GONE';

/**
 * Fields of one operation ask together: what one viewer asks of one pad is one script, and that of all pads one
 * pipeline. The looks are the operation's own.
 */
export const createPadLoader = (
  reading: Reading,
  lookAt: (pad: Pad, viewerId: string | null) => Promise<Look | null>,
): DataLoader<PadQuestion, PadReply, string> =>
  new DataLoader(
    async (questions) => {
      const groups = new Map<string, PadQuestion[]>();
      for (const question of questions) {
        const key = viewOf(question);
        groups.set(key, [...(groups.get(key) ?? []), question]);
      }
      const seen = new Map<string, SeenState | 'GONE'>();
      const wanted = await Promise.all(
        [...groups].map(async ([key, asked]): Promise<[string, WantedPad] | null> => {
          const [{ pad, viewerId }] = asked as [PadQuestion];
          const look = await lookAt(pad, viewerId);
          return look && [key, { pad, look, ask: askOf(asked) }];
        }),
      );
      const visible = wanted.filter((one) => one !== null);
      const answers = await reading.read(visible.map(([, one]) => one));
      visible.forEach(([key], index) => {
        seen.set(key, answers[index] ?? 'GONE');
      });
      return questions.map((question): PadReply => {
        const key = viewOf(question);
        const answer = seen.get(key) ?? 'HIDDEN';
        if (typeof answer === 'string') return answer;
        const pages = (groups.get(key) ?? []).filter(({ page }) => page !== undefined);
        return { seen: answer, page: answer.pages[pages.indexOf(question)] ?? null };
      });
    },
    { cacheKeyFn: keyOf },
  );

/** The entry with this id if the viewer may see it. */
export const findEntry = async (
  loaders: {
    readonly scratchpad: DataLoader<string, Scratchpad | null>;
    readonly padState: DataLoader<PadQuestion, PadReply, string>;
  },
  id: string,
  viewerId: string | null,
): Promise<PadEntry | null> => {
  const place = readEntryId(id);
  const pad = place && (await loaders.scratchpad.load(place.scratchpadId));
  if (!pad) return null;
  const reply = await loaders.padState.load({ pad, viewerId, seq: place.seq });
  return typeof reply === 'string' ? null : (reply.seen.entries.find((entry) => entry.id === id) ?? null);
};

const viewOf = ({ pad, viewerId }: PadQuestion): string => `${pad.scratchpadId} ${viewerId ?? ''}`;

const keyOf = (question: PadQuestion): string => {
  const { content = false, page = null, seq = null } = question;
  return `${viewOf(question)} ${JSON.stringify([content, page, seq])}`;
};

const askOf = (questions: readonly PadQuestion[]): WantedPad['ask'] => ({
  content: questions.some(({ content }) => content === true),
  pages: questions.flatMap(({ page }) => (page === undefined ? [] : [page])),
  seqs: questions.flatMap(({ seq }) => (seq === undefined ? [] : [seq])),
});
