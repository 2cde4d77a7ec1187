import SchemaBuilder from '@pothos/core';
import PrismaPlugin from '@pothos/plugin-prisma';
import RelayPlugin from '@pothos/plugin-relay';
import type { Json } from '../shared/canonical.ts';
import type PrismaTypes from '../storage/generated/pothos.ts';
import { getDatamodel } from '../storage/generated/pothos.ts';
import type { GraphQLContext } from './context.ts';

/** The relay plugin types its cursor type as ID or String, and takes any scalar's name. */
const CURSOR = 'Cursor' as unknown as 'String';

export const builder = new SchemaBuilder<{
  PrismaTypes: PrismaTypes;
  Context: GraphQLContext;
  DefaultFieldNullability: false;
  DefaultEdgesNullability: { list: false; items: false };
  DefaultNodeNullability: false;
  Scalars: {
    ID: { Input: string; Output: string };
    DateTime: { Input: string; Output: Date | string };
    JSON: { Input: Json; Output: unknown };
    Cursor: { Input: string; Output: string };
  };
}>({
  plugins: [RelayPlugin, PrismaPlugin],
  defaultFieldNullability: false,
  relay: {
    cursorType: CURSOR,
    edgeCursorType: CURSOR,
    pageInfoCursorType: CURSOR,
    /** Prefixed ids are global as they stand. */
    encodeGlobalID: (_typename, id) => String(id),
    decodeGlobalID: (id) => ({ typename: '', id }),
    idFieldOptions: { description: 'Globally unique; refetchable with Query.node.' },
    nodeQueryOptions: false,
    nodesQueryOptions: false,
    nodesOnConnection: { description: 'The nodes of this page, without their edges.' },
    edgesFieldOptions: { nullable: { list: false, items: false }, description: 'This page, in order.' },
    nodeFieldOptions: { nullable: false, description: 'The object at this edge.' },
    cursorFieldOptions: { description: 'Where this edge stands in its list.' },
    pageInfoFieldOptions: { nullable: false, description: 'Whether there is more, and from where to go on.' },
    nodeTypeOptions: { description: 'An object with a globally unique id, refetchable with Query.node.' },
    pageInfoTypeOptions: {
      description:
        'Where a page of a connection begins and ends. Source: GraphQL Cursor Connections Specification.',
    },
    hasNextPageFieldOptions: { description: 'Whether the viewer may see anything after this page.' },
    hasPreviousPageFieldOptions: { description: 'Whether the viewer may see anything before this page.' },
    startCursorFieldOptions: { description: 'Cursor of the first edge; null on an empty page.' },
    endCursorFieldOptions: { description: 'Cursor of the last edge; null on an empty page.' },
  },
  prisma: {
    client: (context) => context.services.database.prisma,
    dmmf: getDatamodel(),
    filterConnectionTotalCount: true,
    onUnusedQuery: 'error',
  },
});

builder.queryType({
  description:
    'Reads. Lookups of one object answer null, without an error, for what does not exist or may not be seen.',
});
builder.mutationType({
  description: 'Writes. Each takes one input; a retry with the same idempotencyKey does not act twice.',
});
builder.subscriptionType({
  description:
    'Live streams. `timeline` and `scratchpad` carry a cursor in each payload and are resumed with `after`; the others begin anew: an inbox hands out again what was not acknowledged, `run` begins with the run as it is, `threads` with what comes, and signals are not kept.',
});
