/** Makes a record of every ten seconds of each GPU and of the host, and writes it as soon as they are over. */
import { join } from 'node:path'
import { logLane, STUCK_AT_END_MS } from '../../core/disk-lane.ts'
import type { Dropped, HubEvent, Log, Sink } from '../../core/kinds.ts'
import { explainFault } from '../disk-state.ts'
import { MinuteTotals } from '../minute-ring.ts'
import { journalLine } from './journal-line.ts'
import { JournalWriter } from './journal-writer.ts'
import { columnValues, hostDevice, MOST_SERIES, seriesOf } from './series.ts'
import { FINEST, FOLDER } from './tier-table.ts'

/** Readings that belong to the last ten seconds may still be on their way. */
const LATE_MS = 150
/** What Date can express. */
const LARGEST_TIME = 8.64e15

export interface RecorderOptions {
  readonly logDir: string
  readonly log: Log
  readonly now: () => number
  /** Whether the files of this folder are ours to keep; null: not known yet. */
  readonly inCharge: () => boolean | null
}

export interface RecorderHealth {
  readonly state: 'ok' | 'degraded'
  readonly reason: string | null
  readonly pendingLines: number
  readonly dropped: number
}

export class TierRecorder implements Required<Sink> {
  readonly name = 'tiers'
  readonly #options: RecorderOptions
  readonly #journal: JournalWriter
  readonly #open = new Map<string, MinuteTotals>()
  readonly #values = new Float64Array(MOST_SERIES)
  #hostDevice = hostDevice('live')
  #timer: NodeJS.Timeout | null = null
  #startedAt: number | null = null
  #writing: Promise<void> = Promise.resolve()
  #fault: string | null = null
  #isClosed = false

  constructor(options: RecorderOptions) {
    this.#options = options
    this.#journal = new JournalWriter(join(options.logDir, FOLDER))
  }

  accept(event: HubEvent): void {
    if (event.type !== 'tick' || this.#isClosed) return
    const { gpus, host, provenance } = event.tick
    for (const sample of gpus) this.#take(sample.gpu, sample)
    if (host) {
      this.#hostDevice = hostDevice(provenance)
      this.#take(this.#hostDevice, host)
    }
    if (!this.#timer && this.#open.size > 0) this.#wakeAtEnd()
  }

  /** Under which name the readings of the host are kept now. */
  get hostDevice(): string {
    return this.#hostDevice
  }

  dropped(): Dropped {
    const count = this.#journal.dropped
    return { count, reason: count === 0 ? null : (this.#fault ?? 'the disk was slower than the records') }
  }

  health(): RecorderHealth {
    const stuck = logLane.stuck()
    const reason = stuck && this.#journal.pendingLines > 0 ? stuck.message : this.#fault
    return {
      state: reason === null ? 'ok' : 'degraded',
      reason,
      pendingLines: this.#journal.pendingLines,
      dropped: this.#journal.dropped,
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#timer) clearTimeout(this.#timer)
    for (const [device, totals] of this.#open) this.#end(device, totals)
    const finish = async () => {
      await this.#write()
      await this.#journal.close()
    }
    await logLane.patiently(finish, STUCK_AT_END_MS).catch((error: unknown) => this.#failed(error as Error))
  }

  #take(device: string, sample: { readonly at: number }): void {
    const { at } = sample
    if (!(Math.abs(at) <= LARGEST_TIME)) return
    this.#startedAt ??= at
    const step = Math.floor(at / FINEST.stepMs)
    const table = seriesOf(device)
    let totals = this.#open.get(device)
    if (totals?.minute !== step) {
      if (totals) this.#end(device, totals)
      totals = new MinuteTotals(step, table.all.length)
      this.#open.set(device, totals)
    }
    columnValues(table, sample, this.#values)
    totals.add(this.#values.subarray(0, table.all.length))
  }

  #end(device: string, totals: MinuteTotals): void {
    this.#open.delete(device)
    const at = totals.minute * FINEST.stepMs
    const line = journalLine(device, at, totals)
    if (line !== null) this.#journal.push(line, at)
  }

  #wakeAtEnd(): void {
    const sinceMs = this.#options.now() % FINEST.stepMs
    this.#timer = setTimeout(() => this.#endAll(), FINEST.stepMs - sinceMs + LATE_MS).unref()
  }

  /** Also what the clock has left behind by being set: a second record of the same ten seconds is added to the first. */
  #endAll(): void {
    this.#timer = null
    const current = Math.floor(this.#options.now() / FINEST.stepMs)
    for (const [device, totals] of this.#open) if (totals.minute !== current) this.#end(device, totals)
    void this.#write()
    if (this.#open.size > 0) this.#wakeAtEnd()
  }

  #write(): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      const inCharge = this.#options.inCharge()
      if (inCharge === false) return this.#journal.forget()
      if (inCharge === null || this.#startedAt === null) return
      try {
        await this.#journal.write(this.#startedAt)
        if (this.#fault !== null) this.#options.log.info({}, 'the history is being written again')
        this.#fault = null
      } catch (error) {
        this.#failed(error as Error)
      }
    })
    return this.#writing
  }

  /** Tried again with the next record. */
  #failed(error: Error): void {
    const reason = explainFault(error, join(this.#options.logDir, FOLDER))
    if (reason !== this.#fault) this.#options.log.warn({ err: error }, `the history cannot be written: ${reason}; records wait in memory`)
    this.#fault = reason
  }
}
