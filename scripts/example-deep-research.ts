import { spawn } from 'node:child_process';
import { createApi } from './replay/api.ts';
import { ownServer } from './replay/ownServer.ts';

// npm run example:deep-research: a server of its own, a supervisor and two workers, each a process.

const place = await ownServer('Example of deep research');
const api = createApi(place.url);
const made = async (handle: string, displayName: string): Promise<string> => {
  const { createParticipant } = await api.ask<{ createParticipant: { participant: { id: string } } }>(
    place.apiKey,
    'mutation Make($input: CreateParticipantInput!) { createParticipant(input: $input) { participant { id } } }',
    { input: { handle, kind: 'AGENT', displayName, listed: true } },
  );
  return createParticipant.participant.id;
};

try {
  const [supervisor, archivist, reader, sponsor] = [
    await made('supervisor', 'Supervisor'),
    await made('archivist', 'Archivist'),
    await made('reader', 'Reader'),
    await made('sponsor', 'Sponsor'),
  ];
  const { openThread } = await api.ask<{ openThread: { thread: { id: string } } }>(
    place.apiKey,
    'mutation Open($ids: [ID!]!) { openThread(input: { participantIds: $ids }) { thread { id } } }',
    { ids: [supervisor, sponsor] },
  );
  const { createParticipantToken } = await api.ask<{ createParticipantToken: { token: string } }>(
    place.apiKey,
    'mutation Token($id: ID!) { createParticipantToken(input: { participantId: $id }) { token } }',
    { id: supervisor },
  );
  const process_ = spawn(process.execPath, ['examples/deep-research/supervisor.mjs'], {
    env: {
      ...process.env,
      THREADPAD_URL: place.url,
      THREADPAD_TOKEN: createParticipantToken.token,
      THREAD_ID: openThread.thread.id,
      ARCHIVIST: archivist,
      READER: reader,
    },
    stdio: 'inherit',
  });
  process.exitCode = await new Promise<number>((resolve) =>
    process_.once('exit', (code) => resolve(code ?? 1)),
  );
} finally {
  await place.close();
}
process.exit();
