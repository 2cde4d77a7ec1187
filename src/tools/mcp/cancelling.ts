import { isJSONRPCNotification, isJSONRPCRequest, type RequestId } from '@modelcontextprotocol/server';

/** The requests that a client does not want answered any more: of other bodies than this, which any process may be at. */
export const cancelledIn = (body: unknown): RequestId[] =>
  [body].flat().flatMap((message) => {
    if (!isJSONRPCNotification(message) || message.method !== 'notifications/cancelled') return [];
    const id = message.params?.requestId;
    return typeof id === 'string' || typeof id === 'number' ? [id] : [];
  });

/** What the SDK's server is told of it. */
export const cancellationOf = (requestId: RequestId) =>
  ({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }) as const;

/** Whether something is asked for that may be long in coming: whoever asks may not want it any more meanwhile. */
export const mayBeCancelled = (body: unknown): boolean =>
  [body]
    .flat()
    .some(
      (message) =>
        isJSONRPCRequest(message) &&
        message.method === 'tools/call' &&
        message.params?.name === 'next_message',
    );
