/** One document per number of fields, so that the server reads each only once. */
export const repeated = (build: (numbers: readonly number[]) => string): ((count: number) => string) => {
  const built = new Map<number, string>();
  return (count) => {
    const document = built.get(count) ?? build(Array.from({ length: count }, (_, n) => n));
    built.set(count, document);
    return document;
  };
};
