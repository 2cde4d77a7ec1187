import { builder } from '../graphql/builder.ts';
import { ACT_AS, AS } from '../graphql/pageArgs.ts';
import { RunNode } from '../graphql/refs.ts';
import { ParticipantNode } from '../participants/participants.graphql.ts';
import { visibleRun } from '../runs/views.graphql.ts';
import { badInput } from '../shared/errors.ts';
import { DeliveryEndEnum } from '../timeline/subscription.graphql.ts';
import { requireParticipant } from '../timeline/views.graphql.ts';
import type { SignalDelivery } from './follow.ts';
import type { Signal } from './signals.ts';

const SignalObject = builder
  .objectRef<{ readonly signal: Signal; readonly viewerId: string | null }>('Signal')
  .implement({
    description: 'What a member does just now. It is never stored.',
    fields: (t) => ({
      participant: t.field({
        type: ParticipantNode,
        description: 'Who.',
        resolve: ({ signal }, _args, context) => requireParticipant(context, signal.participantId),
      }),
      kind: t.string({
        description: 'typing, working, token, or any other.',
        resolve: ({ signal }) => signal.kind,
      }),
      clientKey: t.string({
        nullable: true,
        description: 'The clientKey of the message that is coming.',
        resolve: ({ signal }) => signal.clientKey,
      }),
      offset: t.int({
        nullable: true,
        description: 'Where `text` goes on in what is coming.',
        resolve: ({ signal }) => signal.offset,
      }),
      text: t.string({
        nullable: true,
        description: 'A piece of an answer on its way.',
        resolve: ({ signal }) => signal.text,
      }),
      data: t.field({
        type: 'JSON',
        nullable: true,
        description: 'The sender’s own.',
        resolve: ({ signal }) => signal.data,
      }),
      run: t.field({
        type: RunNode,
        nullable: true,
        description: 'The run in which it was sent, if the viewer may see it.',
        resolve: ({ signal, viewerId }, _args, context) => visibleRun(context, signal.runId, viewerId),
      }),
      at: t.field({ type: 'DateTime', description: 'When it was sent.', resolve: ({ signal }) => signal.at }),
    }),
  });

const SignalDeliveryObject = builder.objectRef<SignalDelivery>('SignalDelivery').implement({
  description: 'A signal, or why the stream ends.',
  fields: (t) => ({
    signal: t.field({
      type: SignalObject,
      nullable: true,
      description: 'The signal; null in the first payload and in the last.',
      resolve: ({ signal, viewerId }) => signal && { signal, viewerId },
    }),
    ended: t.expose('ended', {
      type: DeliveryEndEnum,
      nullable: true,
      description: 'Why the stream ends with this payload; null while it goes on.',
    }),
  }),
});

builder.subscriptionField('signals', (t) =>
  t.field({
    type: SignalDeliveryObject,
    description:
      'What the members of a thread do just now, as far as the viewer is active then. Best effort and outside the promise of delivery: nothing is stored or repeated. The first payload comes at once: its signal is null. Errors: NOT_FOUND, FORBIDDEN.',
    args: {
      threadId: t.arg.id({ required: true, description: 'The thread.' }),
      as: t.arg.id({ description: AS }),
    },
    subscribe: (_root, args, { services, session, signal }) => {
      if (session === null) throw badInput('Subscriptions need a transport that streams: WebSocket or SSE.');
      return services.followSignals(session, args, signal);
    },
    resolve: (delivery) => delivery,
  }),
);

const SignalInput = builder.inputType('SignalInput', {
  description: 'What one does just now.',
  fields: (t) => ({
    threadId: t.id({ required: true, description: 'The thread.' }),
    as: t.id({ description: ACT_AS }),
    kind: t.string({
      required: true,
      description: 'typing, working, token, or any other; at most 128 characters.',
    }),
    clientKey: t.string({
      description: 'The idempotencyKey that the coming message will have; 1 to 128 characters.',
    }),
    offset: t.int({ description: 'Where `text` goes on in what is coming: 0 to 262,144.' }),
    text: t.string({ description: 'A piece of an answer on its way; at most 16 KiB.' }),
    data: t.field({ type: 'JSON', description: 'Anything else; at most 16 KiB.' }),
  }),
});

const SignalPayload = builder.objectRef<{ readonly delivered: boolean }>('SignalPayload').implement({
  description: 'What became of a signal.',
  fields: (t) => ({
    delivered: t.exposeBoolean('delivered', {
      description: 'Whether it was handed on. Whether somebody heard it is not known.',
    }),
  }),
});

builder.mutationField('signal', (t) =>
  t.field({
    type: SignalPayload,
    description:
      'Tells the active members of a thread what one does just now: typing, working, an answer on its way. Nothing is stored. Errors: BAD_USER_INPUT, PAYLOAD_TOO_LARGE, NOT_FOUND, FORBIDDEN, PARTICIPANT_NOT_ACTIVE, RATE_LIMITED (retryAfterMs).',
    args: { input: t.arg({ type: SignalInput, required: true, description: 'The signal.' }) },
    resolve: (_root, { input }, { actor, services }) => services.signals.send(actor, input),
  }),
);
