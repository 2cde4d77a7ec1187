import type { Followed, Following } from './source.ts';

type Step<Item> =
  | { readonly result: IteratorResult<Followed<Item>, undefined> }
  | { readonly error: unknown };

/** One step of a reader, asked for before it is taken: so that one can wait for whichever of several readers has one. */
export class Lookahead<Item> {
  readonly #source: Following<Item>;
  #step: Step<Item> | undefined;
  #isAsked = false;
  #wake: () => void = () => {};

  constructor(source: Following<Item>) {
    this.#source = source;
  }

  /** Whether a step is there, also one that nobody has asked for. */
  get isReady(): boolean {
    if (this.#step !== undefined) return true;
    const step = this.#isAsked ? undefined : this.#source.poll();
    if (step === undefined) return false;
    this.#step = { result: { value: step, done: false } };
    return true;
  }

  /** Asks for the next step, once; `wake` is called when it is there. */
  ask(wake: () => void): void {
    this.#wake = wake;
    if (this.#isAsked || this.#step !== undefined) return;
    this.#isAsked = true;
    const come = (step: Step<Item>): void => {
      this.#isAsked = false;
      this.#step = step;
      this.#wake();
    };
    this.#source.next().then(
      (result) => come({ result }),
      (error: unknown) => come({ error }),
    );
  }

  /** The step that is ready. Throws what its reader threw. */
  take(): IteratorResult<Followed<Item>, undefined> {
    const step = this.#step;
    if (step === undefined) throw new Error('No step is ready.');
    this.#step = undefined;
    if ('error' in step) throw step.error;
    return step.result;
  }
}

/** Resolves once one of them has a step. Nothing stays behind in those that have none. */
export const anyReady = (readers: readonly Lookahead<unknown>[]): Promise<void> =>
  new Promise((resolve) => {
    if (readers.some(({ isReady }) => isReady)) resolve();
    else for (const reader of readers) reader.ask(resolve);
  });
