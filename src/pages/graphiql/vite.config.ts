import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The page and all it needs, as files of our own server: nothing comes from elsewhere, no script stands in the page. */
export default defineConfig({
  root: here('.'),
  base: '/graphiql/',
  logLevel: 'warn',
  plugins: [react()],
  build: {
    outDir: here('../../../dist/pages/graphiql'),
    emptyOutDir: true,
    // Files of their own, so that a second visit finds them in the cache.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 4_000,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      // React's compiler marks files that it should leave alone; nothing here reads the mark.
      onLog(level, log, report) {
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') report(level, log);
      },
    },
  },
  worker: { format: 'es' },
});
