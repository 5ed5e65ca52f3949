import type { Recording, RecordingItem } from '../core/recording/recording.ts'
import type { Feed, ReplayControls } from './feed.ts'
import type { ReplayData } from './screen-data.ts'

export interface ReplayOptions {
  readonly open: () => Promise<Recording>
  readonly speed: number
  /** Everything that was concluded from earlier moments is void. */
  readonly reset: () => void
  readonly deliver: (item: RecordingItem) => void
  readonly onChange: (replay: ReplayData) => void
  readonly onFailure: (error: unknown) => void
}

const SPEEDS = [0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1000]
/** Moments between two looks at the keyboard while seeking. */
const BATCH = 200
/** Behind by more than this, the pace restarts instead of catching up. */
const CATCH_UP_MS = 1000

/** Detectors have memory, so going back means reading from the beginning up to the wanted moment, which is exact. */
export class ReplayPlayer implements Feed, ReplayControls {
  readonly isLocal = false
  readonly alerts = null
  readonly replay = this
  readonly #options: ReplayOptions
  #recording: Recording | null = null
  #items: AsyncIterator<RecordingItem> | null = null
  #next: RecordingItem | null = null
  #at = 0
  #firstAt = 0
  #lastAt: number | null = null
  #speed: number
  #state: ReplayData['state'] = 'playing'
  #timer: NodeJS.Timeout | null = null
  #anchor = { now: 0, at: 0 }
  /** Where to; null when no seeking is wanted. */
  #target: number | null = null
  #isSeeking = false
  #isStopped = false

  constructor(options: ReplayOptions) {
    this.#options = options
    this.#speed = options.speed
  }

  async start(): Promise<void> {
    await this.#rewind()
    if (this.#next === null) throw new Error(`nothing to replay: ${this.#recording?.path ?? 'the recording'} has no usable line`)
    this.#firstAt = this.#next.at
    await this.#step()
    this.#hold()
    this.#schedule()
  }

  toggle(): void {
    if (this.#state === 'ended') {
      this.#target = this.#firstAt
      this.#state = 'playing'
      this.#seekSoon()
      return
    }
    this.#state = this.#state === 'paused' ? 'playing' : 'paused'
    this.#hold()
    this.#tell()
    this.#schedule()
  }

  seek(deltaMs: number): void {
    this.#target = Math.max(this.#firstAt, (this.#target ?? this.#at) + deltaMs)
    this.#seekSoon()
  }

  faster(): void {
    this.#pace(SPEEDS.find((speed) => speed > this.#speed) ?? this.#speed)
  }

  slower(): void {
    this.#pace(SPEEDS.findLast((speed) => speed < this.#speed) ?? this.#speed)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer) clearTimeout(this.#timer)
    await this.#recording?.close()
  }

  #pace(speed: number): void {
    this.#speed = speed
    this.#hold()
    this.#tell()
    this.#schedule()
  }

  #hold(): void {
    this.#anchor = { now: performance.now(), at: this.#at }
  }

  #tell(): void {
    const { onChange } = this.#options
    const state = this.#isSeeking ? 'seeking' : this.#state
    onChange({ at: this.#at, firstAt: this.#firstAt, lastAt: this.#lastAt, speed: this.#speed, state })
  }

  async #rewind(): Promise<void> {
    await this.#recording?.close()
    this.#recording = await this.#options.open()
    this.#items = this.#recording[Symbol.asyncIterator]()
    this.#next = await this.#read()
  }

  async #read(): Promise<RecordingItem | null> {
    const result = await this.#items?.next()
    return result === undefined || result.done ? null : result.value
  }

  async #step(): Promise<void> {
    const item = this.#next
    if (!item) return
    this.#at = item.at
    this.#options.deliver(item)
    this.#next = await this.#read()
    if (this.#next === null) {
      this.#lastAt = this.#at
      this.#state = 'ended'
    }
  }

  #schedule(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#isStopped || this.#isSeeking || this.#state !== 'playing' || !this.#next) {
      this.#tell()
      return
    }
    let wait = this.#anchor.now + (this.#next.at - this.#anchor.at) / this.#speed - performance.now()
    if (wait < -CATCH_UP_MS) {
      this.#hold()
      wait = 0
    }
    this.#timer = setTimeout(() => this.#run(this.#play()), Math.max(0, wait))
  }

  /** Everything that is due by now: at a high pace many moments at once. */
  async #play(): Promise<void> {
    const until = this.#anchor.at + (performance.now() - this.#anchor.now) * this.#speed
    for (let count = 0; count < BATCH && this.#next && this.#next.at <= until + 1 && !this.#isSeeking; count++) await this.#step()
    this.#schedule()
    this.#tell()
  }

  #seekSoon(): void {
    if (this.#isSeeking) return
    this.#isSeeking = true
    if (this.#timer) clearTimeout(this.#timer)
    this.#tell()
    this.#run(this.#seek())
  }

  async #seek(): Promise<void> {
    while (this.#target !== null && !this.#isStopped) {
      const target = this.#target
      if (target < this.#at) {
        this.#options.reset()
        await this.#rewind()
        this.#at = this.#firstAt
        if (this.#state === 'ended') this.#state = 'paused'
      }
      // At least one moment, so that there is something to see.
      for (let count = 0; this.#next && (this.#next.at <= target || count === 0) && !this.#isStopped; count++) {
        await this.#step()
        if (count % BATCH === BATCH - 1) await new Promise((resolve) => setImmediate(resolve))
      }
      if (this.#target === target) this.#target = null
    }
    this.#isSeeking = false
    this.#hold()
    this.#schedule()
    this.#tell()
  }

  #run(work: Promise<void>): void {
    work.catch((error: unknown) => this.#options.onFailure(error))
  }
}
