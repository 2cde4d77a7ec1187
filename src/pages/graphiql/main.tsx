import 'graphiql/setup-workers/vite';
import 'graphiql/style.css';
import './page.css';
import { GraphiQL, type GraphiQLProps } from 'graphiql';
import { useSyncExternalStore } from 'react';
import { createRoot } from 'react-dom/client';
import { createFetcher } from './fetcher.ts';
import { status, textOf } from './status.ts';
import { headersIn, type Opening, opening } from './tabs.ts';
import { takeVisit } from './visit.ts';

const StatusLine = () => {
  const present = useSyncExternalStore(status.subscribe, status.get);
  if (present.kind === 'quiet') return null;
  return (
    <div className={`status ${present.kind}`} role="status">
      {textOf(present)}
    </div>
  );
};

const Page = ({
  tabs,
  headers,
  isVisit,
  fetcher,
}: Opening & { readonly fetcher: GraphiQLProps['fetcher'] }) => (
  <GraphiQL
    fetcher={fetcher}
    defaultTabs={tabs}
    defaultHeaders={headers}
    {...(isVisit ? { initialHeaders: headers } : {})}
    shouldPersistHeaders
    defaultEditorToolsVisibility={isVisit ? 'variables' : 'headers'}
    inputValueDeprecation
    schemaDescription
  >
    <GraphiQL.Logo>
      <span className="logo">Threadpad</span>
    </GraphiQL.Logo>
    <GraphiQL.Footer>
      <StatusLine />
    </GraphiQL.Footer>
  </GraphiQL>
);

const root = document.getElementById('page');
if (root) {
  const opened = await opening(takeVisit());
  createRoot(root).render(<Page {...opened} fetcher={createFetcher(headersIn(opened.headers))} />);
}
