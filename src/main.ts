import { type App, createApp } from './app.ts';
import { type Config, readConfig } from './config.ts';
import { log, setLogLevel } from './shared/log.ts';
import { withoutDetails } from './startFailure.ts';

const isLoopback = (host: string): boolean => ['localhost', '::1'].includes(host) || host.startsWith('127.');

const FIRST_USER = 'create a user with the mutation createUser (docs/operations.md, “The first user”).';

/** Where a browser on this machine finds what listens on `host`; null where that is none of its business. */
const localOf = (url: string, host: string): string | null => {
  if (host === '0.0.0.0' || host === '::') return url.replace(/^http:\/\/[^/]*(?=:\d)/, 'http://127.0.0.1');
  return isLoopback(host) ? url : null;
};

/** Takes requests and says where; on the first start also what there is to look at. */
const announce = async (app: App, { host, adminToken }: Config): Promise<void> => {
  const { url, graphiql, isEmbedded, isUnused, example } = await app.listen();
  console.log(`Threadpad listens on ${url}`);
  if (isUnused)
    console.log(
      adminToken === null
        ? `Nobody uses it yet: start it with ADMIN_TOKEN (16 characters or more), and as its bearer ${FIRST_USER}`
        : `Nobody uses it yet: as the bearer of ADMIN_TOKEN ${FIRST_USER}`,
    );
  const page = graphiql === null ? null : localOf(graphiql, host);
  if (example === null) {
    if (isEmbedded && page !== null)
      console.log(`Explore it in GraphiQL, with the API key of the first start: ${page}`);
    return;
  }
  const { apiKey, threadId } = example;
  console.log(
    `An example was made: a user, two participants and their thread. The API key, shown once: ${apiKey}`,
  );
  // The fragment stays in the browser. A link with a key in it is for this machine only.
  if (page !== null) console.log(`Explore it in GraphiQL: ${page}#key=${apiKey}&thread=${threadId}`);
};

const fail = (error: unknown): never => {
  console.error(withoutDetails(error));
  process.exit(1);
};

process.on('unhandledRejection', (error) => log.error({ err: error }, 'A rejection was not handled.'));

try {
  const config = readConfig();
  setLogLevel(config.logLevel);
  const interrupted = new AbortController();
  const starting = createApp(config, interrupted.signal);
  let stopping = false;
  const stop = async (signal: string): Promise<void> => {
    // Ctrl-C reaches npm and this process: the second one is the same wish.
    if (stopping) return;
    stopping = true;
    log.info({ signal }, 'Stopping.');
    setTimeout(() => {
      log.error('Not everything ended in time.');
      process.exit(1);
    }, config.shutdownSeconds * 1_000).unref();
    interrupted.abort(new Error('Interrupted while starting.'));
    // Also in the middle of a start: what that has begun is ended in order.
    const started = await starting.catch(() => undefined);
    await started?.close();
    log.info('Stopped.');
    process.exit(0);
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    process.on(signal, () => void stop(signal).catch(fail));
  const app = await starting.catch((error: unknown) => {
    if (!stopping) throw error;
  });
  if (!stopping && app !== undefined)
    await announce(app, config).catch(async (error: unknown) => {
      await app.close();
      throw error;
    });
} catch (error) {
  fail(error);
}
