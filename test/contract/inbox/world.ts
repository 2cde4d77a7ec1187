import type { Actor } from '../../../src/auth/actor.ts';
import { newSecret } from '../../../src/auth/secrets.ts';
import type { InboxDelivery } from '../../../src/inbox/deliveries.ts';
import type { FollowInboxInput } from '../../../src/inbox/follow.ts';
import type { Services } from '../../../src/services.ts';
import { timelineCursor } from '../../../src/shared/cursors.ts';
import { DomainError } from '../../../src/shared/errors.ts';
import { newId } from '../../../src/shared/ids.ts';
import type { Database } from '../../../src/storage/database.ts';
import type { TimelineEvent } from '../../../src/timeline/events.ts';
import type { createApi } from '../../support/api.ts';
import { ADMIN } from '../../support/identity.ts';

export const PEOPLE = ['ann', 'bob'] as const;
/** The second does one thing at a time. */
export const AGENTS = ['bot', 'solo'] as const;

export interface InboxWorld {
  readonly owner: Extract<Actor, { kind: 'API_KEY' }>;
  readonly ids: Readonly<Record<string, string>>;
  readonly threadIds: readonly string[];
  readonly members: readonly (readonly string[])[];
}

/** A tenant of its own with people, agents and threads of theirs. */
export const createInboxWorld = async (services: Services): Promise<InboxWorld> => {
  const { user, credential } = await services.users.create(ADMIN, { name: 'Inboxes' });
  const owner = { kind: 'API_KEY', userId: user.id, credentialId: credential.id, actAs: null } as const;
  const ids: Record<string, string> = {};
  for (const handle of [...PEOPLE, ...AGENTS]) {
    const kind = PEOPLE.some((person) => person === handle) ? 'HUMAN' : 'AGENT';
    const made = await services.participants.create(owner, {
      kind,
      handle,
      concurrentThreads: handle !== 'solo',
    });
    ids[handle] = made.id;
  }
  const members = [
    ['ann', 'bot', 'solo'],
    ['bob', 'bot', 'solo'],
    ['ann', 'bob', 'bot', 'solo'],
    ['ann', 'bob', 'solo'],
  ];
  const threadIds: string[] = [];
  for (const handles of members) {
    const participantIds = handles.map((handle) => ids[handle] ?? '');
    threadIds.push((await services.threads.open(owner, { participantIds })).threadId);
  }
  return { owner, ids, threadIds, members };
};

export const codeOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
    return 'OK';
  } catch (error) {
    if (error instanceof DomainError) return error.code;
    throw error;
  }
};

/** As if a lease had run out: time is not waited for. */
export const lapse = async (database: Database, deliveryId: string): Promise<void> => {
  await database.query(
    {
      name: 'test_lapse',
      text: `UPDATE inbox_threads SET leased_until = clock_timestamp() - interval '1 second' WHERE delivery_id = $1`,
    },
    [deliveryId],
  );
};

export const cursorOf = ({ threadId, seq, id }: TimelineEvent): string => timelineCursor(threadId, seq, id);

/** So many threads of ann and bot, each with one more that is in no other. */
export const openThreads = async (
  services: Services,
  { owner, ids }: InboxWorld,
  count: number,
): Promise<string[]> => {
  const opened: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const other = await services.participants.create(owner, { kind: 'HUMAN', handle: `other-${index}` });
    const participantIds = [ids.ann ?? '', ids.bot ?? '', other.id];
    opened.push((await services.threads.open(owner, { participantIds })).threadId);
  }
  return opened;
};

export interface Followed extends AsyncDisposable {
  readonly given: readonly InboxDelivery[];
  /** Contents of messages, by the channel in which they came. */
  contents(channel: 'MESSAGE' | 'OBSERVATION'): string[];
}

/** An open stream of an agent's inbox, with its own token or another. */
export const followInbox = async (
  { services, authentication }: ReturnType<typeof createApi>,
  { owner, ids }: Pick<InboxWorld, 'owner' | 'ids'>,
  input: FollowInboxInput = {},
  secret?: string,
): Promise<Followed> => {
  const token =
    secret ??
    (await services.credentials.createParticipantToken(owner, { participantId: ids.bot ?? '' })).secret;
  const session = await authentication.openSession({ authorization: `Bearer ${token}` });
  const gone = new AbortController();
  const following = await services.followInbox(session, input, gone.signal);
  const given: InboxDelivery[] = [];
  const over = (async () => {
    for await (const delivery of following) given.push(delivery);
  })();
  return {
    given,
    contents: (channel) =>
      given
        .filter((one) => one.channel === channel)
        .flatMap(({ events }) =>
          events.flatMap((event) => (event.type === 'MESSAGE' ? [event.content] : [])),
        ),
    [Symbol.asyncDispose]: async () => {
      gone.abort();
      await over;
      session.close();
    },
  };
};

/** An open run of the first agent, for whose conversation its token has an inbox of its own. */
export const openRun = async (
  { prisma }: Database,
  { owner, ids }: InboxWorld,
  conversationThreadId: string,
): Promise<{ readonly id: string; readonly secret: string }> => {
  const { secret, hash, prefix } = newSecret('RUN_TOKEN');
  const [id, participantId, ownerId] = [newId('Run'), ids.bot ?? '', owner.userId];
  const run = { id, rootRunId: id, ownerId, participantId, conversationThreadId };
  await prisma.run.create({ data: { ...run, access: 'WRITE', maxToolCalls: 1 } });
  const credential = { id: newId('Credential'), ownerId, participantId, runId: id, prefix, hash };
  await prisma.credential.create({ data: { ...credential, kind: 'RUN_TOKEN' } });
  return { id, secret };
};

/** As if everything that happened had happened a minute ago: time is not waited for. */
export const age = async (database: Database): Promise<void> => {
  await database.query(
    {
      name: '',
      // What guards the heads is off for this.
      text: `DO $$ BEGIN
        PERFORM set_config('session_replication_role', 'replica', true);
        UPDATE thread_heads SET activity = activity - 60000000;
      END $$`,
    },
    [],
  );
};
