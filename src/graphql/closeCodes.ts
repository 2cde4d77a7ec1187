import { CloseCode } from 'graphql-ws';

/** Close codes on which a client of ours comes back. */
export const CLOSE = {
  restart: 1012,
  tryAgain: 1013,
  credentialEnded: 4403,
  badMessage: 4400,
  tooBig: 1009,
} as const;

/** What is no message, or comes out of turn, for graphql-ws: one code for all, as clients take the others for fatal. */
const OURS: ReadonlyMap<number, number> = new Map(
  [CloseCode.Unauthorized, CloseCode.SubscriberAlreadyExists, CloseCode.TooManyInitialisationRequests].map(
    (code) => [code, CLOSE.badMessage],
  ),
);

/** The code to close with for one that graphql-ws chose. */
export const closeCode = (code: number): number => OURS.get(code) ?? code;

/** A close reason has at most 123 bytes. */
export const closeReason = (reason: string): string =>
  Buffer.byteLength(reason) <= 123 ? reason : `${reason.slice(0, 30)}…`;
