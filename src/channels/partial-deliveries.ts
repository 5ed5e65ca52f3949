/** Which recipients have had a message already, so that a second try reaches only the others. In memory: after a restart one may get it twice. */
const MOST_MESSAGES = 200

export class PartialDeliveries {
  readonly #done = new Map<string, Set<string>>()

  has(message: string, recipient: string): boolean {
    return this.#done.get(message)?.has(recipient) === true
  }

  add(message: string, recipients: Iterable<string>): void {
    const known = this.#done.get(message) ?? new Set<string>()
    for (const recipient of recipients) known.add(recipient)
    this.#done.delete(message)
    this.#done.set(message, known)
    const [oldest] = this.#done.keys()
    if (this.#done.size > MOST_MESSAGES && oldest !== undefined) this.#done.delete(oldest)
  }

  forget(message: string): void {
    this.#done.delete(message)
  }
}
