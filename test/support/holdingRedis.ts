import { Redis } from 'ioredis';

/** A connection whose scripts wait, when told so, before they are sent: as if the network were slow. */
export class HoldingRedis extends Redis {
  #held: Promise<void> | undefined;
  #release: () => void = () => undefined;
  /** Scripts that wait now. */
  waiting = 0;
  /** How long each script is under way before it is sent, in milliseconds. */
  lateBy: (() => number) | undefined;
  /** Scripts as they were sent, oldest first. */
  readonly sent: { readonly name: string; readonly args: readonly (string | Buffer)[] }[] = [];

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
    if (command.name.startsWith('eval'))
      this.sent.push({ name: command.name, args: command.args as string[] });
    const wait = command.name.startsWith('eval') ? (this.#held ?? this.#late()) : undefined;
    if (wait === undefined) return super.sendCommand(command, stream);
    this.waiting += 1;
    return wait.then(() => {
      this.waiting -= 1;
      return super.sendCommand(command, stream);
    });
  }

  #late(): Promise<void> | undefined {
    const { lateBy } = this;
    return lateBy && new Promise((resolve) => setTimeout(resolve, lateBy()));
  }
}
