import { describe, expect, test } from 'vitest';
import { parseRedisUrl } from '../../src/storage/redisUrl.ts';

describe('a Redis URL', () => {
  const right: [string, unknown][] = [
    ['redis://localhost', { kind: 'server', node: { host: 'localhost', port: 6379 }, login: {}, tls: false }],
    [
      'rediss://ada:s%40cret@redis.example:6380/3',
      {
        kind: 'server',
        node: { host: 'redis.example', port: 6380 },
        login: { username: 'ada', password: 's@cret', db: 3 },
        tls: true,
      },
    ],
    [
      'redis://:pw@[::1]:7000',
      { kind: 'server', node: { host: '::1', port: 7000 }, login: { password: 'pw' }, tls: false },
    ],
    ['unix:///var/run/a%20b.sock?db=2', { kind: 'socket', path: '/var/run/a b.sock', login: { db: 2 } }],
    [
      'redis://a:7000,b:7001',
      {
        kind: 'cluster',
        nodes: [
          { host: 'a', port: 7000 },
          { host: 'b', port: 7001 },
        ],
        login: {},
        tls: false,
      },
    ],
    [
      'rediss+cluster://:pw@a',
      { kind: 'cluster', nodes: [{ host: 'a', port: 6379 }], login: { password: 'pw' }, tls: true },
    ],
    [
      'redis+sentinel://:pw@a,b:5000/main/1?sentinelPassword=sp',
      {
        kind: 'sentinel',
        nodes: [
          { host: 'a', port: 26379 },
          { host: 'b', port: 5000 },
        ],
        name: 'main',
        login: { password: 'pw', db: 1 },
        sentinelLogin: { password: 'sp' },
        tls: false,
      },
    ],
  ];
  test.each(right)('%s is understood', (url, place) => {
    expect(parseRedisUrl(url)).toEqual(place);
  });

  const wrong: [string, RegExp][] = [
    ['localhost:6379', /not a URL/],
    ['http://localhost', /scheme "http"/],
    ['redis://', /host ""/],
    ['redis://host:99999', /host "host:99999"/],
    ['redis://host/x', /database "x"/],
    ['redis+sentinel://host', /name of the primary/],
    ['redis://a,b/1', /Cluster has only one/],
    ['unix://relative/path', /absolute path/],
  ];
  test.each(wrong)('%s is refused with a reason', (url, reason) => {
    expect(() => parseRedisUrl(url)).toThrow(reason);
  });
});
