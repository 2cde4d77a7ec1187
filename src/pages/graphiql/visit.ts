/** What a link to this page brings along, behind its `#`: that part of a URL is never sent to any server. */
export interface Visit {
  readonly key: string;
  readonly actAs: string | null;
  readonly threadId: string | null;
}

/** Takes the key out of the address bar (and so out of the history) in the moment it is read. */
export const takeVisit = (): Visit | null => {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const key = fragment.get('key');
  if (key === null || key === '') return null;
  history.replaceState(null, '', location.pathname + location.search);
  return { key, actAs: fragment.get('actAs'), threadId: fragment.get('thread') };
};
