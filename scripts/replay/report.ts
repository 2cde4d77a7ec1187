import type { Api } from './api.ts';
import type { OpenedThread } from './members.ts';
import { type PadView, readPad } from './pad.ts';
import { readView, type SeenEvent, type View } from './view.ts';
import { isActiveAt, visibleTo } from './visible.ts';

interface Row {
  readonly handle: string;
  readonly view: View;
  readonly pad: PadView;
  /** Whether it sees what the plain rule says, of the thread and of its scratchpad. */
  readonly isRight: boolean;
}

export interface Report {
  /** A table: the full record first, then each participant. */
  readonly text: string;
  /** Handles of those who do not see exactly what the plain rule says; nobody, if all is well. */
  readonly wrong: readonly string[];
}

interface ReportOptions extends OpenedThread {
  readonly api: Api;
  readonly apiKey: string;
  readonly onRead?: (() => void) | undefined;
}

/** Reads thread and scratchpad as everybody, and compares them with all there is and the plain rule. */
export const reportOn = async ({
  api,
  apiKey,
  threadId,
  scratchpadId,
  members,
  onRead,
}: ReportOptions): Promise<Report> => {
  const full = await readView(api, apiKey, threadId);
  const whole = await readPad(api, apiKey, scratchpadId);
  const rows: Row[] = [];
  for (const { handle, id, token } of members.values()) {
    const view = await readView(api, token, threadId);
    const pad = await readPad(api, token, scratchpadId);
    const entries = whole.entries.filter(({ threadSeq }) => isActiveAt(id, full.events, threadSeq));
    const isRight =
      same(view.events, visibleTo(id, full.events)) &&
      same(pad.entries, entries) &&
      pad.text === (view.state === 'ACTIVE' ? whole.text : null);
    rows.push({ handle, view, pad, isRight });
    onRead?.();
  }
  rows.sort((one, other) => (one.handle < other.handle ? -1 : 1));
  const wrong = rows.filter(({ isRight }) => !isRight).map(({ handle }) => handle);
  return { text: table(full, whole, rows), wrong };
};

const same = (seen: readonly { readonly seq: number }[], expected: readonly { readonly seq: number }[]) =>
  seen.map(({ seq }) => seq).join() === expected.map(({ seq }) => seq).join();

const messagesIn = (events: readonly SeenEvent[]): number =>
  events.filter(({ type }) => type === 'Message').length;

const table = (full: View, whole: PadView, rows: readonly Row[]): string => {
  const total = full.events.length;
  const line = (name: string, view: View, pad: PadView): string[] => [
    name,
    view.state?.toLowerCase() ?? '',
    String(view.events.length),
    `${total === 0 ? 0 : Math.round((100 * view.events.length) / total)} %`,
    String(messagesIn(view.events)),
    String(view.windows),
    String(view.unread),
    String(view.events[0]?.seq ?? ''),
    String(view.events.at(-1)?.seq ?? ''),
    String(pad.entries.length),
  ];
  const lines = [
    ['', 'state', 'events', 'of all', 'messages', 'windows', 'unread', 'first', 'last', 'entries'],
    line('(everything)', full, whole),
    ...rows.map(({ handle, view, pad }) => line(handle, view, pad)),
  ];
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)));
  return lines
    .map((cells) =>
      cells
        .map((cell, column) =>
          column < 2 ? cell.padEnd(widths?.[column] ?? 0) : cell.padStart(widths?.[column] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
};
