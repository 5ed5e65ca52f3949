/** Reads one source on its clock, inside the sampler process. */
import { performance } from 'node:perf_hooks'
import type { Source } from '../kinds.ts'
import type { GpuInfo } from '../model.ts'
import { TickClock } from './clock.ts'
import type { FromSampler } from './messages.ts'

export interface RunnerOptions {
  readonly name: string
  readonly source: Source
  readonly intervalMs: number
  /** Monotonic; shared by the sources of a process, so that they tick together. */
  readonly originMs: number
  /** Whether to announce each read (see messages.ts). */
  readonly announce: boolean
  /** Resolves when the message is on its way; awaited only by sources that run faster than the clock. */
  readonly send: (message: FromSampler) => Promise<void>
  readonly onGone: () => void
}

const SHORTEST_POKE_MS = 100

export class SourceRunner {
  readonly name: string
  readonly #options: RunnerOptions
  readonly #clock: TickClock
  #devices: readonly GpuInfo[]
  #timer: NodeJS.Timeout | null = null
  #lastReadMs = Number.NEGATIVE_INFINITY
  #reading = false
  #closed = false

  constructor(options: RunnerOptions) {
    this.name = options.name
    this.#options = options
    this.#clock = new TickClock(options.intervalMs, performance.now(), options.originMs)
    this.#devices = options.source.devices()
    this.#schedule(0)
  }

  watch(pids: readonly number[]): void {
    const { source } = this.#options
    if (!source.watch) return
    source.watch(pids)
    this.#poke()
  }

  async close(): Promise<void> {
    this.#closed = true
    if (this.#timer) clearTimeout(this.#timer)
    await this.#options.source.close()
  }

  /** Reads sooner than the clock says, because somebody waits for the answer. */
  #poke(): void {
    if (this.#closed || this.#reading) return
    this.#schedule(Math.max(0, this.#lastReadMs + SHORTEST_POKE_MS - performance.now()))
  }

  #schedule(delayMs: number): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#tick(), delayMs)
  }

  async #tick(): Promise<void> {
    const { name, source, announce, send } = this.#options
    this.#reading = true
    try {
      if (announce) void send({ type: 'begin', source: name })
      const started = performance.now()
      this.#lastReadMs = started
      const at = Date.now()
      const answer = source.read({ at, monotonicMs: started, tick: this.#clock.tick })
      const samples = answer instanceof Promise ? await answer : answer
      if (this.#closed) return
      const devices = source.devices()
      if (devices !== this.#devices) {
        this.#devices = devices
        void send({ type: 'devices', source: name, devices })
      }
      const readMs = Math.round((performance.now() - started) * 1000) / 1000
      const sent = send({ type: 'tick', source: name, at, samples, skippedTicks: this.#clock.skipped, readMs })
      const paceMs = source.nextDelayMs?.() ?? null
      if (paceMs !== null) await sent
      if (this.#closed) return
      if (source.ended?.()) {
        await this.close()
        await send({ type: 'ended', source: name })
        this.#options.onGone()
        return
      }
      this.#schedule(paceMs ?? this.#clock.advance(performance.now()))
    } catch (error) {
      await this.#fail(error)
    } finally {
      this.#reading = false
    }
  }

  async #fail(error: unknown): Promise<void> {
    if (this.#closed) return
    const message = error instanceof Error ? error.message : String(error)
    await this.close().catch(() => undefined)
    await this.#options.send({ type: 'failed', source: this.name, message })
    this.#options.onGone()
  }
}
