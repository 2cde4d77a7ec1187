import { entryId } from '../shared/ids.ts';
import type { Author, PadContent, PadEntry, PadPosition } from './pad.ts';

/**
 * How entries and contents stand in Redis. The names `content`, `created_at` and `updated_at` are those of the format
 * that other programs read; the scripts put the numbers in front, where they find them again without decoding JSON.
 */
export interface StoredEntry extends Stored {
  readonly seq: number;
  readonly created_at: string;
}

export interface StoredContent extends Stored {
  readonly version: number;
  readonly updated_at: string;
}

interface Stored {
  readonly rev: number;
  readonly thread_seq: number;
  readonly author: string | null;
  readonly run: string | null;
  readonly sources: readonly string[];
  readonly content: string;
}

/** The members that all entries of a write share, behind the scripts' own. */
export const commonMembers = ({ authorId, runId, sourceIds }: Author): string =>
  `"author":${JSON.stringify(authorId)},"run":${JSON.stringify(runId)},"sources":${JSON.stringify(sourceIds)}`;

const written = (stored: Stored) => ({
  rev: stored.rev,
  threadSeq: stored.thread_seq,
  authorId: stored.author,
  runId: stored.run,
  sourceIds: stored.sources,
});

export const entryFrom = (stored: StoredEntry, scratchpadId: string, epoch: string): PadEntry => ({
  id: entryId({ scratchpadId, epoch, seq: stored.seq }),
  seq: stored.seq,
  content: stored.content,
  createdAt: stored.created_at,
  ...written(stored),
});

export const contentFrom = (stored: StoredContent, epoch: string): PadContent => ({
  text: stored.content,
  version: stored.version,
  etag: `${epoch}-${stored.version}`,
  updatedAt: stored.updated_at,
  ...written(stored),
});

export const readEntry = (json: string, scratchpadId: string, epoch: string): PadEntry =>
  entryFrom(JSON.parse(json) as StoredEntry, scratchpadId, epoch);

export const readContent = (json: string, epoch: string): PadContent =>
  contentFrom(JSON.parse(json) as StoredContent, epoch);

/** What a write leaves for whoever asks again under its key: where the pad stood then. */
export interface WriteResult {
  readonly position: PadPosition;
  readonly count: number;
  readonly threadSeq: number;
  readonly at: string;
  readonly version: number;
}

export const readResult = (text: string): WriteResult => {
  const [epoch = '', tag = '', rev, seq, count, threadSeq, at = '', version] = text.split(' ');
  return {
    position: { epoch, tag, rev: Number(rev), seq: Number(seq) },
    count: Number(count),
    threadSeq: Number(threadSeq),
    at,
    version: Number(version),
  };
};

/** The entries of a write, from its result and what was asked: the same input is what a key stands for. */
export const entriesOf = (
  result: WriteResult,
  scratchpadId: string,
  { authorId, runId, sourceIds }: Author,
  contents: readonly string[],
): PadEntry[] => {
  const { position, count, threadSeq, at } = result;
  return contents.map((content, index) => {
    const behind = count - 1 - index;
    const seq = position.seq - behind;
    return {
      id: entryId({ scratchpadId, epoch: position.epoch, seq }),
      seq,
      rev: position.rev - behind,
      threadSeq,
      content,
      createdAt: at,
      authorId,
      runId,
      sourceIds,
    };
  });
};

export const contentOf = (
  result: WriteResult,
  { authorId, runId, sourceIds }: Author,
  text: string,
): PadContent => ({
  text,
  version: result.version,
  etag: `${result.position.epoch}-${result.version}`,
  rev: result.position.rev,
  threadSeq: result.threadSeq,
  updatedAt: result.at,
  authorId,
  runId,
  sourceIds,
});
