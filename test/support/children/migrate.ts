import { migrate } from '../../../src/storage/migrations.ts';
import { openPostgres } from '../../../src/storage/postgres.ts';

// Migrates the database at a URL, as a server does at its start; says what it applied.
const [url = ''] = process.argv.slice(2);
const database = await openPostgres(url, { poolSize: 2 });
console.log(JSON.stringify(await migrate(database)));
await database.close();
process.exit(0);
