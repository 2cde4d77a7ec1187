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
  | {
      readonly kind: 'RUN_TOKEN';
      readonly userId: string;
      readonly credentialId: string;
      readonly participantId: string;
      readonly runId: string;
    };

/** A member of one tenant: every actor but the administrator. */
export type TenantActor = Exclude<Actor, { kind: 'ADMIN' }>;
