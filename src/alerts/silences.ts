/** Silences: what people do not want to be notified of for a while, and why. */
import { randomBytes } from 'node:crypto'
import { EXIT, Failure } from '../core/failure.ts'
import type { Journal } from './journal.ts'
import { type Matcher, type MatchSubject, matchesAll } from './matcher.ts'

export interface Silence {
  readonly id: string
  readonly matchers: readonly Matcher[]
  readonly createdAt: number
  readonly until: number
  readonly comment: string
  readonly by: string
}

const PREFIX = 'silence/'
const MOST = 500
const LONGEST_TEXT = 1000

export class Silences {
  readonly #journal: Journal
  readonly #now: () => number
  readonly #silences = new Map<string, Silence>()

  constructor(journal: Journal, now: () => number) {
    this.#journal = journal
    this.#now = now
    for (const [, value] of journal.entries(PREFIX)) {
      const silence = value as Silence
      this.#silences.set(silence.id, silence)
    }
  }

  add(matchers: readonly Matcher[], until: number, comment: string, by: string): Silence {
    const now = this.#now()
    if (matchers.length === 0) throw wrong('a silence needs at least one matcher, such as gpu=0')
    if (!Number.isFinite(until) || until <= now) throw wrong('a silence must end in the future')
    this.sweep()
    if (this.#silences.size >= MOST) throw wrong(`there are already ${MOST} silences: end some of them first`)
    const silence: Silence = {
      id: randomBytes(6).toString('hex'),
      matchers,
      createdAt: now,
      until,
      comment: comment.slice(0, LONGEST_TEXT),
      by: by.slice(0, LONGEST_TEXT),
    }
    this.#silences.set(silence.id, silence)
    this.#journal.set(PREFIX + silence.id, silence)
    return silence
  }

  /** Of a journal that was found late. */
  join(silence: Silence): void {
    this.#silences.set(silence.id, silence)
    this.#journal.set(PREFIX + silence.id, silence)
  }

  remove(id: string): boolean {
    this.#journal.delete(PREFIX + id)
    return this.#silences.delete(id)
  }

  list(): readonly Silence[] {
    const now = this.#now()
    return [...this.#silences.values()].filter((silence) => silence.until > now)
  }

  covering(subject: MatchSubject): Silence | null {
    if (this.#silences.size === 0) return null
    const now = this.#now()
    for (const silence of this.#silences.values()) if (silence.until > now && matchesAll(silence.matchers, subject)) return silence
    return null
  }

  /** Forgets those that have ended. */
  sweep(): void {
    const now = this.#now()
    for (const silence of this.#silences.values()) if (silence.until <= now) this.remove(silence.id)
  }
}

function wrong(message: string): Failure {
  return new Failure(message, { exitCode: EXIT.usage })
}
