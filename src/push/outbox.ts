/** What waits to be sent: bounded, in order, one at a time, tried again with growing pauses. Nothing of it is written to disk. */
import type { Dropped, Log } from '../core/kinds.ts'

export type Outcome =
  | { readonly ok: true }
  /** `afterMs`: how long the receiver asks us to wait. */
  | { readonly ok: false; readonly retry: boolean; readonly reason: string; readonly afterMs?: number }

export interface Parcel<Body> {
  readonly body: Body
  readonly bytes: number
  /** What a drop of it counts for. */
  readonly samples: number
}

export interface OutboxOptions<Body> {
  readonly log: Log
  readonly maxParcels: number
  readonly maxBytes: number
  send(body: Body, signal: AbortSignal): Promise<Outcome>
  /** First pause after a failure; it doubles up to `longestPauseMs`. */
  readonly firstPauseMs?: number
  readonly longestPauseMs?: number
  readonly timeoutMs?: number
}

export class Outbox<Body> {
  readonly #options: Required<OutboxOptions<Body>>
  readonly #waiting: Parcel<Body>[] = []
  #bytes = 0
  #dropped = 0
  #reason: string | null = null
  #failures = 0
  #working: Promise<void> | null = null
  #wake: (() => void) | null = null
  #closing = false
  readonly #abort = new AbortController()

  constructor(options: OutboxOptions<Body>) {
    this.#options = { firstPauseMs: 1000, longestPauseMs: 60_000, timeoutMs: 10_000, ...options }
  }

  get waiting(): number {
    return this.#waiting.length
  }

  dropped(): Dropped {
    return { count: this.#dropped, reason: this.#reason }
  }

  put(parcel: Parcel<Body>): void {
    this.#waiting.push(parcel)
    this.#bytes += parcel.bytes
    const { maxParcels, maxBytes } = this.#options
    // The newest always stays: it says more about now than all that is older.
    while (this.#waiting.length > 1 && (this.#waiting.length > maxParcels || this.#bytes > maxBytes))
      this.#drop(this.#take(), this.#reason === null ? 'more is made than the receiver takes' : this.#reason)
    this.#working ??= this.#work()
  }

  /** Tries what is left once more, for at most `graceMs`; what remains is dropped and counted. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true
    this.#wake?.()
    const timer = setTimeout(() => this.#abort.abort(), graceMs)
    await this.#working
    clearTimeout(timer)
    this.#abort.abort()
    while (this.#waiting.length > 0) this.#drop(this.#take(), this.#reason ?? 'gpuwarden was stopped')
  }

  #take(): Parcel<Body> | undefined {
    const parcel = this.#waiting.shift()
    this.#bytes -= parcel?.bytes ?? 0
    return parcel
  }

  #drop(parcel: Parcel<Body> | undefined, reason: string): void {
    this.#dropped += parcel?.samples ?? 0
    this.#reason = reason
  }

  async #work(): Promise<void> {
    let parcel = this.#waiting[0]
    while (parcel !== undefined && !this.#abort.signal.aborted) {
      const outcome = await this.#try(parcel)
      const isFirst = this.#waiting[0] === parcel
      if (outcome.ok) {
        if (this.#failures > 0) this.#options.log.info({ waiting: this.#waiting.length }, 'the receiver takes metrics again')
        this.#failures = 0
        this.#reason = null
        if (isFirst) this.#take()
      } else {
        this.#failed(outcome.reason)
        if (outcome.retry && !this.#closing) await this.#pause(outcome.afterMs)
        else if (!outcome.retry && isFirst) this.#drop(this.#take(), outcome.reason)
        if (outcome.retry && this.#closing) break
      }
      parcel = this.#waiting[0]
    }
    this.#working = null
  }

  async #try(parcel: Parcel<Body>): Promise<Outcome> {
    const signal = AbortSignal.any([this.#abort.signal, AbortSignal.timeout(this.#options.timeoutMs)])
    try {
      return await this.#options.send(parcel.body, signal)
    } catch (error) {
      return { ok: false, retry: true, reason: describe(error) }
    }
  }

  /** Once for each outage, not for each try. */
  #failed(reason: string): void {
    this.#failures++
    if (this.#failures === 1 || reason !== this.#reason) this.#options.log.warn({ reason }, 'metrics could not be pushed')
    this.#reason = reason
  }

  #pause(askedMs: number | undefined): Promise<void> {
    const { firstPauseMs, longestPauseMs } = this.#options
    const grown = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(20, this.#failures - 1))
    // Many machines that lost the same receiver must not all come back in the same moment.
    const pauseMs = Math.min(longestPauseMs, Math.max(grown * (0.5 + Math.random() / 2), askedMs ?? 0))
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, pauseMs)
      timer.unref()
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause instanceof Error ? `: ${error.cause.message || (error.cause as NodeJS.ErrnoException).code}` : ''
  return error.name === 'TimeoutError' ? 'no answer in time' : `${error.message}${cause}`
}
