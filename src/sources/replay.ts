/** Plays a recording as if it happened now, with the times that were recorded. */
import type { GpuInfo, Sample } from '../core/model.ts'
import { describeSkipped, openRecording, type Recording, type RecordingItem } from '../core/recording/recording.ts'
import type { Source, SourceEnv, SourceKind } from '../core/source-contract.ts'
import { vendorOfModel } from './vendors.ts'

/** How many moments one read gives when there is no pace to keep. */
const MOMENTS_PER_READ = 200
/** Above this there is no pace to keep; a number and not Infinity alone, because JSON between processes has no Infinity. */
const UNLIMITED_SPEED = 1e6
/** Behind by more than this (a suspended machine), the pace restarts instead of catching up. */
const CATCH_UP_MS = 1000

export const replay: SourceKind = {
  name: 'replay',
  async open(env) {
    const { replayPath, speed = 1 } = env.options
    if (replayPath === undefined) return null
    if (!(speed > 0)) throw new Error(`speed of a replay must be a number above 0, or Infinity for no limit; got ${String(speed)}`)
    const source = new ReplaySource(await openRecording(replayPath, vendorOfModel), speed, env)
    await source.start()
    return source
  },
}

class ReplaySource implements Source {
  readonly provenance = 'replay'
  readonly #recording: Recording
  readonly #items: AsyncIterator<RecordingItem>
  readonly #speed: number
  readonly #env: SourceEnv
  #next: RecordingItem | null = null
  #devices: readonly GpuInfo[] = []
  #lastAt: number | null = null
  /** When, by the wall's clock, the recorded moment `anchorAt` was played. */
  #anchorNow = 0
  #anchorAt = 0

  constructor(recording: Recording, speed: number, env: SourceEnv) {
    this.#recording = recording
    this.#items = recording[Symbol.asyncIterator]()
    this.#speed = speed
    this.#env = env
  }

  async start(): Promise<void> {
    await this.#advance()
    if (this.#next === null)
      throw new Error(
        `nothing to replay: ${this.#recording.path} has no usable line (${describeSkipped(this.#recording.stats()) ?? 'it is empty'})`,
      )
    this.#devices = this.#next.devices
  }

  devices(): readonly GpuInfo[] {
    return this.#devices
  }

  async read(): Promise<readonly Sample[]> {
    const samples: Sample[] = []
    const moments = this.#speed > UNLIMITED_SPEED ? MOMENTS_PER_READ : 1
    for (let moment = 0; moment < moments && this.#next !== null; moment++) {
      if (this.#lastAt === null) this.#anchor(this.#next.at)
      samples.push(...this.#next.samples)
      this.#devices = this.#next.devices
      this.#lastAt = this.#next.at
      await this.#advance()
    }
    return samples
  }

  ended(): boolean {
    return this.#next === null
  }

  /** The recorded gap divided by the speed, less what reading and late timers have cost. */
  nextDelayMs(): number {
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
    await this.#items.return?.()
    await this.#recording.close()
  }

  #anchor(at: number): void {
    this.#anchorNow = this.#env.now()
    this.#anchorAt = at
  }

  async #advance(): Promise<void> {
    const { value, done } = await this.#items.next()
    this.#next = done ? null : value
    if (!done) return
    const skipped = describeSkipped(this.#recording.stats())
    if (skipped !== null) this.#env.log('warn', `parts of the recording could not be used: ${skipped}`)
  }
}
