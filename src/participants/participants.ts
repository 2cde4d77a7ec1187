import { requireOwner, requireTenant } from '../auth/acting.ts';
import type { Actor, TenantActor } from '../auth/actor.ts';
import { appendAudit } from '../auth/audit.ts';
import { holdUser } from '../auth/mint.ts';
import { noCredential } from '../auth/presented.ts';
import { visibleParticipants } from '../auth/visibility.ts';
import { copyMemory } from '../memory/cloning.ts';
import type { Json } from '../shared/canonical.ts';
import { KEY_PART } from '../shared/cursors.ts';
import { badInput, conflict, forbidden, notFound } from '../shared/errors.ts';
import { newId } from '../shared/ids.ts';
import {
  LIMITS,
  requireCharacters,
  requireHandle,
  requireObject,
  requireText,
  requireTools,
} from '../shared/input.ts';
import { idRange, keysetPage, type Page, type PageArgs } from '../shared/paging.ts';
import type { Database } from '../storage/database.ts';
import type { Participant, ParticipantKind, Prisma } from '../storage/generated/prisma/client.ts';

interface Properties {
  readonly displayName?: string | null | undefined;
  readonly concurrentThreads?: boolean | null | undefined;
  readonly listed?: boolean | null | undefined;
  readonly tools?: readonly Json[] | null | undefined;
  readonly metaData?: Json | undefined;
}

export type NewParticipant = Properties & { readonly kind: ParticipantKind; readonly handle: string };

/** A clone copies a memory, however large it is; whatever else is made takes a moment. In milliseconds. */
const CLONING = { timeout: 1_800_000 };

interface ParticipantLookup {
  readonly id?: string | null | undefined;
  readonly handle?: string | null | undefined;
  /** Looks as this participant. */
  readonly as?: string | null | undefined;
}

/** Those who can be in a thread. A participant lives as long as its user. */
export const createParticipants = ({ database }: { database: Database }) => {
  const { prisma } = database;

  /** Throws `CONFLICT` with `existingId` if the handle is taken; the answer of the database, not of a look before. */
  const insert = async (
    actor: Extract<TenantActor, { kind: 'API_KEY' }>,
    data: Omit<Prisma.ParticipantCreateManyInput, 'id' | 'ownerId'>,
    clonedFrom: string | null = null,
  ): Promise<Participant> => {
    const ownerId = actor.userId;
    const insertIn = async (tx: Prisma.TransactionClient): Promise<Participant | undefined> => {
      const hold = async (): Promise<void> => {
        if ((await holdUser(tx, ownerId)) === null) throw noCredential();
      };
      if (clonedFrom === null) await hold();
      const row = { ...data, id: newId('Participant'), ownerId };
      const [participant] = await tx.participant.createManyAndReturn({ data: row, skipDuplicates: true });
      if (participant !== undefined && clonedFrom !== null) {
        await copyMemory(tx, ownerId, clonedFrom, participant.id);
        // Last: nobody who deletes the user waits for a long copy.
        await hold();
      }
      if (participant !== undefined)
        await appendAudit(tx, actor, [
          {
            ownerId,
            act: 'participant.created',
            subjectId: participant.id,
            details: clonedFrom === null ? {} : { clonedFrom },
          },
        ]);
      return participant;
    };
    const made = await prisma.$transaction(insertIn, clonedFrom === null ? {} : CLONING);
    if (made !== undefined) return made;
    const taken = await prisma.participant.findUnique({
      where: { ownerId_handle: { ownerId, handle: data.handle } },
    });
    throw conflict(`The handle ${data.handle} is taken.`, { field: 'handle', existingId: taken?.id ?? null });
  };

  return {
    create: async (actor: Actor, input: NewParticipant): Promise<Participant> => {
      const owner = requireOwner(actor);
      const handle = requireHandle(input.handle);
      return insert(owner, { kind: input.kind, handle, displayName: input.handle, ...properties(input) });
    },

    /** The owner all of it, a participant its own display name. What is absent or null stays. */
    update: async (
      actor: Actor,
      { participantId, ...input }: Properties & { readonly participantId: string },
    ): Promise<Participant> => {
      const tenant = requireTenant(actor);
      if (tenant.kind !== 'API_KEY') requireOwnDisplayName(tenant, participantId, input);
      const data = properties(input);
      const where = { ownerId: tenant.userId, id: participantId };
      return prisma.$transaction(async (tx) => {
        const [participant] = await tx.participant.updateManyAndReturn({ where, data });
        if (participant === undefined) throw notFound('Participant');
        const details = { changed: Object.keys(data) };
        await appendAudit(tx, tenant, [
          { ownerId: tenant.userId, act: 'participant.updated', subjectId: participantId, details },
        ]);
        return participant;
      });
    },

    /** A new agent or unit with the other's properties, in no thread. */
    clone: async (
      actor: Actor,
      input: { participantId: string; handle: string; displayName?: string | null | undefined },
    ): Promise<Participant> => {
      const owner = requireOwner(actor);
      const handle = requireHandle(input.handle);
      const { displayName } = properties({ displayName: input.displayName });
      const source = await prisma.participant.findFirst({
        where: { ownerId: owner.userId, id: input.participantId },
      });
      if (source === null) throw notFound('Participant');
      if (source.kind === 'HUMAN')
        throw badInput('Agents and units can be cloned, humans cannot.', { field: 'participantId' });
      const { kind, concurrentThreads, listed, tools, metaData } = source;
      return insert(
        owner,
        {
          kind,
          handle,
          displayName: displayName ?? source.displayName,
          concurrentThreads,
          listed,
          tools: tools as Prisma.InputJsonValue,
          metaData: metaData as Prisma.InputJsonValue,
        },
        source.id,
      );
    },

    /** By id or by handle, by exactly one of them. Null for what does not exist or may not be seen. */
    find: async (actor: Actor, { id, handle, as }: ParticipantLookup): Promise<Participant | null> => {
      const visible = visibleParticipants(requireTenant(actor), as);
      if (isGiven(id) === isGiven(handle)) throw badInput('Give `id` or `handle`, exactly one of them.');
      const where = isGiven(id) ? { id } : { handle: requireText(handle ?? '', 'handle').toLowerCase() };
      return prisma.participant.findFirst({ where: { AND: [visible, where] } });
    },

    /** Those with these ids that may be seen, in no order. */
    findAll: async (
      actor: Actor,
      { ids, as }: { readonly ids: readonly string[]; readonly as?: string | null | undefined },
    ): Promise<Participant[]> => {
      const visible = visibleParticipants(requireTenant(actor), as);
      return prisma.participant.findMany({ where: { AND: [visible, { id: { in: [...ids] } }] } });
    },

    /** In the order in which they were made. */
    page: async (
      actor: Actor,
      { kind }: { kind?: ParticipantKind | null | undefined },
      args: PageArgs,
    ): Promise<Page<Participant>> => {
      const visible = visibleParticipants(requireTenant(actor));
      return keysetPage(args, {
        name: 'part',
        parts: [KEY_PART.id],
        key: ({ id }) => [id],
        read: (range) => {
          const { where, ...rest } = idRange(range);
          return prisma.participant.findMany({
            where: { AND: [visible, where, kind ? { kind } : {}] },
            ...rest,
          });
        },
      });
    },
  };
};

const isGiven = <T>(value: T | null | undefined): value is T => value !== null && value !== undefined;

/** What is given, checked, as the database takes it. */
const properties = ({ displayName, concurrentThreads, listed, tools, metaData }: Properties) => ({
  ...(isGiven(displayName) && {
    displayName: requireCharacters(displayName, 'displayName', LIMITS.displayName),
  }),
  ...(isGiven(concurrentThreads) && { concurrentThreads }),
  ...(isGiven(listed) && { listed }),
  ...(isGiven(tools) && { tools: requireTools(tools) as Prisma.InputJsonArray }),
  ...(isGiven(metaData) && {
    metaData: requireObject(metaData, 'metaData', LIMITS.metaData) as Prisma.InputJsonObject,
  }),
});

const requireOwnDisplayName = (
  actor: Exclude<TenantActor, { kind: 'API_KEY' }>,
  participantId: string,
  { displayName: _, ...others }: Properties,
): void => {
  if (actor.kind === 'RUN_TOKEN') throw forbidden('A run token may not do this.');
  if (actor.participantId !== participantId || Object.values(others).some(isGiven))
    throw forbidden('A participant may change its own displayName, nothing else.');
};
