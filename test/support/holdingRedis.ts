import { Redis } from 'ioredis';

/** A connection whose scripts wait, when told so, before they are sent: as if the network were slow. */
export class HoldingRedis extends Redis {
  #held: Promise<void> | undefined;
  #release: () => void = () => undefined;
  /** Scripts that wait now. */
  waiting = 0;

  hold(): void {
    this.#held ??= new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  release(): void {
    this.#release();
    this.#held = undefined;
  }

  override sendCommand(...[command, stream]: Parameters<Redis['sendCommand']>): unknown {
    if (this.#held === undefined || !command.name.startsWith('eval'))
      return super.sendCommand(command, stream);
    this.waiting += 1;
    return this.#held.then(() => {
      this.waiting -= 1;
      return super.sendCommand(command, stream);
    });
  }
}
