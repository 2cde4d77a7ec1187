import { CONTENT_ROUTES } from './contents.ts';
import { RECORD_ROUTES } from './record.ts';
import type { RestRoute } from './route.ts';
import { SCRATCHPAD_ROUTES } from './scratchpads.ts';
import { THREAD_ROUTES } from './threads.ts';
import { TOOL_CALL_ROUTES } from './toolCalls.ts';
import { TOOL_ROUTES } from './tools.ts';

/** Every REST route there is. */
export const ROUTES: readonly RestRoute[] = [
  ...SCRATCHPAD_ROUTES,
  ...CONTENT_ROUTES,
  ...THREAD_ROUTES,
  ...RECORD_ROUTES,
  ...TOOL_ROUTES,
  ...TOOL_CALL_ROUTES,
];
