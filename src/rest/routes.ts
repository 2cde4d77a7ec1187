import type { RestRoute } from './route.ts';
import { THREAD_ROUTES } from './threads.ts';

/** Every REST route there is. */
export const ROUTES: readonly RestRoute[] = [...THREAD_ROUTES];
