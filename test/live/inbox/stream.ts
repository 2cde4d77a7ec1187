import type { Given } from '../../support/inbox.ts';
import { openRawSocket, type RawSocket } from '../../support/rawSocket.ts';

export const GIVEN = `channel deliveryId thread { id } notice ended attempt leaseExpiresAt cursor
  events { __typename id seq cursor }`;
const INBOX = `subscription ($batch: Int, $standby: Boolean) { inbox(batch: $batch, standby: $standby) { ${GIVEN} } }`;

/** What is looked at of a delivery. */
export type Told = Pick<
  Given,
  'channel' | 'deliveryId' | 'thread' | 'notice' | 'ended' | 'attempt' | 'leaseExpiresAt' | 'cursor'
> & { readonly events: readonly { readonly seq: number; readonly cursor: string }[] };

/** An inbox over a WebSocket whose reader may stop reading for a while: nothing is fetched from the kernel then. */
export class InboxStream {
  readonly agent: string;
  readonly batch: number;
  readonly isStandby: boolean;
  /** When it was begun. */
  readonly from: number;
  readonly #socket: RawSocket;
  #isOver = false;
  #isPaused = false;
  #hasLeft = false;
  #deafSince: number | null = null;
  #wrong: string | null = null;

  private constructor(socket: RawSocket, stream: Pick<InboxStream, 'agent' | 'batch' | 'isStandby'>) {
    this.#socket = socket;
    this.agent = stream.agent;
    this.batch = stream.batch;
    this.isStandby = stream.isStandby;
    this.from = performance.now();
  }

  /** Null: its server was killed meanwhile. */
  static async open(
    url: string,
    token: string,
    stream: Pick<InboxStream, 'agent' | 'batch' | 'isStandby'>,
    onTold: (told: Told, stream: InboxStream) => void,
  ): Promise<InboxStream | null> {
    let socket: RawSocket;
    try {
      socket = await openRawSocket(url);
    } catch {
      return null;
    }
    socket.ws.on('error', () => undefined);
    const opened = new InboxStream(socket, stream);
    socket.ws.on('close', () => {
      opened.#isOver = true;
    });
    socket.ws.on('message', (text) => {
      // Whoever has left reads nothing any more, whatever had come so far.
      if (opened.#hasLeft) return;
      const { type, payload } = JSON.parse(String(text)) as { type: string; payload?: unknown };
      if (type === 'complete') opened.#isOver = true;
      if (type === 'error') opened.#wrong = String(text);
      if (type !== 'next') return;
      const { data, errors } = payload as { data?: { inbox: Told } | null; errors?: unknown };
      if (errors !== undefined) opened.#wrong = String(text);
      else if (data) onTold(data.inbox, opened);
    });
    const isGone = await Promise.race([
      socket.init({ authorization: `Bearer ${token}` }).then(() => false),
      socket.closed.then(() => true),
    ]).catch(() => true);
    if (isGone) return null;
    socket.subscribe('inbox', INBOX, { batch: stream.batch, standby: stream.isStandby });
    return opened;
  }

  /** It is given what comes, and reads it. */
  get isListening(): boolean {
    return !this.#isOver && !this.#isPaused && !this.isStandby;
  }
  /** When it stopped reading, for a while or for good; what its server sends it then is taken for read. */
  get deafSince(): number | null {
    return this.#deafSince;
  }
  get isOver(): boolean {
    return this.#isOver;
  }
  /** What no stream is ever sent. */
  get wrong(): string | null {
    return this.#wrong;
  }

  /** It has read all that was sent to it so far, or is over. */
  async reads(): Promise<void> {
    this.resume();
    if (this.#isOver) return;
    const { ws, closed } = this.#socket;
    const answered = new Promise<void>((resolve) => ws.once('pong', () => resolve()));
    ws.ping();
    await Promise.race([answered, closed]);
  }

  pause(): void {
    if (this.#isOver) return;
    this.#isPaused = true;
    this.#deafSince ??= performance.now();
    this.#socket.ws.pause();
  }
  resume(): void {
    this.#isPaused = false;
    if (!this.#hasLeft) this.#deafSince = null;
    this.#socket.ws.resume();
  }

  /** Says that it leaves, or (`isRude`) is simply gone. */
  async leave(isRude: boolean): Promise<void> {
    this.#hasLeft = true;
    this.#isOver = true;
    this.#deafSince ??= performance.now();
    if (!isRude) this.#socket.send({ id: 'inbox', type: 'complete' });
    // What is not read is not seen to be over.
    this.#socket.ws.resume();
    await this.#socket.close();
  }
}
