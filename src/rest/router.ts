import { type Method, pathsOf, type RestRoute } from './route.ts';

export interface Match {
  /** What can be done at the path. */
  readonly methods: ReadonlyMap<Method, RestRoute>;
  /** Decoded; what cannot be decoded stays as it was sent, and names nothing. */
  readonly params: Readonly<Record<string, string>>;
}

export interface Router {
  /** Null where nothing is at the path. */
  find(path: string): Match | null;
}

interface Node {
  readonly children: Map<string, Node>;
  /** What stands for any segment. */
  param: { readonly name: string; readonly node: Node } | null;
  readonly methods: Map<Method, RestRoute>;
}

const newNode = (): Node => ({ children: new Map(), param: null, methods: new Map() });

/** Paths as a tree of their segments: a lookup costs what the path is long, however many routes there are. */
export const createRouter = (routes: readonly RestRoute[]): Router => {
  const root = newNode();
  for (const route of routes)
    for (const path of pathsOf(route)) {
      const { methods } = path.split('/').reduce(grow, root);
      if (methods.has(route.method)) throw new Error(`Two routes answer ${route.method} ${path}.`);
      methods.set(route.method, route);
    }

  return {
    find(path) {
      let node = root;
      const params: Record<string, string> = {};
      for (const segment of path.split('/')) {
        const child = node.children.get(segment);
        if (child !== undefined) {
          node = child;
          continue;
        }
        if (node.param === null || segment === '') return null;
        params[node.param.name] = decoded(segment);
        node = node.param.node;
      }
      return node.methods.size === 0 ? null : { methods: node.methods, params };
    },
  };
};

const grow = (node: Node, segment: string): Node => {
  const [, name] = /^\{(\w+)\}$/.exec(segment) ?? [];
  if (name !== undefined) {
    node.param ??= { name, node: newNode() };
    if (node.param.name !== name) throw new Error(`{${node.param.name}} and {${name}} stand at one place.`);
    return node.param.node;
  }
  let child = node.children.get(segment);
  if (child === undefined) {
    child = newNode();
    node.children.set(segment, child);
  }
  return child;
};

const decoded = (segment: string): string => {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
};
