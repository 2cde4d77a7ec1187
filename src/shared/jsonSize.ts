/** A character takes at most so many bytes in JSON: `\u0000`. */
const WORST = 6;
/** Of a number, at most. */
const NUMBER = 24;

/**
 * Bytes that a value takes as JSON, found without making the text: exact for texts, a little too many for numbers. What
 * is certain to be more than `limit` is not measured to its end.
 */
export const jsonSize = (value: unknown, limit: number): number => {
  const rough = sizeOf(value, limit, (text) => text.length);
  // Most are far from any limit: they are not looked at character by character.
  return rough > limit || WORST * rough <= limit ? rough : sizeOf(value, limit, bytesOf);
};

const bytesOf = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2;

const sizeOf = (value: unknown, limit: number, textSize: (text: string) => number): number => {
  if (typeof value === 'string') return 2 + textSize(value);
  if (typeof value !== 'object' || value === null) return typeof value === 'number' ? NUMBER : 5;
  let size = 2;
  if (Array.isArray(value)) {
    for (const item of value as readonly unknown[]) {
      size += 1 + sizeOf(item, limit - size, textSize);
      if (size > limit) return size;
    }
    return size;
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') return sizeOf(value.toJSON(), limit, textSize);
  // Objects of data alone: nothing is inherited.
  const members = value as Readonly<Record<string, unknown>>;
  for (const key in members) {
    size += 4 + textSize(key) + sizeOf(members[key], limit - size, textSize);
    if (size > limit) return size;
  }
  return size;
};
