import { startPrivateRedis } from '../../../src/storage/privateRedis.ts';
import { openRedis } from '../../../src/storage/redis.ts';

// Starts a private Redis, writes into it, and stops it on SIGTERM.
const [folder = '', value = ''] = process.argv.slice(2);
const own = await startPrivateRedis(folder);
const redis = await openRedis(own.url);
await redis.commands.rpush('written', value);
console.log(own.adopted ? 'adopted' : 'started');
process.on('SIGTERM', () => {
  void redis
    .close()
    .then(() => own.stop())
    .then(() => process.exit(0));
});
