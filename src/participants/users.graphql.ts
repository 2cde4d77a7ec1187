import { ownParticipant } from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import { CredentialNode } from '../auth/credentials.graphql.ts';
import { noCredential } from '../auth/presented.ts';
import { builder } from '../graphql/builder.ts';
import { DeletePayload } from '../graphql/deletePayload.ts';
import { pageArgs } from '../graphql/pageArgs.ts';
import { ParticipantNode } from './participants.graphql.ts';
import type { CreatedUser } from './users.ts';

const UserNode = builder.prismaObject('User', {
  description: 'The tenant: owns participants, threads and all that hangs on them.',
  interfaces: [builder.nodeInterfaceRef()],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Global id, `user_…`.' }),
    name: t.exposeString('name', { description: 'What people read.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made.' }),
  }),
});

export const Viewer = builder.objectRef<Actor>('Viewer').implement({
  description: 'Who is asking, as the credential says.',
  fields: (t) => ({
    user: t.field({
      type: UserNode,
      nullable: true,
      description: 'The tenant; null for the administrator.',
      resolve: (actor, _args, { services }) =>
        actor.kind === 'ADMIN' ? null : services.users.find(actor, actor.userId),
    }),
    participant: t.field({
      type: ParticipantNode,
      nullable: true,
      description: 'The token’s participant, or that of X-Act-As; null for the user itself.',
      resolve: (actor, _args, { loaders }) => {
        const id = actor.kind === 'ADMIN' ? null : ownParticipant(actor);
        return id === null ? null : loaders.participant.load(id);
      },
    }),
    credential: t.field({
      type: CredentialNode,
      description: 'The credential that was presented.',
      resolve: async (actor, _args, { services }) => {
        const credential = await services.credentials.own(actor);
        if (credential === null) throw noCredential();
        return credential;
      },
    }),
  }),
});

const UserEdge = builder.edgeObject({
  type: UserNode,
  name: 'UserEdge',
  description: 'A user and where it stands.',
});

const UserConnection = builder.connectionObject(
  {
    type: UserNode,
    name: 'UserConnection',
    description: 'A page of users, in the order in which they were made.',
  },
  UserEdge,
);

builder.queryFields((t) => ({
  viewer: t.field({
    type: Viewer,
    description: 'Who is asking.',
    resolve: (_root, _args, { actor }) => actor,
  }),
  users: t.field({
    type: UserConnection,
    nullable: true,
    description: 'All tenants. ADMIN_TOKEN only.',
    args: { ...pageArgs },
    resolve: (_root, page, { actor, services }) => services.users.page(actor, page),
  }),
}));

const CreateUserPayload = builder.objectRef<CreatedUser>('CreateUserPayload').implement({
  description: 'A user and an API key for it.',
  fields: (t) => ({
    user: t.expose('user', { type: UserNode, description: 'The user.' }),
    apiKey: t.exposeString('apiKey', { description: 'The key itself. Shown once: keep it now.' }),
    credential: t.expose('credential', {
      type: CredentialNode,
      description: 'What is known of the key later.',
    }),
  }),
});

const CreateUserInput = builder.inputType('CreateUserInput', {
  description: 'A new tenant.',
  fields: (t) => ({
    name: t.string({ required: true, description: 'At most 256 characters.' }),
    idempotencyKey: t.string({
      description:
        '1 to 128 characters. A retry with it answers the same user with a fresh key and ends the former.',
    }),
  }),
});

const DeleteUserInput = builder.inputType('DeleteUserInput', {
  description: 'Deletes the caller’s own user.',
  fields: (t) => ({ confirmName: t.string({ required: true, description: 'Its name, exactly.' }) }),
});

builder.mutationFields((t) => ({
  createUser: t.field({
    type: CreateUserPayload,
    description: 'ADMIN_TOKEN only. Errors: IDEMPOTENCY_KEY_REUSED, BAD_USER_INPUT, PAYLOAD_TOO_LARGE.',
    args: { input: t.arg({ type: CreateUserInput, required: true, description: 'The new tenant.' }) },
    resolve: (_root, { input }, { actor, services }) => services.users.create(actor, input),
  }),
  deleteUser: t.field({
    type: DeletePayload,
    description:
      'API key only. The user, everything it owns and every credential of it are gone at once. Errors: BAD_USER_INPUT where the name is another.',
    args: { input: t.arg({ type: DeleteUserInput, required: true, description: 'The confirmation.' }) },
    resolve: (_root, { input }, { actor, services }) => services.users.remove(actor, input),
  }),
}));
