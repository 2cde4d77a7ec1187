/** Where Redis is, as REDIS_URL says it. */
export type RedisPlace =
  | { readonly kind: 'socket'; readonly path: string; readonly login: RedisLogin }
  | { readonly kind: 'server'; readonly node: RedisNode; readonly login: RedisLogin; readonly tls: boolean }
  | {
      readonly kind: 'cluster';
      readonly nodes: readonly RedisNode[];
      readonly login: RedisLogin;
      readonly tls: boolean;
    }
  | {
      readonly kind: 'sentinel';
      readonly nodes: readonly RedisNode[];
      /** Of the primary, as the sentinels know it. */
      readonly name: string;
      readonly login: RedisLogin;
      readonly sentinelLogin: Omit<RedisLogin, 'db'>;
      readonly tls: boolean;
    };

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

export interface RedisLogin {
  readonly username?: string;
  readonly password?: string;
  readonly db?: number;
}

/**
 * Reads a REDIS_URL; throws an `Error` that says what is wrong with it. `s` behind `redis` asks for TLS everywhere.
 *
 * - `redis://[user:password@]host[:6379][/db]`
 * - `unix:///path/to/socket[?db=0]`
 * - `redis://host:7000,host:7001,…` or `redis+cluster://host:7000[,…]`: a Cluster, by any of its nodes
 * - `redis+sentinel://[user:password@]host[:26379][,…]/name[/db][?sentinelPassword=…&sentinelUsername=…]`
 */
export const parseRedisUrl = (url: string): RedisPlace => {
  const parts = /^([a-z+]+):\/\/([^/?]*)(\/[^?]*)?(?:\?(.*))?$/i.exec(url);
  if (parts === null) throw new Error('is not a URL such as redis://host:6379');
  const [, scheme = '', authority = '', path = '', query = ''] = parts;
  const parameters = new URLSearchParams(query);
  if (scheme === 'unix' || scheme === 'redis+unix') {
    if (authority !== '' || path.length < 2)
      throw new Error('needs an absolute path: unix:///path/to/socket');
    return {
      kind: 'socket',
      path: decodeURIComponent(path),
      login: database(parameters.get('db') ?? undefined),
    };
  }
  const [, secure, kind] = /^redis(s?)(?:\+(cluster|sentinel))?$/i.exec(scheme) ?? [];
  if (secure === undefined)
    throw new Error(
      `has the scheme "${scheme}"; redis, rediss, unix, redis+cluster or redis+sentinel is meant`,
    );
  const tls = secure !== '';
  const at = authority.lastIndexOf('@');
  const login = credentials(at < 0 ? '' : authority.slice(0, at));
  const nodes = authority
    .slice(at + 1)
    .split(',')
    .map((node) => parseNode(node, kind === 'sentinel' ? 26_379 : 6_379));
  const segments = path.split('/').filter((segment) => segment !== '');
  if (kind === 'sentinel') {
    const [name, db] = segments;
    if (name === undefined)
      throw new Error('needs the name of the primary: redis+sentinel://host:26379/name');
    const sentinelLogin = {
      ...optional('username', parameters.get('sentinelUsername')),
      ...optional('password', parameters.get('sentinelPassword')),
    };
    return {
      kind,
      nodes,
      name: decodeURIComponent(name),
      login: { ...login, ...database(db) },
      sentinelLogin,
      tls,
    };
  }
  const [first] = nodes;
  if (first === undefined) throw new Error('names no host');
  if (kind === 'cluster' || nodes.length > 1) {
    if (segments.length > 0) throw new Error('names a database; a Cluster has only one');
    return { kind: 'cluster', nodes, login, tls };
  }
  return {
    kind: 'server',
    node: first,
    login: { ...login, ...database(segments[0] ?? parameters.get('db') ?? undefined) },
    tls,
  };
};

const parseNode = (text: string, defaultPort: number): RedisNode => {
  const [, bracketed, plain, port] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || Number(port ?? 1) > 65_535)
    throw new Error(`has the host "${text}", which is none`);
  return { host, port: port === undefined ? defaultPort : Number(port) };
};

const credentials = (text: string): RedisLogin => {
  if (text === '') return {};
  const colon = text.indexOf(':');
  const username = decodeURIComponent(colon < 0 ? text : text.slice(0, colon));
  const password = colon < 0 ? '' : decodeURIComponent(text.slice(colon + 1));
  return { ...optional('username', username), ...optional('password', password) };
};

const database = (text: string | undefined): RedisLogin => {
  if (text === undefined) return {};
  if (!/^\d{1,4}$/.test(text)) throw new Error(`has the database "${text}"; a number is meant`);
  return { db: Number(text) };
};

const optional = <Key extends string>(key: Key, value: string | null): { [K in Key]?: string } =>
  value === null || value === '' ? {} : ({ [key]: value } as { [K in Key]?: string });
