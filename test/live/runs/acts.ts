export type Access = 'READ' | 'APPEND' | 'WRITE';
export type Status =
  | 'QUEUED'
  | 'IN_PROGRESS'
  | 'INPUT_REQUIRED'
  | 'COMPLETED'
  | 'FAILED'
  | 'CANCELLED'
  | 'EXPIRED';

/** Who acts: the user (both null), a participant, or whoever holds a token of a run. */
export interface By {
  readonly who: string | null;
  readonly token: string | null;
}

/** What is done, by name: nothing is chosen any more. `text` is unlike every other. */
export type Act =
  | {
      readonly act: 'delegate';
      /** Of the run, and of its token. */
      readonly name: string;
      readonly by: By;
      readonly worker: string;
      readonly pad: string | null;
      /** The thread in `scratch_pad_thread`, where no scratchpad is named. */
      readonly locator: string | null;
      readonly access: Access | null;
      readonly parent: string | null;
      readonly conversation: string | null;
      readonly maxToolCalls: number;
      readonly expiresInSeconds: number | null;
      readonly text: string;
    }
  /** The same delegation again, with its key. */
  | { readonly act: 'again'; readonly name: string; readonly run: string; readonly by: By }
  | { readonly act: 'claim'; readonly name: string; readonly run: string; readonly by: By }
  | {
      readonly act: 'update';
      readonly run: string;
      readonly by: By;
      readonly status: Status | null;
      readonly expiresInSeconds: number | null;
      readonly text: string;
    }
  /** Its deadline passes. */
  | { readonly act: 'lapse'; readonly run: string }
  | {
      readonly act: 'tool';
      readonly run: string;
      readonly by: By;
      readonly tool: Tool;
      readonly text: string;
    }
  | { readonly act: 'append' | 'write'; readonly pad: string; readonly by: By; readonly text: string }
  | { readonly act: 'clear'; readonly pad: string; readonly by: By }
  | { readonly act: 'post' | 'store'; readonly thread: string; readonly by: By; readonly text: string }
  | { readonly act: 'remove' | 'readd'; readonly thread: string; readonly who: string }
  | { readonly act: 'deletePad'; readonly pad: string }
  | { readonly act: 'deleteThread'; readonly thread: string };

export const TOOLS = [
  'read_scratchpad',
  'append_scratchpad',
  'update_scratchpad',
  'send_message',
  'store',
  'recall',
] as const;
export type Tool = (typeof TOOLS)[number];

/** What an act may answer: one of these codes, `OK` alone if it is done. */
export interface Answer {
  readonly codes: readonly string[];
  /** Of a tool. */
  readonly isError?: boolean;
  /** Texts that a tool's answer showed. */
  readonly shows?: readonly string[];
}
