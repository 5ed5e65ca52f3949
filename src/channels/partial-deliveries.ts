/** Which recipients already have a message, so that a retry reaches only the others. In memory: after a restart one may get it twice. */
import { BoundedMap } from '../core/bounded-map.ts'

const MOST_MESSAGES = 200

export class PartialDeliveries {
  readonly #done = new BoundedMap<string, Set<string>>(MOST_MESSAGES, { isRenewed: true })

  has(message: string, recipient: string): boolean {
    return this.#done.get(message)?.has(recipient) === true
  }

  add(message: string, recipients: Iterable<string>): void {
    const known = this.#done.get(message) ?? new Set<string>()
    for (const recipient of recipients) known.add(recipient)
    this.#done.set(message, known)
  }

  forget(message: string): void {
    this.#done.delete(message)
  }
}
