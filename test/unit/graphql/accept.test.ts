import { expect, test } from 'vitest';
import { names, negotiate } from '../../../src/http/accept.ts';

const OFFERED = ['application/json', 'application/graphql-response+json', 'text/event-stream'] as const;

test.for([
  [undefined, 'application/json'],
  ['*/*', 'application/json'],
  ['application/*', 'application/json'],
  ['text/*', 'text/event-stream'],
  ['application/graphql-response+json, application/json;q=0.9', 'application/graphql-response+json'],
  [
    'application/graphql-response+json; charset=utf-8, application/json; charset=utf-8',
    'application/graphql-response+json',
  ],
  ['application/json;q=0.1, text/event-stream', 'text/event-stream'],
  ['text/html,application/xhtml+xml,*/*;q=0.8', 'application/json'],
  ['APPLICATION/JSON', 'application/json'],
  ['application/json;q=0', null],
  ['application/json;charset=latin1', null],
  ['image/png', null],
  ['', 'application/json'],
  [',;,', null],
] as const)('of what is offered, %s gets %s', ([header, expected]) => {
  expect(negotiate(header, OFFERED)).toBe(expected);
});

test('a wildcard names nothing', () => {
  expect(names('text/html, */*', 'text/html')).toBe(true);
  expect(names('*/*', 'text/html')).toBe(false);
  expect(names(undefined, 'text/html')).toBe(false);
});
