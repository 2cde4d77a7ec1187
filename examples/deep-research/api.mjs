// What the three of them share: GraphQL over fetch, and how they say what they see.
const { THREADPAD_URL: url = 'http://127.0.0.1:4000/graphql', THREADPAD_TOKEN: token } = process.env;

/** These are set, or the program ends with a line that says so. */
export const requireVariables = (...names) => {
  const missing = names.filter((name) => !process.env[name]);
  if (missing.length === 0) return;
  console.error(`Set ${missing.join(', ')}, or run npm run example:deep-research, which sets them all.`);
  process.exit(1);
};
process.once('uncaughtException', ({ message, code, cause }) => {
  console.error([code, message, cause?.message].filter(Boolean).join(': '));
  process.exit(1);
});

/** One query or mutation; its data, or an error with the API's code. */
export const ask = async (query, variables = {}) => {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = await response.json();
  if (errors) throw Object.assign(new Error(errors[0].message), errors[0].extensions);
  return data;
};

export const sees = (who, text) => console.log(text.replaceAll(/^/gm, `${who} | `));

/** How a worker comes to its end: what it found is its result, what went wrong its error. */
export const finish = (input) =>
  ask('mutation Finish($input: UpdateRunInput!) { updateRun(input: $input) { run { id status } } }', {
    input,
  });
