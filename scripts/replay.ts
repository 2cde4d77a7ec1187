import { readFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { asLine } from './replay/follow.ts';
import { asPadLine } from './replay/followPad.ts';
import { ReplayError, readRecording } from './replay/operations.ts';
import { ownServer, type Place } from './replay/ownServer.ts';
import { createProgress } from './replay/progress.ts';
import { replay } from './replay/replay.ts';

const USAGE = `npm run replay -- FILE [options]

Replays a file of operations, one JSON object a line, through the API: every participant with a token of its own.

  --speed N        N operations a second; without it as fast as they are answered
  --url URL        a running server's GraphQL address; without it a server of its own, on a data folder of its own
  --key KEY        an API key for that server; or THREADPAD_API_KEY
  --prefix NAME-   put before each handle, to replay a file again for the same user
  --follow HANDLE  prints what this participant receives live
  --stay           leaves the server of its own running afterwards, until Ctrl-C`;

const runningServer = (url: string, apiKey: string | undefined): Place => {
  if (!URL.canParse(url))
    throw new ReplayError(`--url: "${url}" is no address such as http://127.0.0.1:4000/graphql.`);
  if (apiKey === undefined) throw new ReplayError('--url needs an API key: --key KEY, or THREADPAD_API_KEY.');
  const address = new URL(url);
  if (address.pathname === '/') address.pathname = '/graphql';
  return { url: address.href, apiKey, close: async () => {} };
};

const readOptions = () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      speed: { type: 'string' },
      url: { type: 'string' },
      key: { type: 'string' },
      prefix: { type: 'string', default: '' },
      follow: { type: 'string' },
      stay: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const [file] = positionals;
  const speed = values.speed === undefined ? null : Number(values.speed);
  if (speed !== null && !(speed > 0)) throw new ReplayError('--speed: a number above 0 is meant.');
  return { ...values, speed, file };
};

const interrupted = new Promise<'interrupted'>((resolve) => {
  // Ctrl-C reaches npm and this process: the second one is the same wish, and must not end it halfway.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => resolve('interrupted'));
});

const main = async (): Promise<number> => {
  const options = readOptions();
  if (options.help || options.file === undefined) {
    console.log(USAGE);
    return options.help ? 0 : 1;
  }
  // npm runs scripts in the project's folder, and says where it was called.
  const path = resolve(process.env.INIT_CWD ?? '.', options.file);
  const content = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new ReplayError(`${path} cannot be read: ${error.message.replace(/, \w+( '.*')?$/, '')}`);
  });
  const recording = readRecording(content);
  const { follow } = options;
  if (follow !== undefined && !recording.participants.some(({ handle }) => handle === follow))
    throw new ReplayError(`--follow: "${follow}" is not among the participants.`);
  const place =
    options.url === undefined
      ? await ownServer(`Replay of ${basename(options.file)}`)
      : runningServer(options.url, options.key ?? process.env.THREADPAD_API_KEY);
  try {
    const outcome = await Promise.race([watch(place, recording, options), interrupted]);
    if (outcome === 'interrupted') return 130;
    if (options.stay && options.url === undefined) {
      console.log(`\nThe server stays at ${place.url} until Ctrl-C.`);
      await interrupted;
    }
    return outcome;
  } finally {
    await place.close();
  }
};

const watch = async (
  place: Place,
  recording: ReturnType<typeof readRecording>,
  { speed, prefix, follow, url }: ReturnType<typeof readOptions>,
): Promise<number> => {
  const { participants, operations } = recording;
  const { stderr } = process;
  let progress = createProgress('Participants', participants.length, stderr);
  const played = await replay({
    ...recording,
    url: place.url,
    apiKey: place.apiKey,
    speed,
    prefix,
    follow,
    onMember: (made) => progress.advance(made),
    onOpened: (threadId) => {
      progress.end();
      console.log(`Thread ${threadId}`);
      // The fragment of an address is sent to no server.
      if (url === undefined)
        console.log(`Watch it live: ${place.url}#key=${place.apiKey}&thread=${threadId}`);
      progress = createProgress('Operations', operations.length, stderr);
    },
    onEvent: (event) => progress.say(asLine(event)),
    onChange: (change) => progress.say(asPadLine(change)),
    onDone: (done) => progress.advance(done),
    onPlayed: () => {
      progress.end();
      progress = createProgress('Reading', participants.length, stderr);
    },
    onRead: (read) => progress.advance(read),
  });
  progress.end();
  const { messages, removals, readds, contents, entries, report, seconds } = played;
  console.log(`\n${report.text}\n`);
  console.log(
    `${messages} messages, ${removals} removals and ${readds} re-adds of ${participants.length} participants in ${seconds.toFixed(1)} s.`,
  );
  if (contents + entries > 0)
    console.log(`The scratchpad’s body was written ${contents} times, and ${entries} entries were appended.`);
  if (report.wrong.length === 0) {
    console.log('Everybody sees exactly what happened while they were there.');
    return 0;
  }
  console.error(`Not what happened while they were there is seen by: ${report.wrong.join(', ')}.`);
  return 1;
};

try {
  process.exit(await main());
} catch (error) {
  const isUsage =
    error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
  console.error(error instanceof ReplayError || isUsage ? error.message : error);
  process.exit(1);
}
