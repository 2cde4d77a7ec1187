import type { Api } from './api.ts';

const START = /* GraphQL */ `
  query Start($threadId: ID!) {
    thread(id: $threadId) { timeline { windows { after } } }
  }
`;

/** The cursor before a thread's first event. */
export const startOf = async (api: Api, token: string, threadId: string): Promise<string> => {
  const { thread } = await api.ask<{ thread: { timeline: { windows: { after: string }[] } } }>(token, START, {
    threadId,
  });
  const [window] = thread.timeline.windows;
  if (window === undefined) throw new Error('A viewer without a window has no start.');
  return window.after;
};
