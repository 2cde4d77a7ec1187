export { type Resumable, type ResumeOptions, resumable } from './resumable.ts';
export { steady } from './steady.ts';
export type { StreamClient, StreamRequest, StreamResult, StreamSink } from './stream.ts';
