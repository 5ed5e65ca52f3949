/** Letters that wait for a channel, and the editions that were sent: each once, also across restarts. */
import type { Letter } from '../core/alert-contract.ts'
import type { Edition } from './alerts-api.ts'
import type { Journal } from './journal.ts'

const MOST_LETTERS = 500

export class WaitingLetters {
  readonly #journal: Journal
  readonly #prefix: string
  readonly #letters = new Map<string, Letter>()

  constructor(journal: Journal, prefix: string) {
    this.#journal = journal
    this.#prefix = prefix
    for (const [key, value] of journal.entries(prefix)) this.#letters.set(key.slice(prefix.length), value as Letter)
  }

  get size(): number {
    return this.#letters.size
  }

  /** The one that has waited longest. */
  get first(): Letter | null {
    for (const letter of this.#letters.values()) return letter
    return null
  }

  /** Those beyond the bound are dropped. */
  add(letter: Letter): void {
    if (this.#letters.size >= MOST_LETTERS) return
    this.#letters.set(letter.id, letter)
    this.#journal.set(this.#prefix + letter.id, letter)
  }

  remove(id: string): void {
    this.#letters.delete(id)
    this.#journal.delete(this.#prefix + id)
  }
}

const EDITION = 'edition/'

export class Editions {
  readonly #journal: Journal

  constructor(journal: Journal) {
    this.#journal = journal
  }

  isPosted({ name, of }: Edition): boolean {
    return this.#journal.get(EDITION + name) === of
  }

  /** In the same line of the journal as its letters. */
  note({ name, of }: Edition): void {
    this.#journal.set(EDITION + name, of)
  }

  /** Of a journal that was found late. */
  join(entries: ReadonlyMap<string, unknown>): void {
    for (const [key, value] of entries) if (key.startsWith(EDITION) && this.#journal.get(key) === undefined) this.#journal.set(key, value)
  }
}
