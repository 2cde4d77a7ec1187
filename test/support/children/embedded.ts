import { statement } from '../../../src/storage/database.ts';
import { migrate } from '../../../src/storage/migrations.ts';
import { openEmbedded } from '../../../src/storage/pglite.ts';

// Opens the embedded database of a folder, migrates it, and writes users until it is killed; says each one written.
const [folder = ''] = process.argv.slice(2);
console.log('starts');
const database = await openEmbedded(folder);
console.log('made');
await migrate(database);
console.log('open');
const insert = statement('child_insert', 'INSERT INTO users (id, name) VALUES ($1, $2)');
for (let index = 0; ; index += 1) {
  const id = `user_${process.pid}_${index}`;
  await database.query(insert, [id, 'somebody']);
  console.log(id);
}
