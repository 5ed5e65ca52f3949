/**
 * The queue of one channel. A problem is in it once: what happens to it in the queue changes what is waiting, so that an hour
 * without a mail server ends in a few messages that say how things stand, and none that is out of date.
 */

import type { Letter } from '../core/alert-contract.ts'
import { SEVERITY_RANK } from './alert-record.ts'
import type { Journal } from './journal.ts'
import { WaitingLetters } from './letters.ts'
import { isOpen, joined, lateOf, type Notice, type SpooledMessage, type Told } from './notice.ts'
import { originalId, RefusedMessages } from './refused-messages.ts'
import { ToldBook } from './told-book.ts'

const MOST_WAITING = 200

export class ChannelQueue {
  readonly name: string
  readonly letters: WaitingLetters
  readonly #journal: Journal
  /** By fingerprint, in order of arrival; `|late` marks an earlier, finished episode of a problem that is back. */
  readonly #waiting = new Map<string, Notice>()
  readonly #told: ToldBook
  readonly #refused: RefusedMessages
  #current: SpooledMessage | null
  #inFlight = false
  #overflow = 0

  constructor(name: string, journal: Journal) {
    this.name = name
    this.#journal = journal
    this.letters = new WaitingLetters(journal, this.#key('letter'))
    this.#refused = new RefusedMessages(journal, this.#key('refused'))
    this.#told = new ToldBook(journal, this.#key('told'))
    for (const [key, value] of journal.entries(this.#key('waiting')))
      this.#waiting.set(key.slice(this.#key('waiting').length), value as Notice)
    this.#current = (journal.get(this.#key('current')) as SpooledMessage | undefined) ?? null
    this.#overflow = (journal.get(this.#key('overflow')) as number | undefined) ?? 0
    // It may have been on its way when we were killed: nobody knows whether it arrived.
    if (this.#current) this.#current = { ...this.#current, attempts: Math.max(1, this.#current.attempts), nextMs: 0 }
  }

  get waiting(): ReadonlyMap<string, Notice> {
    return this.#waiting
  }

  get current(): SpooledMessage | null {
    return this.#current
  }

  /** Messages that the other side refused and that are tried again. */
  get refused(): readonly SpooledMessage[] {
    return this.#refused.all
  }

  /** How many had to make room and are mentioned as "N more". */
  get overflow(): number {
    return this.#overflow
  }

  told(fingerprint: string): Told | undefined {
    return this.#told.get(fingerprint)
  }

  /** Whether the news of this problem waits or is on its way. */
  announces(fingerprint: string): boolean {
    const waiting = this.#waiting.get(fingerprint)
    if (waiting && isOpen(waiting.alert)) return true
    // A "cleared" waits behind a message on its way: that message no longer counts.
    return !waiting && this.#isSpooled(fingerprint)
  }

  /** Whether any notice of this problem waits or is on its way. */
  has(fingerprint: string): boolean {
    const isIn = ({ message }: SpooledMessage) => message.alerts.some((alert) => alert.fingerprint === fingerprint)
    return this.#spooled().some(isIn) || this.#waiting.has(fingerprint) || this.#waiting.has(lateKey(fingerprint))
  }

  /** The problem is there (again, still, or worse). */
  announce(notice: Notice): void {
    const { fingerprint } = notice.alert
    const before = this.#waiting.get(fingerprint)
    if (before?.alert.status === 'late') {
      this.#put(lateKey(fingerprint), joined(this.#waiting.get(lateKey(fingerprint)), before))
      this.#remove(fingerprint)
    }
    // An older notice of the same problem keeps its place in the queue.
    const queuedMs = before && isOpen(before.alert) ? before.queuedMs : notice.queuedMs
    this.#put(fingerprint, { ...notice, queuedMs })
    if (this.#waiting.size > MOST_WAITING) this.#makeRoom()
  }

  /** The problem is over: `alert` says so. What still waits is changed; what was sent gets a "resolved". */
  clear(notice: Notice): void {
    const { fingerprint } = notice.alert
    const wasTold = this.#told.isSent(fingerprint)
    const before = this.#waiting.get(fingerprint)
    if (before && isOpen(before.alert)) {
      if (wasTold) this.#put(fingerprint, { ...notice, thread: before.thread, queuedMs: before.queuedMs })
      else {
        const late = { ...before, alert: lateOf(before.alert, notice.alert.resolvedAt) }
        this.#put(fingerprint, joined(this.#waiting.get(lateKey(fingerprint)), late))
        this.#remove(lateKey(fingerprint))
      }
      return
    }
    if (before) return
    if (this.#isSpooled(fingerprint)) {
      this.#put(fingerprint, notice)
      this.#fold()
    } else if (wasTold) this.#put(fingerprint, notice)
    else this.#told.forget(fingerprint)
  }

  /** Muted: nobody wants it for now. */
  withdraw(fingerprint: string): void {
    const waiting = this.#waiting.get(fingerprint)
    if (waiting && isOpen(waiting.alert)) this.#remove(fingerprint)
  }

  /** One more that there was no room for. */
  mention(): void {
    this.#setOverflow(this.#overflow + 1)
  }

  hold(key: string, notice: Notice): void {
    this.#put(key, { ...notice, held: true })
  }

  /** Takes notices out of the queue and into the message made of them; `leftOut` are the "N more". */
  begin(spooled: SpooledMessage, taken: readonly string[], leftOut: readonly string[], nowMs: number): void {
    for (const key of taken) this.#remove(key)
    for (const key of leftOut) {
      const notice = this.#waiting.get(key)
      if (notice && isOpen(notice.alert)) this.#told.tell(notice.alert, spooled.message.threadId, nowMs, false)
      this.#remove(key)
    }
    this.#setOverflow(0)
    this.#setCurrent(spooled)
  }

  beginLetter(spooled: SpooledMessage, id: string): void {
    this.letters.remove(id)
    this.#setCurrent(spooled)
  }

  /** The current message does not change from here until the outcome is known. */
  takeOff(): void {
    this.#inFlight = true
  }

  delivered(nowMs: number): void {
    this.#finish(nowMs, true)
  }

  /** It can never arrive, or is too old: nobody was notified, so nobody is notified of the end. */
  givenUp(nowMs: number): void {
    this.#finish(nowMs, false)
  }

  /** Set aside until tryRefused(). Returns the message that had to make room, and is given up. */
  setRefusedAside(reason: string, nowMs: number): SpooledMessage | null {
    this.#inFlight = false
    const spooled = this.#current
    if (!spooled) return null
    this.#setCurrent(null)
    const victim = this.#refused.add({ ...spooled, attempts: spooled.attempts + 1, lastReason: reason })
    if (victim) this.#close(victim, nowMs, false)
    this.#fold()
    return victim
  }

  /** Makes the refused message whose turn it is the current one; false: there is none. */
  tryRefused(): boolean {
    const spooled = this.#refused.takeNext()
    if (spooled) this.#setCurrent({ ...spooled, nextMs: 0 })
    return spooled !== null
  }

  retryLater(nextMs: number, reason: string): void {
    this.#inFlight = false
    if (!this.#current) return
    this.#setCurrent({ ...this.#current, attempts: this.#current.attempts + 1, nextMs, lastReason: reason })
    this.#fold()
  }

  /** Drops what nobody needs any more: the problem ended long ago, or is unknown after a restart. */
  forget(fingerprint: string): void {
    if (!this.announces(fingerprint) && !this.#waiting.has(fingerprint)) this.#told.forget(fingerprint)
  }

  /** Takes one entry of a journal that was found late; what happened since stays. */
  join(entry: string, value: unknown): void {
    const name = entry.slice(entry.indexOf('/') + 1)
    if (entry.startsWith('told/')) {
      if (!this.#told.get(name)) this.#told.put(name, value as Told)
    } else if (entry.startsWith('waiting/')) {
      if (!this.has(name.replace(/\|late$/, ''))) this.#put(name, value as Notice)
    } else if (entry === 'current' || entry.startsWith('refused/')) {
      const { attempts, ...spooled } = value as SpooledMessage
      this.#refused.add({ ...spooled, attempts: Math.max(1, attempts) })
    } else if (entry.startsWith('letter/')) this.letters.add(value as Letter)
    else if (entry === 'overflow') this.#setOverflow(this.#overflow + (value as number))
  }

  #finish(nowMs: number, sent: boolean): void {
    this.#inFlight = false
    const spooled = this.#current
    if (!spooled) return
    this.#setCurrent(null)
    this.#close(spooled, nowMs, sent)
  }

  #close(spooled: SpooledMessage, nowMs: number, sent: boolean): void {
    const { alerts, threadId } = spooled.message
    for (const alert of alerts) if (!isOpen(alert)) this.#told.forget(alert.fingerprint)
    for (const alert of alerts) if (isOpen(alert)) this.#told.tell(alert, threadId, nowMs, sent)
    if (sent) return
    for (const { fingerprint } of alerts)
      if (this.#waiting.get(fingerprint)?.alert.status === 'resolved' && !this.#told.isSent(fingerprint)) {
        this.#remove(fingerprint)
        this.#told.forget(fingerprint)
      }
  }

  /** Adds what cleared in the meantime to messages that were not delivered: one late message instead of two. */
  #fold(): void {
    if (this.#current && !this.#inFlight) {
      const folded = this.#folded(this.#current)
      if (folded) this.#setCurrent(folded)
    }
    for (const spooled of this.#refused.all) {
      const folded = this.#folded(spooled)
      if (folded) this.#refused.replace(folded)
    }
  }

  /** null: nothing in it cleared. */
  #folded(spooled: SpooledMessage): SpooledMessage | null {
    let isChanged = false
    const alerts = spooled.message.alerts.map((alert) => {
      const over = this.#waiting.get(alert.fingerprint)
      if (!isOpen(alert) || over?.alert.status !== 'resolved') return alert
      isChanged = true
      this.#remove(alert.fingerprint)
      return this.#told.isSent(alert.fingerprint) ? over.alert : lateOf(alert, over.alert.resolvedAt)
    })
    if (!isChanged) return null
    const revision = spooled.revision + 1
    // A receiver that got the first content would drop different content under the same id as a duplicate.
    return { ...spooled, revision, message: { ...spooled.message, id: `${originalId(spooled)}-r${revision}`, alerts } }
  }

  #spooled(): readonly SpooledMessage[] {
    return this.#current ? [this.#current, ...this.#refused.all] : this.#refused.all
  }

  #isSpooled(fingerprint: string): boolean {
    return this.#spooled().some(({ message }) => message.alerts.some((alert) => alert.fingerprint === fingerprint && isOpen(alert)))
  }

  #setCurrent(spooled: SpooledMessage | null): void {
    this.#current = spooled
    if (spooled) this.#journal.set(this.#key('current'), spooled)
    else this.#journal.delete(this.#key('current'))
  }

  /** The least severe makes room, then the oldest; never the end of a problem that was reported. */
  #makeRoom(): void {
    let victim: string | null = null
    let lowest = Number.POSITIVE_INFINITY
    for (const [key, notice] of this.#waiting) {
      if (notice.alert.status === 'resolved') continue
      const rank = SEVERITY_RANK[notice.severity]
      if (rank < lowest) {
        victim = key
        lowest = rank
      }
    }
    const notice = victim === null ? undefined : this.#waiting.get(victim)
    if (victim === null || !notice) return
    if (isOpen(notice.alert)) this.#told.tell(notice.alert, '', notice.queuedMs, false)
    this.#remove(victim)
    this.#setOverflow(this.#overflow + 1)
  }

  #put(key: string, notice: Notice): void {
    this.#waiting.set(key, notice)
    this.#journal.set(this.#key('waiting') + key, notice)
  }

  #remove(key: string): void {
    if (this.#waiting.delete(key)) this.#journal.delete(this.#key('waiting') + key)
  }

  #setOverflow(count: number): void {
    if (count === this.#overflow) return
    this.#overflow = count
    this.#journal.set(this.#key('overflow'), count)
  }

  #key(part: 'waiting' | 'letter' | 'told' | 'refused' | 'current' | 'overflow'): string {
    return `channel/${encodeURIComponent(this.name)}/${part}${part === 'current' || part === 'overflow' ? '' : '/'}`
  }
}

function lateKey(fingerprint: string): string {
  return `${fingerprint}|late`
}
