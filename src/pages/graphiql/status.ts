/** How the page stands towards the server, in the words that the user sees. */
export type Status =
  | { readonly kind: 'quiet' }
  | { readonly kind: 'keyless' }
  | { readonly kind: 'refused' }
  | { readonly kind: 'unsendable' }
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'live'; readonly received: number }
  | { readonly kind: 'reconnecting'; readonly waitMs: number; readonly received: number };

let present: Status = { kind: 'quiet' };
const listeners = new Set<() => void>();

export const status = {
  get: (): Status => present,
  set(next: Status): void {
    present = next;
    for (const listener of listeners) listener();
  },
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

export const textOf = (state: Status): string => {
  switch (state.kind) {
    case 'quiet':
      return '';
    case 'keyless':
      return 'No key yet. Put one into Headers, below the operation: { "Authorization": "Bearer …" }';
    case 'refused':
      return 'The server refused this key: it is unknown, expired or revoked. Put a live one into Headers, below the operation.';
    case 'unsendable':
      return 'Headers hold what cannot be sent, such as a key that was cut short with “…”. Put the whole key there.';
    case 'unreachable':
      return 'The server does not answer. Is it running?';
    case 'live':
      return `Live · ${state.received} received. Stop with the button above.`;
    case 'reconnecting':
      return `Connection lost · ${state.received} received. It goes on where it was, next attempt in ${(state.waitMs / 1000).toFixed(1)} s.`;
    default:
      return state satisfies never;
  }
};
