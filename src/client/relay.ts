import { type GraphQLResponse, Observable, type SubscribeFunction } from 'relay-runtime';
import { asError } from './problems.ts';
import { type ResumeOptions, resumable } from './resumable.ts';
import type { StreamClient } from './stream.ts';

/** The second argument of Relay's `Network.create`: each subscription resumes where it was (see `resumable`). */
export const resumableSubscribe = (client: StreamClient, options?: ResumeOptions): SubscribeFunction => {
  const stream = resumable(client, options);
  return ({ text, id, name }, variables) =>
    Observable.create<GraphQLResponse>((sink) => {
      if (!text)
        return sink.error(new Error(`${name} is persisted as ${id}; Threadpad takes operations as text.`));
      return stream.subscribe(
        { query: text, operationName: name, variables },
        {
          next: (result) => sink.next(result as GraphQLResponse),
          complete: () => sink.complete(),
          error: (problem) => sink.error(asError(problem)),
        },
      );
    });
};
