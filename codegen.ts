import type { CodegenConfig } from '@graphql-codegen/cli';

/** Types the documents of the tests that are written with `graphql(…)` of `test/support/gql`. */
const config: CodegenConfig = {
  schema: 'schema.graphql',
  documents: ['test/**/*.ts', '!test/**/gql/**', '!test/**/__generated__/**', '!test/e2e/relay/**'],
  errorsOnly: true,
  // Other documents in the tests are wrong on purpose, or of other schemas.
  pluckConfig: { modules: [], gqlMagicComment: 'typed', globalGqlIdentifierName: ['graphql'] },
  generates: {
    'test/support/gql/': {
      preset: 'client',
      presetConfig: { fragmentMasking: false },
      config: {
        useTypeImports: true,
        enumsAsTypes: true,
        strictScalars: true,
        scalars: { DateTime: 'string', JSON: 'unknown', Cursor: 'string', ID: 'string' },
        importExtension: '.ts',
        emitLegacyCommonJSImports: false,
      },
    },
  },
};

export default config;
