import { createRequire } from 'node:module';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** One copy of graphql: Vite would take its ES modules, our libraries take what Node resolves. */
const resolve = {
  alias: [{ find: /^graphql$/, replacement: createRequire(import.meta.url).resolve('graphql') }],
};

/** What takes a minute or more, longest first. Begun last, one of them would run alone at the end, on one core. */
const LONG = [
  'e2e/oracle',
  'e2e/removal',
  'e2e/scratchpads.concurrent',
  'e2e/delivery',
  'contract/start',
  'e2e/scratchpads.faults',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const index = LONG.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return index < 0 ? LONG.length : index;
    };
    return (await super.sort(files)).sort((one, other) => place(one) - place(other));
  }
}

/** Unit tests touch no service; everything else runs against the private Postgres and Redis that test/support starts once. */
export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      { resolve, test: { name: 'unit', include: ['test/unit/**/*.test.ts'] } },
      {
        resolve,
        test: {
          name: 'services',
          include: ['test/{contract,api,live,rest,tools,e2e}/**/*.test.ts'],
          globalSetup: ['test/support/services.ts'],
          // Files share what they import, which is a third of their cost: nothing of ours may keep state in a module.
          isolate: false,
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
