/** What a run may do with its scratchpad: read, read and append, or also replace the content. */
export type ScratchpadAccess = 'READ' | 'APPEND' | 'WRITE';

/** What a run is confined to. None of it changes while the run is open. */
export interface RunScope {
  readonly runId: string;
  /** Its worker. */
  readonly participantId: string;
  readonly conversationThreadId: string;
  /** Null: a run without a scratchpad. */
  readonly scratchpadId: string | null;
  readonly access: ScratchpadAccess;
  /**
   * Through whose windows it sees its scratchpad: the worker's own where it is a member of the scratchpad's thread, else
   * its delegator's. Null: the owner's full record.
   */
  readonly padViewerId: string | null;
  /**
   * Its token went to a delegator that is another participant, or was made through such a token: of the worker's memory it
   * sees what is recalled in the run's conversation alone.
   */
  readonly isDelegators: boolean;
}

/** Who is asking. Derived from the credential alone, never from an argument. */
export type Actor =
  | { readonly kind: 'ADMIN' }
  | {
      readonly kind: 'API_KEY';
      readonly userId: string;
      readonly credentialId: string;
      /** `X-Act-As`: the whole operation acts and looks as this participant. */
      readonly actAs: string | null;
    }
  | {
      readonly kind: 'PARTICIPANT_TOKEN';
      readonly userId: string;
      readonly credentialId: string;
      readonly participantId: string;
    }
  | RunActor;

/** The worker of one run, confined to it. */
export interface RunActor extends RunScope {
  readonly kind: 'RUN_TOKEN';
  readonly userId: string;
  readonly credentialId: string;
}

/** A member of one tenant: every actor but the administrator. */
export type TenantActor = Exclude<Actor, { kind: 'ADMIN' }>;
