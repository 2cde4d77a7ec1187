import { redisScript } from '../storage/redisScripts.ts';
import { IMPORT, STAGE } from './lua/import.ts';
import { CHANGES, HEAD, READ } from './lua/read.ts';
import { APPEND, CLEAR, NOTE, PURGE, RAISE, REPLAY, RETIME, SET_CONTENT } from './lua/write.ts';

/** The scripts of a pad's state. Each takes the pad's keys and looks at its tombstone first. */
export const SCRIPTS = {
  append: redisScript(APPEND),
  setContent: redisScript(SET_CONTENT),
  clear: redisScript(CLEAR),
  replay: redisScript(REPLAY),
  raise: redisScript(RAISE),
  note: redisScript(NOTE),
  purge: redisScript(PURGE),
  retime: redisScript(RETIME),
  read: redisScript(READ),
  head: redisScript(HEAD),
  changes: redisScript(CHANGES),
  stage: redisScript(STAGE),
  import: redisScript(IMPORT),
} as const;
