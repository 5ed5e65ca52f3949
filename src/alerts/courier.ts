/** Brings the messages of one channel where they belong, one after the other: durable first, then tried, then written down. */
import type { AlertMessage, Channel, Delivery } from '../core/alert-contract.ts'
import type { Log } from '../core/kinds.ts'
import { TokenBucket } from '../core/token-bucket.ts'
import type { ChannelQueue } from './channel-queue.ts'
import type { Composer } from './composer.ts'
import type { SpooledMessage } from './notice.ts'

export interface CourierOptions {
  readonly channel: Channel
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
}

export const DELIVERY_RESULTS = ['delivered', 'retried', 'refused', 'expired'] as const
export type DeliveryResult = (typeof DELIVERY_RESULTS)[number]

const FIRST_PAUSE_MS = 5000
const LONGEST_PAUSE_MS = 600_000
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

  constructor(options: CourierOptions) {
    this.#options = options
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
    const { queue, composer, now, nowMs, maxAgeMs } = this.#options
    const ms = nowMs()
    if (queue.current && ms - queue.current.queuedMs > maxAgeMs)
      this.#giveUp(queue.current, 'expired', queue.current.lastReason ?? 'too old')
    if (queue.current) return queue.current.nextMs <= ms && !(this.#isLast && queue.current.attempts > 0) ? queue.current : null
    const made = composer.next(queue, now(), ms, (isCritical) => this.#bucket.take(ms, isCritical ? 0 : this.#heldBack), this.#isLast)
    if (!made) return null
    queue.begin(made.spooled, made.taken, made.leftOut, ms)
    return queue.current
  }

  async #send(spooled: SpooledMessage): Promise<void> {
    const { queue, commit, now, nowMs, log, channel } = this.#options
    queue.takeOff()
    await commit()
    const delayedMs = spooled.attempts === 0 ? 0 : Math.max(0, now() - spooled.message.at)
    const delivery = await deliver(channel, { ...spooled.message, delayedMs }, this.#options.timeoutMs, this.#closing.signal)
    const fields = { channel: channel.name, message: spooled.message.id, alerts: spooled.message.alerts.length }
    if (delivery.ok) {
      queue.delivered(nowMs())
      this.#counts.delivered++
      if (this.#lastFault !== null) log.info({ ...fields, attempts: spooled.attempts + 1 }, `alerts are sent by ${channel.name} again`)
      this.#lastFault = null
    } else if (!delivery.retry) this.#giveUp(spooled, 'refused', delivery.reason)
    else {
      this.#counts.retried++
      const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(spooled.attempts, 20)) * (0.75 + 0.5 * this.#options.random())
      queue.retryLater(nowMs() + pause, delivery.reason)
      // Once per outage: health() shows the state.
      if (this.#lastFault === null)
        log.warn(
          { ...fields, reason: delivery.reason },
          `an alert could not be sent by ${channel.name}; it is kept, and sending will be tried again`,
        )
      this.#lastFault = delivery.reason
    }
    await commit()
  }

  #giveUp(spooled: SpooledMessage, result: 'refused' | 'expired', reason: string): void {
    const { queue, nowMs, log, channel } = this.#options
    queue.givenUp(nowMs())
    this.#counts[result]++
    this.#lastFault = reason
    log.error(
      {
        channel: channel.name,
        message: spooled.message.id,
        reason,
        fingerprints: spooled.message.alerts.map((alert) => alert.fingerprint),
      },
      result === 'refused'
        ? `${channel.name} refused an alert permanently: ${reason}`
        : `an alert was given up after ${spooled.attempts} attempts by ${channel.name}: ${reason}`,
    )
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
