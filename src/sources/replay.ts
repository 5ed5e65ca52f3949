/** Plays a recording as if it happened now, with the times that were recorded. */
import type { GpuInfo, Sample } from '../core/model.ts'
import type { PlaybackCommand, PlaybackState } from '../core/playback.ts'
import { describeSkipped, openRecording, type Recording, type RecordingItem } from '../core/recording/recording.ts'
import type { Playback, Source, SourceEnv, SourceKind } from '../core/source-contract.ts'
import { vendorOfModel } from './vendors.ts'

/** How many moments one read gives when there is no pace to keep. */
const MOMENTS_PER_READ = 200
/** Above this there is no pace to keep; a number and not Infinity alone, because JSON between processes has no Infinity. */
const UNLIMITED_SPEED = 1e6
/** Behind by more than this (a suspended machine), the pace restarts instead of catching up. */
const CATCH_UP_MS = 1000
/** A moment is due this much early: timers count whole milliseconds. */
const EARLY_MS = 5

export const replay: SourceKind = {
  name: 'replay',
  async open(env) {
    const { replayPath, speed = 1 } = env.options
    if (replayPath === undefined) return null
    if (!(speed > 0)) throw new Error(`speed of a replay must be a number above 0, or Infinity for no limit; got ${String(speed)}`)
    const source = new ReplaySource(() => openRecording(replayPath, vendorOfModel), speed, env)
    await source.start()
    return source
  },
}

/** Detectors have memory, so going back means reading from the beginning up to the wanted moment, which is exact. */
class ReplaySource implements Source, Playback {
  readonly provenance = 'replay'
  readonly playback = this
  readonly #open: () => Promise<Recording>
  #recording: Recording | null = null
  #items: AsyncIterator<RecordingItem> | null = null
  #speed: number
  readonly #env: SourceEnv
  #next: RecordingItem | null = null
  #devices: readonly GpuInfo[] = []
  #lastAt: number | null = null
  /** When, by the wall's clock, the recorded moment `anchorAt` was played. */
  #anchorNow = 0
  #anchorAt = 0
  #isPaused = false
  /** Since the last read, which then comes before a moment is due. */
  #isSteered = false
  /** Where to go; null: nowhere. -Infinity: the beginning. */
  #target: number | null = null
  #jumps = 0
  restarts = 0

  constructor(open: () => Promise<Recording>, speed: number, env: SourceEnv) {
    this.#open = open
    this.#speed = speed
    this.#env = env
  }

  async start(): Promise<void> {
    const recording = await this.#open()
    this.#recording = recording
    this.#items = recording[Symbol.asyncIterator]()
    this.#lastAt = null
    await this.#advance()
    if (this.#next === null)
      throw new Error(`nothing to replay: ${recording.path} has no usable line (${describeSkipped(recording.stats()) ?? 'it is empty'})`)
    this.#devices = this.#next.devices
  }

  state(): PlaybackState {
    const state = this.#target !== null ? 'seeking' : this.#next === null ? 'ended' : this.#isPaused ? 'paused' : 'playing'
    return { state, at: this.#lastAt, speed: this.#speed > UNLIMITED_SPEED ? null : this.#speed, jumps: this.#jumps }
  }

  command({ playing, speed, at }: PlaybackCommand): void {
    const hasEnded = this.#next === null && this.#target === null
    if (at !== undefined) this.#target = at
    // Playing again after the end is from the beginning; going back from the end is to look at something.
    else if (hasEnded && playing === true) this.#target = Number.NEGATIVE_INFINITY
    if (playing !== undefined) this.#isPaused = !playing
    else if (hasEnded && at !== undefined) this.#isPaused = true
    if (speed !== undefined) this.#speed = speed
    this.#isSteered = true
    if (this.#lastAt !== null) this.#anchor(this.#lastAt)
  }

  devices(): readonly GpuInfo[] {
    return this.#devices
  }

  async read(): Promise<readonly Sample[]> {
    const samples: Sample[] = []
    if (this.#target !== null && this.#lastAt !== null && this.#target < this.#lastAt) await this.#restart()
    if (this.#isSteered) {
      this.#isSteered = false
      if (this.#target === null && this.nextDelayMs() > EARLY_MS) return samples
    }
    const target = this.#target
    const moments = target !== null || this.#speed > UNLIMITED_SPEED ? MOMENTS_PER_READ : 1
    for (let moment = 0; moment < moments && this.#next !== null; moment++) {
      // At least one moment, so that there is something to see.
      if (target !== null && this.#lastAt !== null && this.#next.at > target) break
      if (this.#lastAt === null) this.#anchor(this.#next.at)
      samples.push(...this.#next.samples)
      this.#devices = this.#next.devices
      this.#lastAt = this.#next.at
      await this.#advance()
    }
    if (target !== null && this.#target === target && (this.#next === null || this.#next.at > target)) this.#arrive()
    return samples
  }

  ended(): boolean {
    return this.#next === null
  }

  /** The recorded gap divided by the speed, less what reading and late timers have cost. */
  nextDelayMs(): number {
    if (this.#target !== null) return 0
    if (this.#isPaused && this.#next !== null) return Number.POSITIVE_INFINITY
    if (this.#next === null || this.#lastAt === null || this.#speed > UNLIMITED_SPEED) return 0
    const gapMs = Math.max(0, (this.#next.at - this.#lastAt) / this.#speed)
    const waitMs = this.#anchorNow + (this.#next.at - this.#anchorAt) / this.#speed - this.#env.now()
    if (waitMs < -CATCH_UP_MS || waitMs > gapMs + CATCH_UP_MS) {
      this.#anchor(this.#lastAt)
      return gapMs
    }
    return Math.min(gapMs, Math.max(0, waitMs))
  }

  async close(): Promise<void> {
    this.#next = null
    await this.#items?.return?.()
    await this.#recording?.close()
  }

  async #restart(): Promise<void> {
    await this.close()
    await this.start()
    this.restarts++
  }

  #arrive(): void {
    this.#target = null
    this.#jumps++
    if (this.#lastAt !== null) this.#anchor(this.#lastAt)
  }

  #anchor(at: number): void {
    this.#anchorNow = this.#env.now()
    this.#anchorAt = at
  }

  async #advance(): Promise<void> {
    const result = await this.#items?.next()
    this.#next = result === undefined || result.done ? null : result.value
    if (this.#next !== null || this.#recording === null || this.restarts > 0) return
    const skipped = describeSkipped(this.#recording.stats())
    if (skipped !== null) this.#env.log('warn', `parts of the recording could not be used: ${skipped}`)
  }
}
