/** The agent's end of one sampler process: starts it, listens, notices when it hangs or dies, and never waits for it. */

import { type ChildProcess, fork } from 'node:child_process'
import { performance } from 'node:perf_hooks'
import type { PlaybackCommand } from '../core/playback.ts'
import type { RunProcessRef } from '../core/source-contract.ts'
import type { FromSampler, StartMessage, ToSampler } from './messages.ts'

export interface SamplerFailure {
  readonly kind: 'not_responding' | 'crashed'
  /** The source that was being read when it happened. */
  readonly culprit: string
  /** It was being opened. */
  readonly wasOpening: boolean
  readonly since: number
  readonly detail: string
}

/** A driver that takes its time to start: no failure yet. */
export interface SlowStart {
  readonly source: string
  readonly silenceMs: number
  /** Others have waited for it long enough. */
  readonly isTooSlow: boolean
}

export interface SamplerProcessOptions {
  readonly entry: URL
  readonly start: StartMessage
  readonly env: NodeJS.ProcessEnv
  /** A read that takes longer is a hang. */
  readonly deadlineMs: number
  /** Opening a driver may take longer than reading it: cold cards need seconds. */
  readonly openDeadlineMs: number
  /** A driver that takes longer to start is too slow for others to wait for; absent: they wait until it fails. */
  readonly slowStartMs?: number | undefined
  readonly onMessage: (message: FromSampler, sampler: SamplerProcess) => void
  readonly onFailure: (failure: SamplerFailure, sampler: SamplerProcess) => void
  /** Twice at most for each source: when it becomes noticeable, and when it is too slow. */
  readonly onSlowStart?: (slow: SlowStart, sampler: SamplerProcess) => void
  /** The process is really gone; after a SIGKILL that may take as long as the driver call does. */
  readonly onExit: (sampler: SamplerProcess) => void
}

/** Node's compiler threads and generous heap are wasted on a process that makes a few calls a second. */
const CHILD_FLAGS = ['--max-old-space-size=96', '--max-semi-space-size=1', '--v8-pool-size=1']
/** The optimizing compilers take 8 MB; at 10 Hz they save a quarter of the sampler's time, at 1 Hz nothing. */
const UNOPTIMISED = ['--no-opt', '--no-maglev']
const CALM_INTERVAL_MS = 500
const STOP_MS = 1000
/** A start that takes longer is worth a word. */
const NOTICED_MS = 3000
const MOST_QUOTED = 2000

export class SamplerProcess {
  readonly sources: string[] = []
  readonly #options: SamplerProcessOptions
  readonly #child: ChildProcess
  #watchdog: NodeJS.Timeout | undefined
  #opening = new Set<string>()
  #begun: string | null = null
  #heardMs = performance.now()
  /** The source whose slow start was reported, and for how long it had been silent. */
  #slow: { readonly source: string; readonly silenceMs: number } | null = null
  #over = false

  constructor(options: SamplerProcessOptions) {
    this.#options = options
    this.#child = fork(options.entry, [], {
      env: options.env,
      execArgv: isCalm(options.start) ? [...CHILD_FLAGS, ...UNOPTIMISED] : CHILD_FLAGS,
      serialization: 'json',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    // What a driver's library prints belongs in the log, not on a screen that somebody draws on.
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => this.#quote(text))
    this.#child.on('message', (message: FromSampler) => this.#hear(message))
    this.#child.on('error', (error) => this.#fail('crashed', `the sampler process could not be started: ${error.message}`))
    this.#child.on('exit', (code, signal) => {
      this.#fail('crashed', signal ? `the sampler process was ended by ${signal}` : `the sampler process exited with code ${code}`)
      options.onExit(this)
    })
    this.#send(options.start)
    this.#watch()
  }

  get pid(): number | null {
    return this.#child.pid ?? null
  }

  open(source: string): void {
    this.sources.push(source)
    this.#opening.add(source)
    this.#send({ type: 'open', source })
  }

  close(source: string): void {
    this.#send({ type: 'close', source })
  }

  forget(source: string): void {
    const at = this.sources.indexOf(source)
    if (at >= 0) this.sources.splice(at, 1)
  }

  watch(pids: readonly number[], runs: readonly RunProcessRef[] = []): void {
    this.#send({ type: 'watch', pids, runs })
  }

  steer(source: string, command: PlaybackCommand): void {
    this.#send({ type: 'playback', source, command })
  }

  pace(intervalMs: number): void {
    this.#send({ type: 'pace', intervalMs })
  }

  /** Ends the process: politely, then not. Resolves when it is gone or was killed. */
  async stop(): Promise<void> {
    if (this.#over) return
    this.#end()
    const timers: NodeJS.Timeout[] = []
    const gone = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()))
    // Held until then: a killed child no longer keeps this process alive, and it has more to do than to wait for it.
    const late = new Promise<void>((resolve) => timers.push(setTimeout(resolve, STOP_MS + 200)))
    this.#send({ type: 'stop' })
    timers.push(setTimeout(() => this.kill(), STOP_MS))
    await Promise.race([gone, late])
    for (const timer of timers) clearTimeout(timer)
  }

  kill(): void {
    this.#end()
    this.#child.kill('SIGKILL')
    // A process in an uninterruptible driver call dies only when the call returns; nobody waits for that.
    if (this.#child.connected) this.#child.disconnect()
    this.#child.unref()
  }

  #end(): void {
    this.#over = true
    clearTimeout(this.#watchdog)
  }

  #send(message: ToSampler): void {
    if (this.#child.connected) this.#child.send(message, () => undefined)
  }

  #hear(message: FromSampler): void {
    if (this.#over) return
    this.#heardMs = performance.now()
    if (message.type === 'begin') {
      this.#begun = message.source
      return
    }
    if ('source' in message && message.type !== 'log' && message.type !== 'devices') {
      if (message.source === this.#begun) this.#begun = null
      this.#opening.delete(message.source)
      if (message.type === 'tick' && message.next !== undefined) this.#begun = message.next
    }
    this.#options.onMessage(message, this)
  }

  #quote(text: string): void {
    const message = text.trim().slice(0, MOST_QUOTED)
    if (message !== '')
      this.#options.onMessage({ type: 'log', level: 'warn', source: this.sources[0] ?? 'sampler', message, detail: {} }, this)
  }

  /** Looks again when the silence may have become too long, which costs fewer wake-ups than to look all the time. */
  #watch(): void {
    const silenceMs = performance.now() - this.#heardMs
    const waitMs = Math.min(
      this.#limitMs() - silenceMs,
      (this.#nextSlowMs() ?? Number.POSITIVE_INFINITY) - silenceMs,
      this.#options.deadlineMs,
    )
    const dueMs = performance.now() + waitMs
    // Not before the pipe was read: what the sampler said may be waiting there.
    this.#watchdog = setTimeout(() => setImmediate(() => this.#check(dueMs)), Math.ceil(waitMs)).unref()
  }

  #check(dueMs: number): void {
    if (this.#over) return
    const now = performance.now()
    const { deadlineMs } = this.#options
    // Who held this process up may have held up the sampler too.
    if (now - dueMs > deadlineMs / 2) this.#heardMs = Math.max(this.#heardMs, now - deadlineMs / 2)
    const silenceMs = now - this.#heardMs
    this.#reportSlow(silenceMs)
    if (silenceMs < this.#limitMs()) this.#watch()
    else this.#fail('not_responding', `no answer for ${Math.round(silenceMs / 100) / 10} s`)
  }

  /** The silence after which the start of the source at hand is reported next; null: it is not being opened, or all is said. */
  #nextSlowMs(): number | null {
    if (this.#begun === null || !this.#opening.has(this.#begun)) return null
    const saidMs = this.#slow?.source === this.#begun ? this.#slow.silenceMs : 0
    return [NOTICED_MS, this.#options.slowStartMs ?? 0].find((ms) => ms > saidMs) ?? null
  }

  #reportSlow(silenceMs: number): void {
    const dueMs = this.#nextSlowMs()
    if (this.#begun === null || dueMs === null || silenceMs < dueMs || silenceMs >= this.#limitMs()) return
    const { slowStartMs = Number.POSITIVE_INFINITY } = this.#options
    this.#slow = { source: this.#begun, silenceMs }
    this.#options.onSlowStart?.({ ...this.#slow, isTooSlow: silenceMs >= slowStartMs }, this)
  }

  /** A source that is being read has its own deadline, whoever else is still to be opened. */
  #limitMs(): number {
    const { deadlineMs, openDeadlineMs } = this.#options
    const isOpening = this.#begun === null ? this.#opening.size > 0 : this.#opening.has(this.#begun)
    return isOpening ? Math.max(openDeadlineMs, deadlineMs) : deadlineMs
  }

  #fail(kind: SamplerFailure['kind'], detail: string): void {
    if (this.#over) return
    const culprit = this.#begun ?? [...this.#opening][0] ?? this.sources[0] ?? 'sampler'
    const wasOpening = this.#opening.has(culprit)
    this.kill()
    this.#options.onFailure(
      { kind, culprit, wasOpening, since: Date.now() - (kind === 'crashed' ? 0 : Math.round(performance.now() - this.#heardMs)), detail },
      this,
    )
  }
}

/** A recording may be read as fast as it can be. */
function isCalm({ intervalMs, options }: StartMessage): boolean {
  return intervalMs >= CALM_INTERVAL_MS && options.replayPath === undefined
}

/** A crash may come from the driver or from whoever ended the process: its signal says which. */
export function failureInWords({ kind, culprit, wasOpening, detail }: SamplerFailure): string {
  if (kind === 'not_responding')
    return wasOpening
      ? `the ${culprit} driver is not responding while it starts: ${detail} (a slow start is no fault: open_deadline allows more)`
      : `the ${culprit} driver is not responding: ${detail}`
  return wasOpening ? `the ${culprit} driver crashed while it started: ${detail}` : `the ${culprit} source crashed: ${detail}`
}
