import { ResourceNotFoundError } from '@modelcontextprotocol/server';
import type { TenantActor } from '../../auth/actor.ts';
import type { Loaders } from '../../loaders.ts';
import type { Services } from '../../services.ts';
import { cut } from '../../shared/text.ts';
import { messagePage } from '../messageTools.ts';
import type { Operating } from '../operating.ts';
import { padPart } from '../padPages.ts';
import { padOf } from '../padTools.ts';
import { hasScratchpad } from './caller.ts';

export type ResourceName = 'scratchpad' | 'timeline';

/** What a client may read, and hear changes of, beside the tools. */
export const RESOURCES = [
  {
    name: 'scratchpad',
    uri: 'threadpad://scratchpad',
    title: 'Scratchpad',
    description: 'The shared scratchpad: its working body and the newest findings. `?cursor=` goes on.',
    mimeType: 'text/plain',
  },
  {
    name: 'timeline',
    uri: 'threadpad://timeline',
    title: 'Timeline',
    description: 'What was said in this conversation, as you may see it, newest page. `?cursor=` goes back.',
    mimeType: 'application/json',
  },
] as const satisfies readonly { name: ResourceName; uri: string; [key: string]: string }[];

/** Those that a caller has: a run without a scratchpad has none to read. */
export const resourcesOf = (actor: TenantActor): (typeof RESOURCES)[number][] =>
  RESOURCES.filter(({ name }) => name !== 'scratchpad' || hasScratchpad(actor));

/** Their addresses stay; that there is nothing to read now, since no message is in hand, is said of each. */
export const listedResources = (
  actor: TenantActor,
  isThere: boolean,
): { name: string; uri: string; description: string }[] =>
  resourcesOf(actor).map((resource) => ({
    ...resource,
    description: isThere
      ? resource.description
      : `(No message is in hand: nothing to read now.) ${resource.description}`,
  }));

export const resourceTemplates = (actor: TenantActor) =>
  resourcesOf(actor).map(({ uri, name, title, description, mimeType }) => ({
    uriTemplate: `${uri}{?cursor}`,
    name: `${name}-page`,
    title: `${title}, page by page`,
    description,
    mimeType,
  }));

/** A page of one that fits into an answer, with the address of the next one where there is more. */
export interface ResourcePage {
  readonly uri: string;
  readonly mimeType: string;
  readonly text: string;
  readonly _meta?: { readonly 'threadpad/next': string };
}

const URI = /^threadpad:\/\/(scratchpad|timeline)(?:\?cursor=([\w%~.-]{1,512}))?$/;

export const resourceOf = (
  uri: string,
): { readonly name: ResourceName; readonly cursor: string | undefined } | null => {
  const [, name, cursor] = URI.exec(uri) ?? [];
  if (name === undefined) return null;
  return { name: name as ResourceName, cursor: cursor === undefined ? undefined : decoded(cursor) };
};

/** As `resourceOf`, of what the caller has. */
export const ownResourceOf = (actor: TenantActor, uri: string): ReturnType<typeof resourceOf> => {
  const asked = resourceOf(uri);
  return resourcesOf(actor).some(({ name }) => name === asked?.name) ? asked : null;
};

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** Errors: ResourceNotFoundError, NOT_FOUND, PARTICIPANT_NOT_ACTIVE, INVALID_CURSOR, UNAVAILABLE. */
export const readResource = async (
  services: Services,
  loaders: Loaders,
  at: Operating,
  uri: string,
): Promise<ResourcePage> => {
  const asked = ownResourceOf(at.actor, uri);
  if (asked === null) throw new ResourceNotFoundError(cut(uri, 512).toWellFormed());
  if (asked.name === 'timeline') {
    const page = await messagePage({ services, loaders, at }, { cursor: asked.cursor });
    return pageOf(uri, 'application/json', JSON.stringify(page), 'timeline', page.next_cursor);
  }
  const viewed = await padOf({ services, at });
  const { text, next } = await padPart(
    loaders,
    viewed,
    asked.cursor,
    (cursor) => `(There is more: threadpad://scratchpad?cursor=${cursor})`,
  );
  return pageOf(uri, 'text/plain', text, 'scratchpad', next);
};

const pageOf = (
  uri: string,
  mimeType: string,
  text: string,
  name: ResourceName,
  next: string | null,
): ResourcePage => ({
  uri,
  mimeType,
  text,
  ...(next === null
    ? {}
    : { _meta: { 'threadpad/next': `threadpad://${name}?cursor=${encodeURIComponent(next)}` } }),
});
