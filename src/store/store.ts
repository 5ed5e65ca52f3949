import { resolve } from 'node:path'
import { DiskStuck, logLane, STUCK_AT_END_MS } from '../core/disk-lane.ts'
import { HEARTBEAT_MS } from '../core/folder-lock.ts'
import type { Dropped, HubEvent, Log, Sink } from '../core/kinds.ts'
import { DiskState } from './disk-state.ts'
import { Folder } from './folder.ts'
import { Intake } from './intake.ts'
import { gapRecord } from './lines.ts'
import type { LogFile } from './log-file.ts'
import { Outbox, type OutboxTotals } from './outbox.ts'
import type { StoreValues } from './settings.ts'
import type { LogStream } from './stream.ts'

const MEBIBYTE = 1024 * 1024

export interface StoreOptions {
  readonly dir: string
  readonly settings: Omit<StoreValues, 'log.enabled' | 'log.dir' | Extract<keyof StoreValues, `history.${string}`>>
  readonly log: Log
  readonly now: () => number
  /** Milliseconds of a clock that only goes forward. */
  readonly monotonicMs?: () => number
  /** Since the clock of `now` was set; never, where it is not given. */
  readonly sinceJumpMs?: () => number
  readonly runId: string
  readonly timing?: Partial<StoreTiming>
}

export interface StoreTiming {
  readonly retryFirstMs: number
  readonly retryMaxMs: number
  readonly closeMs: number
}

const TIMING: StoreTiming = { retryFirstMs: 1000, retryMaxMs: 30_000, closeMs: 5000 }

export interface StoreHealth extends OutboxTotals {
  readonly state: 'ok' | 'degraded'
  readonly since: number
  /** What is wrong and what to do; null when ok. */
  readonly reason: string | null
  readonly currentFiles: readonly string[]
  readonly gaps: number
  readonly dropped: number
  /** False: another gpuwarden writes in this folder too, see folder.ts. */
  readonly soleWriter: boolean
}

export interface Store extends Required<Sink> {
  health(): StoreHealth
  /** Tries to write all that was accepted before the call. */
  flush(): Promise<void>
  /** Whether this process looks after the folder; null: not known before the first write. */
  inCharge(): boolean | null
}

/** Writes what the hub publishes to JSONL files: batched, rotated, compressed, and never in the way of the next sample. */
export function createStore(options: StoreOptions): Store {
  return new JsonlStore(options)
}

class JsonlStore implements Store {
  readonly name = 'store'
  readonly #options: StoreOptions
  readonly #timing: StoreTiming
  readonly #outbox: Outbox
  readonly #intake: Intake
  readonly #disk: DiskState
  readonly #folder: Folder
  readonly #heartbeat: NodeJS.Timeout
  #timer: NodeJS.Timeout | null = null
  #retryMs: number
  #pass: Promise<void> | null = null
  #nextPass: Promise<void> | null = null
  #closing: Promise<void> | null = null

  constructor(options: StoreOptions) {
    const { settings, log, now } = options
    const dir = resolve(options.dir)
    this.#options = options
    this.#timing = { ...TIMING, ...options.timing }
    this.#retryMs = this.#timing.retryFirstMs
    this.#intake = new Intake((stream, record, at) => this.#outbox.push(stream, record, at), now)
    this.#disk = new DiskState(dir, log, now)
    this.#folder = new Folder(
      {
        dir,
        compress: settings['log.compress'],
        keepDays: settings['log.keep_days'],
        keepTotalBytes: settings['log.keep_total_mb'] * MEBIBYTE,
        log,
        now,
        monotonicMs: options.monotonicMs ?? (() => performance.now()),
        sinceJumpMs: options.sinceJumpMs ?? (() => Number.POSITIVE_INFINITY),
        active: () => this.#outbox.currentFiles(),
      },
      options.runId,
    )
    const rules = {
      dir,
      rotateBytes: settings['log.rotate_mb'] * MEBIBYTE,
      rotateMs: settings['log.rotate_hours'] * 3_600_000,
      now,
      namePid: () => (this.#folder.shared ? process.pid : null),
      closed: (stream: LogStream, name: string) => this.#fileClosed(stream, name),
      removed: (stream: LogStream, file: LogFile) => this.#fileRemoved(stream, file),
    }
    this.#outbox = new Outbox(rules, settings['log.buffer_mb'] * MEBIBYTE, (at) => this.#disk.lineDropped(at))
    this.#heartbeat = setInterval(() => void this.#passSoon(), HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  accept(event: HubEvent): void {
    if (this.#closing) return
    this.#intake.accept(event)
    this.#noticeStuckDisk()
    if (this.#disk.reason === null && this.#intake.gpuTicks >= this.#options.settings['log.batch_samples']) {
      this.#intake.resetGpuTicks()
      void this.#passSoon()
    } else if (!this.#timer && (this.#intake.isWaiting || !this.#outbox.isEmpty()))
      this.#startTimer(this.#options.settings['log.batch_seconds'] * 1000)
  }

  dropped(): Dropped {
    return { count: this.#disk.dropped, reason: this.#disk.lastLoss }
  }

  health(): StoreHealth {
    this.#noticeStuckDisk()
    this.#intake.settle()
    return {
      state: this.#disk.reason === null ? 'ok' : 'degraded',
      since: this.#disk.since,
      reason: this.#disk.reason,
      ...this.#outbox.totals(),
      currentFiles: this.#outbox.currentFiles(),
      gaps: this.#disk.gapCount,
      dropped: this.#disk.dropped,
      soleWriter: !this.#folder.shared,
    }
  }

  inCharge(): boolean | null {
    return this.#folder.shared ? false : this.#folder.held ? true : null
  }

  async flush(): Promise<void> {
    try {
      await logLane.patiently(() => this.#passSoon())
    } catch (error) {
      if (!(error instanceof DiskStuck)) throw error
      this.#noticeStuckDisk()
    }
  }

  /** Passes follow each other, and at most one waits. */
  #passSoon(): Promise<void> {
    this.#nextPass ??= (this.#pass ?? Promise.resolve()).then(() => {
      this.#nextPass = null
      this.#pass = this.#writeAll().finally(() => {
        this.#pass = null
      })
      return this.#pass
    })
    return this.#nextPass
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  #startTimer(delayMs: number): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = this.#closing ? null : setTimeout(() => void this.#passSoon(), delayMs).unref()
  }

  #noticeStuckDisk(): void {
    if (logLane.stuck()) this.#disk.stuckFor(logLane.waitedMs())
  }

  async #writeAll(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = null
    this.#intake.resetGpuTicks()
    this.#intake.settle()
    const fault = await this.#tryToWriteAll()
    if (fault) {
      this.#disk.failed(fault)
      this.#startTimer(this.#retryMs)
      this.#retryMs = Math.min(this.#retryMs * 2, this.#timing.retryMaxMs)
      return
    }
    this.#disk.succeeded()
    this.#retryMs = this.#timing.retryFirstMs
    this.#folder.sweepWhenDue()
  }

  async #tryToWriteAll(): Promise<Error | null> {
    if (this.#outbox.isEmpty() && this.#outbox.currentFiles().length === 0) return null
    try {
      await this.#folder.enter()
      let fault = await this.#outbox.drain()
      const gap = fault ? null : this.#disk.takeGap()
      if (gap) {
        const at = this.#options.now()
        this.#outbox.push('gpu_events', gapRecord(gap, at), at)
        fault = await this.#outbox.drain()
      }
      await this.#folder.describe()
      return fault
    } catch (error) {
      return error as Error
    }
  }

  #fileClosed(stream: LogStream, name: string): void {
    if (this.#closing) return
    this.#folder.fileClosed(name)
    this.#restateDevices(stream)
  }

  #fileRemoved(stream: LogStream, file: LogFile): void {
    const { lines, from, to } = file.content
    const reason = `${file.name} was removed while it was being written`
    this.#options.log.warn({ file: file.name, lines }, `${reason}: a new file was started`)
    if (from !== null && to !== null) this.#disk.lost(from, to, lines, reason)
    this.#folder.fileRemoved()
    this.#restateDevices(stream)
  }

  /** A file of samples is read with the devices written next to it, so the devices are repeated for each. */
  #restateDevices(stream: LogStream): void {
    if (stream.name !== 'gpu_metrics' && stream.name !== 'gpu_devices') return
    this.#outbox.discard('gpu_devices')
    this.#intake.restateDevices()
  }

  async #close(): Promise<void> {
    clearInterval(this.#heartbeat)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), this.#timing.closeMs)
    })
    const outcome = await Promise.race([logLane.patiently(() => this.#finish(), STUCK_AT_END_MS).catch(givenUp), late])
    clearTimeout(timer)
    if (this.#timer) clearTimeout(this.#timer)
    const { pendingLines, reason } = this.health()
    const lost = pendingLines + (this.#disk.takeGap()?.dropped ?? 0)
    if (outcome === 'late' || lost > 0) {
      this.#options.log.error(
        { lost, reason },
        `the log was closed with ${lost} lines not written: ${reason ?? 'the disk did not answer in time'}`,
      )
    }
  }

  async #finish(): Promise<void> {
    try {
      await this.#passSoon()
      await this.#outbox.closeFiles()
      await this.#folder.leave()
    } catch (error) {
      this.#disk.failed(error as Error)
    }
  }
}

/** The waiting lines are lost; the caller says so. */
function givenUp(error: unknown): 'late' {
  if (error instanceof DiskStuck) return 'late'
  throw error
}
