import { expect } from 'vitest';
import type { Answer, Server, Tenant } from '../app.ts';
import type { Viewer } from './rules.ts';

/** One operation as a viewer; null: as the owner. */
export type Ask = <Data = Record<string, unknown>>(
  viewer: Viewer,
  query: string,
  variables?: Readonly<Record<string, unknown>>,
) => Promise<Answer<Data>>;

/** The data of an answer that must have no errors. */
export const answered = <Data>({ data, errors }: Answer<Data>): Data => {
  expect(errors).toBeUndefined();
  if (data === null || data === undefined) throw new Error('An answer without data.');
  return data;
};

/** The ways in which one participant's view is asked for; each must be the same view. */
export const WAYS = ['TOKEN', 'AS', 'HEADER', 'TOKEN_AS'] as const;
export type Way = (typeof WAYS)[number];

const MOST_ATTEMPTS = 5;

/** Asks in that way; `server` says whom, for each operation anew. A query that the stores were too busy for is asked again. */
export const askAs = (server: () => Server, tenant: Tenant, way: () => Way): Ask => {
  const once: Ask = async (viewer, query, variables = {}) => {
    if (viewer === null) return server().graphql(tenant.apiKey, query, variables);
    const participant = tenant.participants[viewer];
    if (participant === undefined) throw new Error(`Nobody is called ${viewer}.`);
    const { id, token } = participant;
    const chosen = way();
    // A document without `$as` (a mutation, whose input says who acts) goes by credential alone.
    const takesAs = query.includes('$as');
    if (chosen === 'HEADER') return server().graphql(tenant.apiKey, query, variables, { 'x-act-as': id });
    if (chosen === 'AS' && takesAs) return server().graphql(tenant.apiKey, query, { ...variables, as: id });
    const named = takesAs && chosen === 'TOKEN_AS' ? { ...variables, as: id } : variables;
    return server().graphql(token, query, named);
  };
  return async <Data>(viewer: Viewer, query: string, variables?: Readonly<Record<string, unknown>>) => {
    for (let attempt = 1; ; attempt++) {
      const answer = await once<Data>(viewer, query, variables);
      const isBusy = answer.errors?.some(({ extensions }) => extensions?.code === 'UNAVAILABLE') ?? false;
      if (!isBusy || query.trimStart().startsWith('mutation') || attempt === MOST_ATTEMPTS) return answer;
    }
  };
};
