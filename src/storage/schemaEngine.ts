import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { bindSqlAdapterFactory, type SqlDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import type { SchemaEngine } from '@prisma/schema-engine-wasm';

export type { SchemaEngine };

/** The part of the platform's WebAssembly that is used here; its types come with the DOM's only. */
interface Platform {
  readonly WebAssembly: {
    instantiate(
      code: Uint8Array,
      imports: Readonly<Record<string, unknown>>,
    ): Promise<{ readonly instance: { readonly exports: Readonly<Record<string, unknown>> } }>;
  };
}

/** The engine looks its schema's provider up in a schema; it needs nothing else of it to apply migrations. */
const DATASOURCE = 'datasource db {\n  provider = "postgresql"\n}\n';

/**
 * Prisma's own schema engine, run as WebAssembly: the same that stands behind `prisma migrate`, with no download.
 * `migrate` and `db push` of the CLI need a binary that is not to be had everywhere.
 */
export const openSchemaEngine = async (
  adapter: SqlDriverAdapterFactory,
  schema = DATASOURCE,
): Promise<SchemaEngine> => {
  loaded ??= load();
  const engine = await loaded;
  return engine.new(
    { datamodels: [['schema.prisma', schema]] },
    () => undefined,
    bindSqlAdapterFactory(adapter),
  );
};

let loaded: Promise<typeof SchemaEngine> | undefined;

/** The package's own entry imports its .wasm as a module, which Node refuses; so it is compiled here. */
const load = async (): Promise<typeof SchemaEngine> => {
  Object.assign(globalThis, {
    PRISMA_WASM_PANIC_REGISTRY: {
      set_message: (message: string) => {
        throw new Error(`Prisma's schema engine failed: ${message}`);
      },
    },
  });
  const glue = await import('@prisma/schema-engine-wasm/schema_engine_bg');
  const entry = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg');
  const { WebAssembly } = globalThis as unknown as Platform;
  const { instance } = await WebAssembly.instantiate(await readFile(entry.replace(/\.js$/, '.wasm')), {
    './schema_engine_bg.js': withoutLingering(glue),
  });
  glue.__wbg_set_wasm(instance.exports);
  const { __wbindgen_start: start } = instance.exports;
  if (typeof start === 'function') start();
  return glue.SchemaEngine;
};

/** The engine's own deadline for its lock runs on for 10 s after it has it; it must not keep the process. */
const withoutLingering = (glue: object): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(glue).map(([name, value]: [string, unknown]) => [
      name,
      name.startsWith('__wbg_setTimeout_') ? unrefTimeout : value,
    ]),
  );

const unrefTimeout = (callback: () => void, ms: number): NodeJS.Timeout =>
  setTimeout(callback, ms >>> 0).unref();
