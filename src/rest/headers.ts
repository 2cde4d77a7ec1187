/** Headers of answers, as the OpenAPI document describes them. */
export const ANSWER_HEADERS = {
  ETag: 'The etag of the content, quoted; `""` while nothing is there. Send it back as `If-Match`.',
  Link: 'Where the next page is (`rel="next"`), and the one before (`rel="prev"`).',
  'X-Cursor': 'Where the answer ends: `after` for the next page.',
  'X-Entry-Seq': 'The position of the entry: 1, 2, 3 … also across a clear.',
  'X-Expires-At':
    'When the content and the entries expire unless something is written; absent: they are kept.',
} as const;

export type AnswerHeader = keyof typeof ANSWER_HEADERS;

/** Headers with those values that there are. */
export const answerHeaders = (
  values: Partial<Record<AnswerHeader, string | number | null | undefined>>,
): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      value === null || value === undefined ? [] : [[name.toLowerCase(), String(value)] as const],
    ),
  );

/** `Link` for a page of a list. Source: RFC 8288. */
export const linkHeader = (
  path: string,
  links: Readonly<Record<string, Readonly<Record<string, string | number | null | undefined>> | null>>,
): string | null => {
  const parts = Object.entries(links).flatMap(([rel, values]) => {
    if (values === null) return [];
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(values))
      if (value !== null && value !== undefined) query.set(name, String(value));
    return [`<${path}?${query}>; rel="${rel}"`];
  });
  return parts.length === 0 ? null : parts.join(', ');
};
