import type { Name } from '../../support/padApi.ts';

export const MEMBERS = ['ada', 'ben', 'cleo'] as const satisfies readonly Name[];
export const VIEWERS = [...MEMBERS, 'owner'] as const;
export type Member = (typeof MEMBERS)[number];
/** Whose eyes: a member's, or the user's. */
export type Viewer = (typeof VIEWERS)[number];

/** A pad in a few plain lines: what is there, and what of all that ever was each viewer may have been told. */
export class PadModel {
  entries: { readonly content: string; readonly seenBy: ReadonlySet<Viewer> }[] = [];
  text = '';
  readonly #active = new Set<Viewer>(VIEWERS);
  readonly #mayHaveRead = new Map<Viewer, Set<string>>(VIEWERS.map((viewer) => [viewer, new Set<string>()]));

  isActive(viewer: Viewer): boolean {
    return this.#active.has(viewer);
  }

  append(content: string): void {
    this.entries.push({ content, seenBy: new Set(this.#active) });
    for (const viewer of this.#active) this.#mayHaveRead.get(viewer)?.add(`+${content}`);
  }

  set(text: string): void {
    this.text = text;
    for (const viewer of this.#active) this.#mayHaveRead.get(viewer)?.add(`=${text}`);
  }

  clear(what: 'Content' | 'Entries' | ''): void {
    if (what !== 'Entries') this.text = '';
    if (what !== 'Content') this.entries = [];
  }

  remove(member: Member): void {
    this.#active.delete(member);
  }

  /** What is there now may be read from now on, but for the entries of the gap. */
  readd(member: Member): void {
    this.#active.add(member);
    this.#mayHaveRead.get(member)?.add(`=${this.text}`);
  }

  visible(viewer: Viewer): string[] {
    return this.entries.filter(({ seenBy }) => seenBy.has(viewer)).map(({ content }) => content);
  }

  mayHaveRead(viewer: Viewer, word: string): boolean {
    return this.#mayHaveRead.get(viewer)?.has(word) === true;
  }
}

/** What a client holds that believes what it is told. */
export class ClientPad {
  entries: string[] = [];
  text = '';

  take(word: string): void {
    if (word.startsWith('+')) this.entries.push(word.slice(1));
    else if (word.startsWith('=')) this.text = word.slice(1);
    else if (word === '-body') this.text = '';
    else if (word === '-entries') this.entries = [];
    else if (word === 'reset') {
      this.entries = [];
      this.text = '';
    }
  }
}
