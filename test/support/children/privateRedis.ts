import { startPrivateRedis } from '../../../src/storage/privateRedis.ts';
import { openRedis } from '../../../src/storage/redis.ts';

// Starts a private Redis, writes into it, and stops it on SIGTERM.
const [folder = '', value = ''] = process.argv.slice(2);
const own = await startPrivateRedis(folder);
const redis = await openRedis(own.url);
await redis.commands.rpush('written', value);
process.on('SIGTERM', () => {
  void redis
    .close()
    .then(() => own.stop())
    .then(() => process.exit(0));
});
// After the handler: whoever reads this sends the signal at once.
console.log(own.adopted ? 'adopted' : 'started');
