import { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createGathering } from '../../../src/graphql/gathering.ts';

/** A connection that notes which messages each of its system calls would take. */
const connection = () => {
  const calls: string[][] = [];
  const note = (chunks: readonly { chunk: Buffer }[]) =>
    calls.push(chunks.map(({ chunk }) => chunk.toString()));
  const stream = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      note([{ chunk }]);
      done();
    },
    writev(chunks: readonly { chunk: Buffer }[], done) {
      note(chunks);
      done();
    },
  });
  return { stream, calls };
};

test('of what one turn writes to a connection the first leaves at once and the rest together', async () => {
  const gathering = createGathering();
  const [one, other] = [connection(), connection()];
  const write = ({ stream }: typeof one, text: string): void => {
    gathering.before(stream);
    stream.write(text);
  };
  for (const text of ['a', 'b', 'c']) write(one, text);
  write(other, 'x');
  expect([one.calls, other.calls]).toEqual([[['a']], [['x']]]);
  await setImmediate();
  expect([one.calls, other.calls]).toEqual([[['a'], ['b', 'c']], [['x']]]);

  write(one, 'd');
  expect(one.calls.at(-1)).toEqual(['d']);
  await setImmediate();
  expect(one.calls).toHaveLength(3);
});

test('a connection that ends with something held back has sent it', async () => {
  const gathering = createGathering();
  const { stream, calls } = connection();
  for (const text of ['a', 'b']) {
    gathering.before(stream);
    stream.write(text);
  }
  stream.end('c');
  await setImmediate();
  expect(calls.flat()).toEqual(['a', 'b', 'c']);
});
