import { builder } from '../graphql/builder.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { pageArgs } from '../graphql/pageArgs.ts';
import { ParticipantNode } from '../participants/participants.graphql.ts';
import { badInput, notFound } from '../shared/errors.ts';
import type { CredentialView } from './credentials.ts';
import type { Minted } from './mint.ts';

const CredentialKindEnum = builder.enumType('CredentialKind', {
  description: 'Whom a credential speaks for.',
  values: {
    API_KEY: { description: 'The user: sees everything it owns, acts and looks as any of its participants.' },
    PARTICIPANT_TOKEN: { description: 'Exactly one participant.' },
    RUN_TOKEN: { description: 'The participant of one run, confined to it.' },
    ADMIN: { description: 'ADMIN_TOKEN of the configuration: administers tenants, sees no content.' },
  } as const,
});

export const CredentialNode = builder.objectRef<CredentialView>('Credential').implement({
  description: 'What is known of a credential. Its secret is shown once, by the mutation that makes it.',
  interfaces: [builder.nodeInterfaceRef()],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Global id, `cred_…`.' }),
    kind: t.expose('kind', { type: CredentialKindEnum, description: 'Whom it speaks for.' }),
    label: t.exposeString('label', { nullable: true, description: 'A note of whoever made it.' }),
    prefix: t.exposeString('prefix', { description: 'How the secret begins, to recognise it by.' }),
    participant: t.field({
      type: ParticipantNode,
      nullable: true,
      description: 'Whose token it is; null for an API key.',
      resolve: ({ participantId }, _args, { loaders }) =>
        participantId === null ? null : loaders.participant.load(participantId),
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made.' }),
    lastUsedAt: t.expose('lastUsedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was used last, to about a minute; null for never.',
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it ends by itself; null for never.',
    }),
    revokedAt: t.expose('revokedAt', { type: 'DateTime', nullable: true, description: 'When it was ended.' }),
  }),
});

const CredentialEdge = builder.edgeObject({
  type: CredentialNode,
  name: 'CredentialEdge',
  description: 'A credential and where it stands.',
});

const CredentialConnection = builder.connectionObject(
  {
    type: CredentialNode,
    name: 'CredentialConnection',
    description: 'A page of credentials, in the order in which they were made.',
  },
  CredentialEdge,
);

builder.queryField('credentials', (t) =>
  t.field({
    type: CredentialConnection,
    nullable: true,
    description: 'The user’s credentials; a participant sees its own tokens.',
    args: {
      participantId: t.arg.id({ description: 'Only tokens of this participant.' }),
      kind: t.arg({ type: CredentialKindEnum, description: 'Only of this kind.' }),
      includeRevoked: t.arg.boolean({ description: 'Also those that were revoked; false if absent.' }),
      ...pageArgs,
    },
    resolve: (_root, { participantId, kind, includeRevoked, ...page }, { actor, services }) =>
      services.credentials.page(actor, { participantId, kind, includeRevoked }, page),
  }),
);

const CreateApiKeyPayload = builder.objectRef<Minted>('CreateApiKeyPayload').implement({
  description: 'A new API key.',
  fields: (t) => ({
    apiKey: t.exposeString('secret', { description: 'The key itself. Shown once: keep it now.' }),
    credential: t.expose('credential', { type: CredentialNode, description: 'What is known of it later.' }),
  }),
});

const CreateTokenPayload = builder.objectRef<Minted>('CreateTokenPayload').implement({
  description: 'A new participant token.',
  fields: (t) => ({
    token: t.exposeString('secret', { description: 'The token itself. Shown once: keep it now.' }),
    credential: t.expose('credential', { type: CredentialNode, description: 'What is known of it later.' }),
  }),
});

interface TicketShape {
  readonly ticket: string;
  readonly expiresAt: string;
}
const ConnectionTicketPayload = builder.objectRef<TicketShape>('ConnectionTicketPayload').implement({
  description: 'A ticket for one stream of one operation.',
  fields: (t) => ({
    ticket: t.exposeString('ticket', { description: 'Goes into the URL of the stream: `?ticket=…`.' }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      description: 'Until when the stream must be opened.',
    }),
  }),
});

const credentialPayload = (name: string, description: string) =>
  builder.objectRef<{ readonly credential: CredentialView }>(name).implement({
    description,
    fields: (t) => ({
      credential: t.expose('credential', { type: CredentialNode, description: 'As it is now.' }),
    }),
  });
const RevokeCredentialPayload = credentialPayload(
  'RevokeCredentialPayload',
  'The credential that was ended.',
);
const RenewConnectionPayload = credentialPayload(
  'RenewConnectionPayload',
  'What the connection goes on under.',
);

const RevokeParticipantCredentialsPayload = builder
  .objectRef<{ readonly credentials: readonly CredentialView[] }>('RevokeParticipantCredentialsPayload')
  .implement({
    description: 'The tokens that were ended.',
    fields: (t) => ({
      credentials: t.field({
        type: [CredentialNode],
        description: 'Those that had not been ended before.',
        resolve: ({ credentials }) => [...credentials],
      }),
    }),
  });

const LABEL = 'A note to recognise it by: at most 128 characters.';
const EXPIRES = 'Ends by itself after so many seconds, at most ten years; never if absent.';

const CreateApiKeyInput = builder.inputType('CreateApiKeyInput', {
  description: 'Another API key for the caller’s own user.',
  fields: (t) => ({
    label: t.string({ description: LABEL }),
    expiresInSeconds: t.int({ description: EXPIRES }),
  }),
});

const IssueApiKeyInput = builder.inputType('IssueApiKeyInput', {
  description: 'An API key for any user.',
  fields: (t) => ({
    userId: t.id({ required: true, description: 'The user.' }),
    label: t.string({ description: LABEL }),
    expiresInSeconds: t.int({ description: EXPIRES }),
  }),
});

const CreateParticipantTokenInput = builder.inputType('CreateParticipantTokenInput', {
  description: 'A token for one participant.',
  fields: (t) => ({
    participantId: t.id({ required: true, description: 'Whom it speaks for.' }),
    label: t.string({ description: LABEL }),
    expiresInSeconds: t.int({ description: `${EXPIRES} Made with a token, it lives no longer than that.` }),
  }),
});

const CreateConnectionTicketInput = builder.inputType('CreateConnectionTicketInput', {
  description: 'The one operation that the ticket opens, exactly as it will be sent.',
  fields: (t) => ({
    query: t.string({ required: true, description: 'The document: a subscription.' }),
    variables: t.field({ type: 'JSON', description: 'Its variables, a JSON object.' }),
    operationName: t.string({ description: 'Which operation of the document, if it will be sent.' }),
  }),
});

const RenewConnectionInput = builder.inputType('RenewConnectionInput', {
  description: 'The credential to go on under.',
  fields: (t) => ({
    token: t.string({ required: true, description: 'A live one of the same kind and participant, or user.' }),
  }),
});

const RevokeCredentialInput = builder.inputType('RevokeCredentialInput', {
  description: 'The credential to end.',
  fields: (t) => ({ credentialId: t.id({ required: true, description: 'Its id.' }) }),
});

const RevokeParticipantCredentialsInput = builder.inputType('RevokeParticipantCredentialsInput', {
  description: 'Whose tokens to end.',
  fields: (t) => ({ participantId: t.id({ required: true, description: 'The participant.' }) }),
});

builder.mutationFields((t) => ({
  createApiKey: t.field({
    type: CreateApiKeyPayload,
    description: 'API key only. Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE.',
    args: { input: t.arg({ type: CreateApiKeyInput, required: true, description: 'Label and expiry.' }) },
    resolve: (_root, { input }, { actor, services }) => services.credentials.createApiKey(actor, input),
  }),
  issueApiKey: t.field({
    type: CreateApiKeyPayload,
    description: 'ADMIN_TOKEN only. Errors: NOT_FOUND, BAD_USER_INPUT, PAYLOAD_TOO_LARGE.',
    args: {
      input: t.arg({ type: IssueApiKeyInput, required: true, description: 'User, label and expiry.' }),
    },
    resolve: (_root, { input }, { actor, services }) => services.credentials.issueApiKey(actor, input),
  }),
  createParticipantToken: t.field({
    type: CreateTokenPayload,
    description:
      'API key for any of its participants; a participant for itself, to rotate its token. Errors: NOT_FOUND, FORBIDDEN, BAD_USER_INPUT, PAYLOAD_TOO_LARGE.',
    args: {
      input: t.arg({
        type: CreateParticipantTokenInput,
        required: true,
        description: 'Whom, label and expiry.',
      }),
    },
    resolve: (_root, { input }, { actor, services }) =>
      services.credentials.createParticipantToken(actor, input),
  }),
  createConnectionTicket: t.field({
    type: ConnectionTicketPayload,
    description:
      'For EventSource, which can set no header: opens one stream of one operation within a minute. The stream may be resumed with it for a minute after it broke; it dies with the caller’s credential.',
    args: {
      input: t.arg({ type: CreateConnectionTicketInput, required: true, description: 'The operation.' }),
    },
    resolve: (_root, { input }, { actor, services }) => services.credentials.createTicket(actor, input),
  }),
  renewConnection: t.field({
    type: RenewConnectionPayload,
    description:
      'On an open WebSocket: it goes on under a fresh credential of the same kind and participant, and no subscription is disturbed. Errors: UNAUTHENTICATED, FORBIDDEN, BAD_USER_INPUT.',
    args: {
      input: t.arg({ type: RenewConnectionInput, required: true, description: 'The fresh credential.' }),
    },
    resolve: (_root, { input }, context) => renew(context, input.token),
  }),
  revokeCredential: t.field({
    type: RevokeCredentialPayload,
    description:
      'Ends a credential: dead everywhere within a second. The user any of its own, a participant its own tokens. Errors: NOT_FOUND.',
    args: { input: t.arg({ type: RevokeCredentialInput, required: true, description: 'The credential.' }) },
    resolve: async (_root, { input }, { actor, services }) => ({
      credential: await services.credentials.revoke(actor, input),
    }),
  }),
  revokeParticipantCredentials: t.field({
    type: RevokeParticipantCredentialsPayload,
    description:
      'Ends all tokens of a participant; a participant may end its own. Errors: NOT_FOUND, FORBIDDEN.',
    args: {
      input: t.arg({
        type: RevokeParticipantCredentialsInput,
        required: true,
        description: 'The participant.',
      }),
    },
    resolve: async (_root, { input }, { actor, services }) => ({
      credentials: await services.credentials.revokeParticipantCredentials(actor, input),
    }),
  }),
}));

const renew = async (
  { session, transport, services }: GraphQLContext,
  token: string,
): Promise<{ credential: CredentialView }> => {
  if (session === null || transport !== 'ws') throw badInput('Only a WebSocket connection can be renewed.');
  await session.renew(token);
  const credential = await services.credentials.own(session.actor);
  if (credential === null) throw notFound('Credential');
  return { credential };
};
