import { requireTenant, viewerOf } from '../auth/acting.ts';
import type { Actor } from '../auth/actor.ts';
import type { PadAnswer } from '../scratchpads/loading.ts';
import type { PadAsk, SeenState } from '../scratchpads/reading.ts';
import type { Scratchpad } from '../scratchpads/rows.ts';
import type { Services } from '../services.ts';
import { DomainError, notFound } from '../shared/errors.ts';
import type { Look } from '../timeline/look.ts';

/** A pad and who looks at it: what the reads of one request begin with. */
export interface ViewedPad {
  readonly pad: Scratchpad;
  readonly look: Look;
}

/** The same answer for what does not exist and for what the caller may not know of: `Scratchpad not found`. */
export const requirePad = async (
  services: Services,
  actor: Actor,
  scratchpadId: string,
): Promise<ViewedPad> => {
  const pad = await services.scratchpads.find(actor, { scratchpadId });
  if (pad === null) throw notFound('Scratchpad');
  return { pad, look: await requireLook(services, actor, pad) };
};

export const requireLook = async (services: Services, actor: Actor, pad: Scratchpad): Promise<Look> => {
  const viewerId = viewerOf(requireTenant(actor), null);
  const look = await services.createLoaders(actor).padLook(pad, viewerId);
  if (look === null) throw notFound('Scratchpad');
  return look;
};

/** What the pad's state is for the viewer. Deleted meanwhile: `Scratchpad not found`. */
export const readPad = async (services: Services, viewed: ViewedPad, ask: PadAsk): Promise<SeenState> => {
  const [seen] = await services.padReading.read([{ ...viewed, ask }]);
  if (seen === null || seen === undefined) throw notFound('Scratchpad');
  return seen;
};

/** The same for one page. */
export const readPage = async (
  services: Services,
  viewed: ViewedPad,
  page: NonNullable<PadAsk['pages']>[number],
  ask: PadAsk = {},
): Promise<PadAnswer> => {
  const seen = await readPad(services, viewed, { ...ask, pages: [page] });
  return { seen, page: seen.pages[0] ?? null };
};

/** Content is readable while one is active. */
export const requireActive = (seen: SeenState): void => {
  if (!seen.isActive)
    throw new DomainError(
      'PARTICIPANT_NOT_ACTIVE',
      'The participant is not active in this thread; only an active member may read its scratchpad.',
    );
};

/** An etag as a header has it. Source: RFC 9110 §8.8.3. */
export const quoted = (etag: string): string => `"${etag}"`;

export const expiryOf = (expiresAt: number | null): string | null =>
  expiresAt === null ? null : new Date(expiresAt).toISOString();

/** When what was written at `at` expires. */
export const expiryAfter = (at: string, ttlSeconds: number): string | null =>
  ttlSeconds === 0 ? null : expiryOf(Date.parse(at) + ttlSeconds * 1_000);
