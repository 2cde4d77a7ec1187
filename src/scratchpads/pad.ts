import type { PadAddress } from './keys.ts';

/** A pad as its SQL row has it, read by the statement that authorised what is done with it. */
export interface Pad extends PadAddress {
  /** 0: its state is kept. Else it goes so long after the last write. */
  readonly ttlSeconds: number;
  /** Which of two `ttlSeconds` is the later: when the row was last changed, Unix ms, another at each change. */
  readonly ttlVersion: number;
  /** `legacyCheckedAt` is null: what an earlier version left is taken over before anything else. */
  readonly legacyPending: boolean;
}

/** Of a pad, as scripts take it. */
export const ttlOf = ({ ttlSeconds, ttlVersion }: Pick<Pad, 'ttlSeconds' | 'ttlVersion'>): string =>
  `${ttlSeconds} ${ttlVersion}`;

/** What an authorising statement saw. Good for 10 s. */
export interface Grant {
  /** The thread's last `seq` then. */
  readonly threadSeq: number;
  /** `performance.now()` before the statement was sent. */
  readonly readAt: number;
  /** For how long, where that is not 10 s. */
  readonly goodForMs?: number;
  /** The mark of the `FENCED` that asked for it, if the statement waited for the thread's row; else null. */
  readonly settles: string | null;
}

export interface Author {
  /** null: the owner itself. */
  readonly authorId: string | null;
  readonly runId: string | null;
  readonly sourceIds: readonly string[];
}

/**
 * An idempotency key with its scope (operation and actor; the pad is implied), and the hash of the canonical input
 * (`inputHash`: no white space).
 */
export interface WriteKey {
  readonly key: string;
  readonly hash: string;
}

/**
 * A position in the log of a pad's changes: `rev` counts them within `epoch`, `seq` is that of the last entry up to
 * there. `tag` names the stretch of the epoch that was written without a fail-over: by it a position is recognised
 * that was lost in one. Of a pad without state all are '' and 0.
 */
export interface PadPosition {
  readonly epoch: string;
  readonly rev: number;
  readonly seq: number;
  readonly tag: string;
}

export const NOWHERE: PadPosition = { epoch: '', rev: 0, seq: 0, tag: '' };

interface Written {
  readonly rev: number;
  /** The position in the thread at which it was written: who is active there may see it. */
  readonly threadSeq: number;
  readonly authorId: string | null;
  readonly runId: string | null;
  readonly sourceIds: readonly string[];
}

export interface PadEntry extends Written {
  readonly id: string;
  readonly seq: number;
  readonly content: string;
  /** RFC 3339, UTC. */
  readonly createdAt: string;
}

export interface PadContent extends Written {
  readonly text: string;
  /** Counts within the epoch. */
  readonly version: number;
  readonly etag: string;
  /** RFC 3339, UTC. */
  readonly updatedAt: string;
}

/** What `expectedEtag` means where no content is. */
export const NO_ETAG = '';

/** One change, at `position` = its rev. `at` is where a reader stands that has seen it. */
export type PadChange = { readonly position: number; readonly at: PadPosition } & (
  | { readonly kind: 'ENTRY'; readonly entry: PadEntry }
  | { readonly kind: 'CONTENT'; readonly content: PadContent }
  | {
      readonly kind: 'CONTENT_CLEARED' | 'ENTRIES_CLEARED';
      readonly threadSeq: number;
      readonly actorId: string | null;
    }
);

/** The pad is deleted: whoever still follows or writes it comes too late. */
export interface Gone {
  readonly kind: 'GONE';
}

/**
 * The grant is too old, or membership may have changed since: authorise again. With a `mark` by the statement that
 * waits for the thread's row, and say so by `Grant.settles = mark`; without one (null) by the ordinary statement. It
 * may be answered again: give up after a few rounds (`UNAVAILABLE`).
 */
export interface Fenced {
  readonly kind: 'FENCED';
  readonly mark: string | null;
}

/** Content that the pad cannot take; nothing was written. Of a pad's own limits `limit` is entries or bytes. */
export interface TooLarge {
  readonly kind: 'TOO_LARGE';
  readonly what: 'CONTENT' | 'ENTRY' | 'BATCH_ENTRIES' | 'BATCH_BYTES' | 'PAD_ENTRIES' | 'PAD_BYTES';
  readonly limit: number;
}

export interface KeyReused {
  readonly kind: 'KEY_REUSED';
}

export interface EtagDiffers {
  readonly kind: 'ETAG_DIFFERS';
  /** The present one. */
  readonly etag: string;
}

export interface Appended {
  readonly kind: 'DONE';
  readonly entries: readonly PadEntry[];
  /** After the last of them. */
  readonly position: PadPosition;
}

export interface ContentSet {
  readonly kind: 'DONE';
  readonly content: PadContent;
  readonly position: PadPosition;
}

export interface Cleared {
  readonly kind: 'DONE';
  /** The present end, also if there was nothing to clear. */
  readonly position: PadPosition;
}

/** Sizes are UTF-8 bytes. */
export const PAD_LIMITS = {
  content: 1024 * 1024,
  entry: 64 * 1024,
  batchEntries: 1_000,
  batchBytes: 4 * 1024 * 1024,
  entries: 100_000,
  bytes: 64 * 1024 * 1024,
} as const;
