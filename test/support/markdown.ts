import { readFile } from 'node:fs/promises';

/** A fenced block: ```language words. */
export interface Block {
  readonly file: string;
  readonly line: number;
  readonly language: string;
  readonly words: readonly string[];
  readonly text: string;
}

export const blocksOf = async (file: string): Promise<Block[]> => {
  const lines = (await readFile(file, 'utf8')).split('\n');
  const blocks: Block[] = [];
  let open: { language: string; words: string[]; line: number; text: string[] } | undefined;
  lines.forEach((line, index) => {
    const fence = /^```(.*)$/.exec(line)?.[1];
    if (fence === undefined) open?.text.push(line);
    else if (open !== undefined) {
      blocks.push({ ...open, file, text: open.text.join('\n') });
      open = undefined;
    } else {
      const [language = '', ...words] = fence.trim().split(/\s+/);
      open = { language, words, line: index + 1, text: [] };
    }
  });
  return blocks;
};

/** The cells of each row of the table whose header's first cell is `first`, without the header. */
export const tableOf = async (file: string, first: string): Promise<string[][]> => {
  const lines = (await readFile(file, 'utf8')).split('\n');
  const start = lines.findIndex((line) => line.startsWith(`| ${first} |`));
  if (start < 0) throw new Error(`${file} has no table of "${first}".`);
  const length = lines.slice(start).findIndex((line) => !line.startsWith('|'));
  return lines.slice(start + 2, start + length).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
};

/** What stands between backticks in a cell. */
export const codeIn = (cell: string): string | undefined => /`([^`]*)`/.exec(cell)?.[1];

export const linksOf = async (file: string): Promise<string[]> =>
  [...(await readFile(file, 'utf8')).matchAll(/\]\(([^)#\s]+)/g)].map(([, target = '']) => target);
