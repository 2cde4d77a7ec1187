import { readFile, writeFile } from 'node:fs/promises';
import { lexicographicSortSchema, printSchema } from 'graphql';
import { createSchema } from '../src/graphql/schema.ts';

// npm run schema          writes schema.graphql: the contract, as the code builds it.
// npm run schema:check    fails when the file says otherwise.

const FILE = 'schema.graphql';

const printed = `${printSchema(lexicographicSortSchema(createSchema()))}\n`;

if (process.argv[2] === '--check') {
  const committed = await readFile(FILE, 'utf8').catch(() => '');
  if (committed !== printed) {
    console.error(`${FILE} is not what the code builds: run "npm run schema" and look at the difference.`);
    process.exit(1);
  }
  console.log(`${FILE} is what the code builds.`);
} else {
  await writeFile(FILE, printed);
  console.log(`Written: ${FILE}`);
}
process.exit(0);
