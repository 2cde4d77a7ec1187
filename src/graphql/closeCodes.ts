/** Close codes on which a client of ours comes back. */
export const CLOSE = {
  restart: 1012,
  tryAgain: 1013,
  credentialEnded: 4403,
  badMessage: 4400,
  tooBig: 1009,
} as const;
