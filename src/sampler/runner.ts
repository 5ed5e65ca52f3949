import { performance } from 'node:perf_hooks'
import { writtenStep } from '../core/known/revive.ts'
import type { GpuInfo, Sample } from '../core/model.ts'
import type { PlaybackCommand } from '../core/playback.ts'
import { DriverFault, type RunProcessRef, type Source } from '../core/source-contract.ts'
import { TickClock } from './clock.ts'
import type { FromSampler } from './messages.ts'
import type { Beat, Metronome } from './metronome.ts'

export interface RunnerOptions {
  readonly name: string
  readonly source: Source
  readonly intervalMs: number
  /** The shortest that the source allows. */
  readonly minIntervalMs?: number
  /** Monotonic; shared by the sources of a process, so that they tick together. */
  readonly originMs: number
  /** Whether to announce the next read (see messages.ts); the first one always is, because the agent may be opening another source by then. */
  readonly announce: () => boolean
  readonly metronome: Metronome
  /** `sent` is called when the message is on its way; only sources that run faster than the clock wait for it. */
  readonly send: (message: FromSampler, sent?: () => void) => void
  readonly onGone: () => void
}

const SHORTEST_POKE_MS = 100

export class SourceRunner implements Beat {
  readonly source: string
  dueMs: number
  readonly #options: RunnerOptions
  readonly #clock: TickClock
  #devices: readonly GpuInfo[]
  #lastReadMs = Number.NEGATIVE_INFINITY
  #reading = false
  /** Somebody steered the source while it was read. */
  #isSteered = false
  #restarts = 0
  #toldPlayback = ''
  #isEndTold = false
  #closed = false

  constructor(options: RunnerOptions) {
    this.source = options.name
    this.#options = options
    this.#clock = new TickClock(options.intervalMs, performance.now(), options.originMs)
    this.#devices = options.source.devices()
    this.dueMs = performance.now()
    options.metronome.add(this)
  }

  watch(pids: readonly number[], runs: readonly RunProcessRef[] = []): void {
    const { source } = this.#options
    if (!source.watch) return
    source.watch(pids, runs)
    this.#poke()
  }

  steer(command: PlaybackCommand): void {
    const { source, metronome } = this.#options
    if (this.#closed || !source.playback) return
    source.playback.command(command)
    if (this.#reading) {
      this.#isSteered = true
      return
    }
    this.dueMs = performance.now()
    metronome.arm()
  }

  pace(intervalMs: number): void {
    const { name, source, minIntervalMs = 0, metronome, send } = this.#options
    if (this.#closed || (source.nextDelayMs?.() ?? null) !== null) return
    const bounded = Math.max(intervalMs, minIntervalMs)
    const waitMs = this.#clock.pace(bounded, performance.now())
    send({ type: 'paced', source: name, intervalMs: bounded })
    // One that is being read rests by the new clock.
    if (this.#reading) return
    this.dueMs = performance.now() + waitMs
    metronome.arm()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#options.metronome.remove(this)
    await this.#options.source.close()
  }

  run(next: string | null, wasTold: boolean): boolean {
    const { name, source, announce, send } = this.#options
    this.#reading = true
    this.dueMs = Number.POSITIVE_INFINITY
    try {
      if (!wasTold && (announce() || this.#lastReadMs === Number.NEGATIVE_INFINITY)) send({ type: 'begin', source: name })
      const started = performance.now()
      this.#lastReadMs = started
      const at = Date.now()
      const answer = source.read({ at, monotonicMs: started, tick: this.#clock.tick })
      if (answer instanceof Promise) {
        void this.#await(answer, at, started)
        return false
      }
      const isPaced = this.#report(answer, at, started, next)
      return next !== null && !isPaced
    } catch (error) {
      void this.#fail(error)
      return false
    }
  }

  async #await(answer: Promise<readonly Sample[]>, at: number, started: number): Promise<void> {
    try {
      const samples = await answer
      if (!this.#closed) this.#report(samples, at, started, null)
    } catch (error) {
      await this.#fail(error)
    }
  }

  /** Sends what was read and says when to read again; true for a source that sets its own pace. */
  #report(samples: readonly Sample[], at: number, started: number, next: string | null): boolean {
    const { name, source, send } = this.#options
    if (source.playback && source.playback.restarts !== this.#restarts) {
      this.#restarts = source.playback.restarts
      send({ type: 'restarted', source: name })
    }
    const devices = source.devices()
    if (devices !== this.#devices) {
      this.#devices = devices
      send({ type: 'devices', source: name, devices })
    }
    const readMs = Math.round((performance.now() - started) * 1000) / 1000
    const message = { type: 'tick', source: name, at, samples: written(samples), skippedTicks: this.#clock.skipped, readMs } as const
    const paceMs = source.nextDelayMs?.() ?? null
    if (paceMs !== null || source.ended?.()) {
      // A source that was only paused or given another speed has nothing to say.
      if (samples.length === 0) void this.#goOn(paceMs ?? 0)
      else send(message, () => void this.#goOn(paceMs ?? 0))
      return true
    }
    send(next === null ? message : { ...message, next })
    this.#rest(this.#clock.advance(performance.now()))
    return false
  }

  /** After the message has gone out: a source that runs faster than the clock must not run ahead of who listens. */
  async #goOn(paceMs: number): Promise<void> {
    if (this.#closed) return
    const { source, send, name } = this.#options
    if (source.playback) {
      const hasEnded = source.ended?.() === true
      if (hasEnded && !this.#isEndTold) send({ type: 'ended', source: name, stays: true })
      this.#isEndTold = hasEnded
      this.#tellPlayback()
      this.#rest(this.#isSteered ? 0 : hasEnded ? Number.POSITIVE_INFINITY : paceMs)
      return
    }
    if (!source.ended?.()) {
      this.#rest(paceMs)
      return
    }
    try {
      await this.close()
      this.#options.send({ type: 'ended', source: this.source })
      this.#options.onGone()
    } catch (error) {
      this.#closed = false
      await this.#fail(error)
    }
  }

  /** Not for every moment: only when something else than the moment changed. */
  #tellPlayback(): void {
    const { source, send, name } = this.#options
    const playback = source.playback?.state()
    const told = JSON.stringify({ ...playback, at: null })
    if (!playback || told === this.#toldPlayback) return
    this.#toldPlayback = told
    send({ type: 'playback', source: name, playback })
  }

  #rest(delayMs: number): void {
    this.#reading = false
    this.#isSteered = false
    this.dueMs = performance.now() + delayMs
    this.#options.metronome.arm()
  }

  /** Reads sooner than the clock says, because somebody waits for the answer. */
  #poke(): void {
    if (this.#closed || this.#reading) return
    this.dueMs = Math.max(performance.now(), this.#lastReadMs + SHORTEST_POKE_MS)
    this.#options.metronome.arm()
  }

  async #fail(error: unknown): Promise<void> {
    if (this.#closed) return
    const message = error instanceof Error ? error.message : String(error)
    await this.close().catch(() => undefined)
    this.#options.send({ type: 'failed', source: this.source, kind: error instanceof DriverFault ? error.kind : 'other', message })
    this.#options.onGone()
  }
}

/** Steps of a recording may hold NaN, which JSON would turn into null. */
function written(samples: readonly Sample[]): readonly Sample[] {
  return samples.some(({ kind }) => kind === 'step') ? samples.map((one) => (one.kind === 'step' ? writtenStep(one) : one)) : samples
}
