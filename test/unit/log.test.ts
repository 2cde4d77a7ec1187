import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { LOG_OPTIONS } from '../../src/shared/log.ts';

const written = (facts: object): Record<string, unknown> => {
  const lines: string[] = [];
  pino(LOG_OPTIONS, { write: (text: string) => lines.push(text) }).warn(facts, 'It went wrong.');
  return JSON.parse(lines.join('')) as Record<string, unknown>;
};

describe('The log', () => {
  test('tells of an error what it is, and nothing that a driver hangs on it', () => {
    const error = Object.assign(
      new Error('The connection was lost.', { cause: new TypeError('No route.') }),
      {
        code: '57P01',
        detail: 'Key (handle)=(somebody) already exists.',
        client: { secretKey: 34_456_920, connectionParameters: { password: 'hunter2' } },
      },
    );
    const { err } = written({ err: error });
    expect(err).toEqual({
      type: 'Error',
      message: 'The connection was lost.',
      stack: error.stack,
      code: '57P01',
      cause: { type: 'TypeError', message: 'No route.', stack: (error.cause as Error).stack },
    });
    expect(JSON.stringify(written({ error }))).not.toMatch(/secretKey|hunter2|somebody/);
  });

  test('writes something of whatever was thrown, also of errors that cause each other', () => {
    expect(written({ err: 'a text' }).err).toEqual({ type: 'string', message: 'a text' });
    const error = new Error('round');
    error.cause = error;
    expect(JSON.stringify(written({ err: error })).length).toBeLessThan(20_000);
  });

  test.each(['authorization', 'apiKey', 'token', 'password', 'content', 'variables'])(
    'leaves out %s',
    (name) => {
      const facts = { [name]: 'hidden words', request: { [name]: 'hidden words' } };
      expect(JSON.stringify(written(facts))).not.toContain('hidden words');
    },
  );
});
