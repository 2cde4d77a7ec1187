import { createRequire } from 'node:module';
import { defineConfig } from 'vitest/config';

/** One copy of graphql: Vite would take its ES modules, our libraries take what Node resolves. */
const resolve = {
  alias: [{ find: /^graphql$/, replacement: createRequire(import.meta.url).resolve('graphql') }],
};

/** Unit tests touch no service; everything else runs against the private Postgres and Redis that test/support starts once. */
export default defineConfig({
  test: {
    projects: [
      { resolve, test: { name: 'unit', include: ['test/unit/**/*.test.ts'] } },
      {
        resolve,
        test: {
          name: 'services',
          include: ['test/{contract,api,live,rest,e2e}/**/*.test.ts'],
          globalSetup: ['test/support/services.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // One more than there are cores on a small machine: many tests wait, for a restart or a time that must pass.
          maxWorkers: 3,
          // After the unit tests: Vitest runs projects together only where their numbers of workers are the same.
          sequence: { groupOrder: 1 },
        },
      },
    ],
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      exclude: ['src/storage/generated/**', 'src/pages/**'],
    },
  },
});
