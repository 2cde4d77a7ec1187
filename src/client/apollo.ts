import { ApolloLink } from '@apollo/client';
import { CombinedGraphQLErrors } from '@apollo/client/errors';
import { print } from 'graphql';
import { Observable } from 'rxjs';
import { asError } from './problems.ts';
import { type ResumeOptions, resumable } from './resumable.ts';
import type { StreamClient } from './stream.ts';

/**
 * The terminating link for subscriptions through Apollo Client: each resumes where it was (see `resumable`).
 * `client` is a graphql-ws or graphql-sse client, resumable already or not.
 */
export const resumableLink = (client: StreamClient, options?: ResumeOptions): ApolloLink => {
  const stream = resumable(client, options);
  return new ApolloLink(
    ({ query, variables, operationName, extensions }) =>
      new Observable<ApolloLink.Result>((observer) =>
        stream.subscribe(
          {
            query: print(query),
            variables,
            extensions,
            ...(operationName === undefined ? {} : { operationName }),
          },
          {
            next: (result) => observer.next(result as ApolloLink.Result),
            complete: () => observer.complete(),
            error: (problem) =>
              observer.error(
                Array.isArray(problem) ? new CombinedGraphQLErrors({ errors: problem }) : asError(problem),
              ),
          },
        ),
      ),
  );
};
