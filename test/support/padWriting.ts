import { createScratchpadWriting, type ScratchpadWriting } from '../../src/scratchpads/writing.ts';
import type { createApi } from './api.ts';

/** Writes to scratchpads as one process does. */
export const padWriting = ({ services, padUpkeep }: ReturnType<typeof createApi>): ScratchpadWriting =>
  createScratchpadWriting({
    access: services.padAccess,
    plane: padUpkeep.plane,
    requireVisibleSources: () => Promise.resolve(),
  });
