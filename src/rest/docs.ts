import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type Exchange, type Route, sendProblem } from '../http/exchange.ts';
import { createFileCache, type ServedFile, sendFile, servedFile } from '../http/files.ts';
import { openApiOf } from './openapi.ts';
import type { RestRoute } from './route.ts';

const PAGE = '/v1/docs';
const DOCUMENT = '/v1/openapi.json';

/** What the page loads from the package; nothing else of it can be asked for. */
const PACKAGE_FILES = new Set(['swagger-ui.css', 'swagger-ui-bundle.js']);

/** The OpenAPI document and a page to browse it, from this server alone; for everybody, as the document is no secret. */
export const createApiDocs = (routes: readonly RestRoute[], directory = packageDirectory()): Route => {
  const packaged = createFileCache((name) => join(directory ?? '', name));
  const made = new Map<string, Promise<ServedFile>>();

  /** What is made here, once. */
  const ours = (name: string): Promise<ServedFile> => {
    const known = made.get(name);
    if (known !== undefined) return known;
    const text = { 'openapi.json': () => JSON.stringify(openApiOf(routes)), 'start.js': () => START }[name];
    const file = servedFile(Buffer.from(text?.() ?? HTML));
    made.set(name, file);
    return file;
  };

  const fileAt = async (path: string): Promise<{ name: string; file: ServedFile } | null> => {
    if (path === DOCUMENT) return { name: 'openapi.json', file: await ours('openapi.json') };
    if (path === PAGE || path === `${PAGE}/`) return { name: 'index.html', file: await ours('index.html') };
    const name = path.slice(PAGE.length + 1);
    if (name === 'start.js') return { name, file: await ours(name) };
    if (directory === null || !PACKAGE_FILES.has(name)) return null;
    return { name, file: await packaged(name) };
  };

  return {
    matches: (path) => path === DOCUMENT || path === PAGE || path.startsWith(`${PAGE}/`),
    async serve(exchange: Exchange) {
      const { method, path } = exchange;
      const found = await fileAt(path);
      if (found === null) return sendProblem(exchange, 404, 'NOT_FOUND', 'Not Found');
      if (method !== 'GET' && method !== 'HEAD')
        return sendProblem(exchange, 405, 'BAD_REQUEST', 'Method Not Allowed', { allow: 'GET, HEAD' });
      sendFile(exchange, found.name, found.file, {
        vary: 'Origin, Accept-Encoding',
        'cache-control': 'no-cache',
        policy: POLICY,
      });
    },
  };
};

/** Null where the package is not installed. */
const packageDirectory = (): string | null => {
  try {
    return dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  } catch {
    return null;
  }
};

/** Scripts, styles and connections of this server alone. The page draws its icons from `data:` addresses. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Threadpad: REST</title>
<link rel="stylesheet" href="${PAGE}/swagger-ui.css">
<link rel="icon" href="data:,">
</head>
<body>
<div id="docs"></div>
<script src="${PAGE}/swagger-ui-bundle.js"></script>
<script src="${PAGE}/start.js"></script>
</body>
</html>
`;

/** No validator of somebody else's is asked, and a key that is typed in is kept nowhere. */
const START = `SwaggerUIBundle({
  url: '${DOCUMENT}',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  persistAuthorization: false,
});
`;
