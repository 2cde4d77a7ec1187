import type { Api } from './api.ts';
import type { OpenedThread } from './members.ts';
import { readView, type SeenEvent, type View } from './view.ts';
import { visibleTo } from './visible.ts';

interface Row {
  readonly handle: string;
  readonly view: View;
  /** What the plain rule lets it see, by `seq`. */
  readonly expected: readonly number[];
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

/** Reads the thread as everybody, and compares it with the full record and the plain rule. */
export const reportOn = async ({
  api,
  apiKey,
  threadId,
  members,
  onRead,
}: ReportOptions): Promise<Report> => {
  const full = await readView(api, apiKey, threadId);
  const rows: Row[] = [];
  for (const { handle, id, token } of members.values()) {
    const view = await readView(api, token, threadId);
    rows.push({ handle, view, expected: visibleTo(id, full.events).map(({ seq }) => seq) });
    onRead?.();
  }
  rows.sort((one, other) => (one.handle < other.handle ? -1 : 1));
  const wrong = rows
    .filter(({ view, expected }) => view.events.map(({ seq }) => seq).join() !== expected.join())
    .map(({ handle }) => handle);
  return { text: table(full, rows), wrong };
};

const messagesIn = (events: readonly SeenEvent[]): number =>
  events.filter(({ type }) => type === 'Message').length;

const table = (full: View, rows: readonly Row[]): string => {
  const total = full.events.length;
  const line = (name: string, view: View): string[] => [
    name,
    view.state?.toLowerCase() ?? '',
    String(view.events.length),
    `${total === 0 ? 0 : Math.round((100 * view.events.length) / total)} %`,
    String(messagesIn(view.events)),
    String(view.windows),
    String(view.unread),
    String(view.events[0]?.seq ?? ''),
    String(view.events.at(-1)?.seq ?? ''),
  ];
  const lines = [
    ['', 'state', 'events', 'of all', 'messages', 'windows', 'unread', 'first', 'last'],
    line('(everything)', full),
    ...rows.map(({ handle, view }) => line(handle, view)),
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
