/** Brings the messages of one channel where they belong, one after the other: durable first, then tried, then written down. */
import type { AlertMessage, Channel, Delivery } from '../core/alert-contract.ts'
import type { Log } from '../core/kinds.ts'
import type { Severity } from '../core/model.ts'
import { TokenBucket } from '../core/token-bucket.ts'
import type { ChannelQueue } from './channel-queue.ts'
import type { Composer } from './composer.ts'
import type { SpooledMessage } from './notice.ts'

export interface CourierOptions {
  readonly channel: Channel & { idle?(): string | null }
  readonly queue: ChannelQueue
  readonly composer: Composer
  /** Everything decided so far is on disk, or the disk cannot be written. */
  readonly commit: () => Promise<boolean>
  readonly now: () => number
  readonly nowMs: () => number
  readonly random: () => number
  readonly log: Log
  readonly maxAgeMs: number
  readonly perHour: number
  readonly burst: number
  readonly timeoutMs: number
  /** Others may have to be notified, or notified that it is over. `problem`: in words; null: the channel takes messages. */
  readonly onProblem: (problem: string | null, severity: Severity) => void
}

export const DELIVERY_RESULTS = ['delivered', 'retried', 'refused', 'expired'] as const
export type DeliveryResult = (typeof DELIVERY_RESULTS)[number]

const FIRST_PAUSE_MS = 5000
const LONGEST_PAUSE_MS = 600_000
/** Somebody repairs a refusal and waits for the message: with the jitter less than a minute. */
const LONGEST_REFUSED_PAUSE_MS = 45_000
/** How long a channel may take to react to an abort. */
const ABORT_GRACE_MS = 2000

export class Courier {
  readonly #options: CourierOptions
  readonly #bucket: TokenBucket
  /** The last few tokens are for critical alerts. */
  readonly #heldBack: number
  readonly #counts: Record<DeliveryResult, number> = { delivered: 0, retried: 0, refused: 0, expired: 0 }
  readonly #closing = new AbortController()
  #running: Promise<void> | null = null
  #isAskedAgain = false
  #isLast = false
  #lastFault: string | null = null
  /** In a row. */
  #refusals = 0
  #tryRefusedMs = 0
  #refusal: string | null

  constructor(options: CourierOptions) {
    this.#options = options
    this.#refusal = options.queue.refused.at(-1)?.lastReason ?? null
    this.#bucket = new TokenBucket(options.burst, options.perHour / 3_600_000)
    this.#heldBack = Math.floor(options.burst / 4)
  }

  get counts(): Readonly<Record<DeliveryResult, number>> {
    return this.#counts
  }

  /** Why the last attempt failed; null after a success. */
  get lastFault(): string | null {
    return this.#lastFault
  }

  /** Why messages were refused or given up, since the last success without any left; null: none were. */
  get refusal(): string | null {
    return this.#refusal
  }

  /** Sends what is due; resolves when nothing more is. */
  run(): Promise<void> {
    if (this.#running) {
      this.#isAskedAgain = true
      return this.#running
    }
    this.#running = this.#loop().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  /** Tries everything once more without waiting for a group, then aborts what does not return. */
  async close(graceMs: number): Promise<void> {
    this.#isLast = true
    const timer = setTimeout(() => this.#closing.abort(new Error('gpuwarden is stopping')), graceMs)
    try {
      await this.run()
      await this.run()
    } finally {
      clearTimeout(timer)
      this.#closing.abort(new Error('gpuwarden is stopping'))
    }
  }

  async #loop(): Promise<void> {
    do {
      this.#isAskedAgain = false
      for (let spooled = this.#next(); spooled !== null && !this.#closing.signal.aborted; spooled = this.#next()) await this.#send(spooled)
    } while (this.#isAskedAgain && !this.#closing.signal.aborted)
  }

  #next(): SpooledMessage | null {
    const { queue, nowMs, maxAgeMs } = this.#options
    const ms = nowMs()
    for (;;) {
      const { current } = queue
      if (current && ms - current.queuedMs > maxAgeMs) this.#expire(current)
      else if (current) return current.nextMs <= ms && !(this.#isLast && current.attempts > 0) ? current : null
      else if (!this.#begin(ms)) return null
    }
  }

  /** False: nothing is due. */
  #begin(ms: number): boolean {
    const { queue, composer, now } = this.#options
    const made = composer.next(queue, now(), ms, (isCritical) => this.#bucket.take(ms, isCritical ? 0 : this.#heldBack), this.#isLast)
    if (!made) return this.#beginLetter(ms) || (!this.#isLast && ms >= this.#tryRefusedMs && queue.tryRefused())
    queue.begin(made.spooled, made.taken, made.leftOut, ms)
    return true
  }

  /** Letters come after alerts. */
  #beginLetter(ms: number): boolean {
    const { queue, composer, now } = this.#options
    if (queue.letters.size === 0 || this.#isLast || !this.#bucket.take(ms, this.#heldBack)) return false
    const spooled = composer.nextLetter(queue, now(), ms)
    if (spooled?.message.letter) queue.beginLetter(spooled, spooled.message.letter.id)
    return spooled !== null
  }

  async #send(spooled: SpooledMessage): Promise<void> {
    const { queue, commit, now, channel } = this.#options
    queue.takeOff()
    await commit()
    const delayedMs = spooled.attempts === 0 ? 0 : Math.max(0, now() - spooled.message.at)
    const delivery = await deliver(channel, { ...spooled.message, delayedMs }, this.#options.timeoutMs, this.#closing.signal)
    if (delivery.ok) this.#delivered(spooled)
    else if (delivery.retry) this.#retryLater(spooled, delivery.reason)
    else if (delivery.hopeless) this.#giveUp(spooled, delivery.reason)
    else this.#refuse(spooled, delivery.reason)
    await commit()
  }

  #delivered(spooled: SpooledMessage): void {
    const { queue, nowMs, log, channel, onProblem } = this.#options
    queue.delivered(nowMs())
    this.#counts.delivered++
    if (this.#lastFault !== null)
      log.info({ ...this.#fields(spooled), attempts: spooled.attempts + 1 }, `alerts are sent by ${channel.name} again`)
    this.#lastFault = null
    // It takes messages again: the others that it refused are due.
    this.#refusals = 0
    this.#tryRefusedMs = 0
    if (queue.refused.length > 0) return
    this.#refusal = null
    onProblem(null, 'info')
  }

  #retryLater(spooled: SpooledMessage, reason: string): void {
    const { queue, nowMs, log, channel } = this.#options
    this.#counts.retried++
    // A server that refused may be gone for a moment while it is repaired.
    const mostMs = this.#refusal === null ? LONGEST_PAUSE_MS : LONGEST_REFUSED_PAUSE_MS
    queue.retryLater(nowMs() + this.#pauseMs(spooled.attempts, mostMs), reason)
    // Once per outage: health() shows the state.
    if (this.#lastFault === null)
      log.warn(
        { ...this.#fields(spooled), reason },
        `an alert could not be sent by ${channel.name}; it is kept, and sending will be tried again`,
      )
    this.#lastFault = reason
  }

  #refuse(spooled: SpooledMessage, reason: string): void {
    const { queue, nowMs, log, channel, onProblem } = this.#options
    const isNews = this.#refusal === null
    this.#counts.refused++
    this.#lastFault = reason
    this.#tryRefusedMs = nowMs() + this.#pauseMs(this.#refusals++, LONGEST_REFUSED_PAUSE_MS)
    this.#refusal = reason
    const victim = queue.setRefusedAside(reason, nowMs())
    const words = `${channel.name} refuses alerts: ${reason}`
    if (isNews)
      log.error({ ...this.#fields(spooled), reason }, `${words}; they are kept, and sending is tried again at least once a minute`)
    if (victim) log.error(this.#fields(victim), `${words}; too many wait, so the oldest message was given up`)
    onProblem(words, spooled.message.severity)
  }

  #giveUp(spooled: SpooledMessage, reason: string): void {
    const { queue, nowMs, log, channel, onProblem } = this.#options
    queue.givenUp(nowMs())
    this.#counts.refused++
    this.#lastFault = reason
    const words = `${channel.name} gave up an alert: ${reason}`
    log.error({ ...this.#fields(spooled), reason }, words)
    // Nobody is there anymore, such as a browser: that is no fault.
    if (typeof channel.idle?.() === 'string') return
    this.#refusal = reason
    onProblem(words, spooled.message.severity)
  }

  #expire(spooled: SpooledMessage): void {
    const { queue, nowMs, log, channel } = this.#options
    const reason = spooled.lastReason ?? 'too old'
    queue.givenUp(nowMs())
    this.#counts.expired++
    this.#lastFault = reason
    log.error(
      { ...this.#fields(spooled), reason },
      `an alert was given up after ${spooled.attempts} attempts by ${channel.name}: ${reason}`,
    )
  }

  #pauseMs(failures: number, mostMs: number): number {
    return Math.min(mostMs, FIRST_PAUSE_MS * 2 ** Math.min(failures, 20)) * (0.75 + 0.5 * this.#options.random())
  }

  #fields({ message }: SpooledMessage): object {
    return { channel: this.#options.channel.name, message: message.id, fingerprints: message.alerts.map((alert) => alert.fingerprint) }
  }
}

/** A channel that throws or never answers is a failed attempt like any other. */
export async function deliver(channel: Channel, message: AlertMessage, timeoutMs: number, closing: AbortSignal): Promise<Delivery> {
  const abort = new AbortController()
  let giveUp: NodeJS.Timeout | undefined
  let end: (delivery: Delivery) => void = () => undefined
  const never = new Promise<Delivery>((resolve) => {
    end = resolve
  })
  const stop = (reason: unknown) => {
    abort.abort(reason)
    const words = reason instanceof Error ? reason.message : String(reason)
    giveUp ??= setTimeout(() => end({ ok: false, retry: true, reason: words }), ABORT_GRACE_MS)
  }
  const onClosing = () => stop(closing.reason)
  const timer = setTimeout(() => stop(new Error(`${channel.name} did not answer within ${timeoutMs / 1000} s`)), timeoutMs)
  closing.addEventListener('abort', onClosing)
  if (closing.aborted) onClosing()
  try {
    return await Promise.race([channel.deliver(message, abort.signal), never])
  } catch (error) {
    return { ok: false, retry: true, reason: error instanceof Error ? error.message : String(error) }
  } finally {
    clearTimeout(timer)
    clearTimeout(giveUp)
    closing.removeEventListener('abort', onClosing)
  }
}
