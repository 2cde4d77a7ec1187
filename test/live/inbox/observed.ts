/** Somewhere between these two moments, by the clock of whoever looked. `to` is Infinity where nobody was told. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** What the record holds at one position of a thread. */
export type LogEvent = { readonly seq: number } & (
  | { readonly kind: 'MESSAGE'; readonly sender: string; readonly at: string }
  | { readonly kind: 'RETRACTION'; readonly message: number }
  | { readonly kind: 'CHANGE'; readonly subject: string; readonly isActive: boolean }
  | { readonly kind: 'OTHER' }
);

/** `LOST`: it was asked, and the answer never came: it stands or does not. */
export type Code = 'OK' | 'CONFLICT' | 'PARTICIPANT_NOT_ACTIVE' | 'LOST';

/** What was done, or seen, of an agent's inbox in one thread. */
export type Seen =
  /** `answers`: the delivery that it acknowledged in the same commit. */
  | { readonly kind: 'EVENT'; readonly event: LogEvent; readonly answers: string | null }
  /** It was handed out; at most `batch` at once were asked for. */
  | {
      readonly kind: 'GIVEN';
      readonly deliveryId: string;
      readonly seqs: readonly number[];
      readonly attempt: number;
      readonly batch: number;
    }
  | {
      readonly kind: 'ACKNOWLEDGED';
      readonly deliveryId: string | null;
      readonly upTo: number | null;
      readonly code: Code;
    }
  /** An answer that was to acknowledge a delivery, and was not taken. */
  | { readonly kind: 'REFUSED'; readonly deliveryId: string; readonly code: Code }
  | {
      readonly kind: 'EXTENDED';
      readonly deliveryId: string;
      readonly seconds: number;
      readonly code: Code;
    }
  /** Its lease was made to end, of this delivery or (null) of whichever was in hand: `found`. */
  | { readonly kind: 'LAPSED'; readonly deliveryId: string | null; readonly found: string | null }
  /** All that waited. */
  | { readonly kind: 'PENDING'; readonly seqs: readonly number[] };

export type Observation = { readonly span: Span; readonly thread: string } & Seen;

/** While this lasted somebody took, of whom not all that was given to it came: at most `batch` messages of a thread at once. */
export interface Unseen {
  readonly span: Span;
  readonly batch: number;
}

export interface Agent {
  readonly handle: string;
  readonly isConcurrent: boolean;
}
