import { isIP } from 'node:net';

/**
 * Whether a request that says it was sent to `host` may have been. A page that had its own name point here (DNS
 * rebinding) says that name. A server that listens on the loopback is asked for by a name of the loopback; one that is
 * reached by other names is told them.
 */
export const createHosts = ({
  listensOn,
  allowed,
  allowedOrigins,
}: {
  readonly listensOn: string;
  /** `ALLOWED_HOSTS`. */
  readonly allowed: readonly string[];
  readonly allowedOrigins: readonly string[];
}): ((host: string | undefined) => boolean) => {
  const named = new Set([
    ...allowed.map((host) => host.toLowerCase()),
    ...allowedOrigins.flatMap((origin) => (URL.canParse(origin) ? [new URL(origin).hostname] : [])),
  ]);
  const isOpen = named.size === 0 && !isLoopback(nameIn(listensOn) ?? listensOn);
  return (host) => {
    const name = host === undefined ? null : nameIn(host);
    if (name === null) return false;
    // An address cannot be rebound: the browser would say the name.
    return (
      isOpen || isLoopback(name) || (isIP(bare(name)) !== 0 && !isLoopback(listensOn)) || named.has(name)
    );
  };
};

const nameIn = (host: string): string | null =>
  URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname.toLowerCase() : null;

const bare = (name: string): string => name.replace(/^\[|\]$/g, '');

const isLoopback = (name: string): boolean =>
  name === 'localhost' ||
  name.endsWith('.localhost') ||
  bare(name) === '::1' ||
  /^127(\.\d{1,3}){3}$/.test(name);
