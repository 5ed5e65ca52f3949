/** Messages that the other side refused. They wait here, so that the next ones get their turn, and are tried again one after the other. */
import type { Journal } from './journal.ts'
import type { SpooledMessage } from './notice.ts'

const MOST_MESSAGES = 50

export class RefusedMessages {
  readonly #journal: Journal
  readonly #prefix: string
  /** In the order of their next attempts. */
  readonly #kept = new Map<string, SpooledMessage>()

  constructor(journal: Journal, prefix: string) {
    this.#journal = journal
    this.#prefix = prefix
    for (const [key, value] of journal.entries(prefix)) this.#kept.set(key.slice(prefix.length), value as SpooledMessage)
  }

  get all(): readonly SpooledMessage[] {
    return [...this.#kept.values()]
  }

  /** Returns the message that had to make room. */
  add(spooled: SpooledMessage): SpooledMessage | null {
    const key = originalId(spooled)
    const oldest = this.#kept.size >= MOST_MESSAGES ? this.takeNext() : null
    this.#kept.set(key, spooled)
    this.#journal.set(this.#prefix + key, spooled)
    return oldest
  }

  /** In its place in the order. */
  replace(spooled: SpooledMessage): void {
    const key = originalId(spooled)
    if (!this.#kept.has(key)) return
    this.#kept.set(key, spooled)
    this.#journal.set(this.#prefix + key, spooled)
  }

  takeNext(): SpooledMessage | null {
    const [first] = this.#kept
    if (!first) return null
    this.#kept.delete(first[0])
    this.#journal.delete(this.#prefix + first[0])
    return first[1]
  }
}

/** The id without the revision that follows when the content changes. */
export function originalId({ message }: SpooledMessage): string {
  return message.id.replace(/-r\d+$/, '')
}
