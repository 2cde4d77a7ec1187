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
  get isOver(): boolean {
    return this.#isOver;
  }
  /** What no stream is ever sent. */
  get wrong(): string | null {
    return this.#wrong;
  }

  pause(): void {
    if (this.#isOver) return;
    this.#isPaused = true;
    this.#socket.ws.pause();
  }
  resume(): void {
    this.#isPaused = false;
    this.#socket.ws.resume();
  }

  /** Says that it leaves, or (`isRude`) is simply gone. */
  async leave(isRude: boolean): Promise<void> {
    this.#isOver = true;
    if (!isRude) this.#socket.send({ id: 'inbox', type: 'complete' });
    // What is not read is not seen to be over.
    this.#socket.ws.resume();
    await this.#socket.close();
  }
}
