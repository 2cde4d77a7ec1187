import { defineConfig } from 'prisma/config';

/** For `prisma generate` and, on a machine of your own, `prisma migrate deploy`. The server applies migrations itself. */
export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  ...(process.env['DATABASE_URL'] ? { datasource: { url: process.env['DATABASE_URL'] } } : {}),
});
