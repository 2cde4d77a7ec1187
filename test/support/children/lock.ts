import { lockFolder } from '../../../src/storage/folderLock.ts';

// Takes the lock of a folder and holds it until standard input closes.
const [folder = ''] = process.argv.slice(2);
try {
  const lock = await lockFolder(folder);
  console.log('holds');
  process.stdin.on('end', () => void lock.release().then(() => process.exit(0)));
  process.stdin.resume();
} catch (error) {
  console.log(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
