/** The hours that are being counted: rows in memory, bounded. */
import { randomBytes } from 'node:crypto'
import { BoundedMap } from '../core/bounded-map.ts'
import { keyText, type RowKey, type UsageRow, zeroSums } from './row.ts'

/** Beyond it, jobs and runs are no longer told apart, then users. */
const MOST_ROWS = 4096
const OTHERS = 'others'
const MOST_RUNS = 500

export interface OpenRow extends UsageRow {
  /** GPU time of its run that a checkpoint saved, or that is counted as lost. */
  settledSeconds: number
}

export interface Card {
  readonly id: string
  readonly label: string
  readonly name: string | null
  readonly simulated: boolean
}

export class Hour {
  readonly start: number
  readonly part = randomBytes(4).toString('hex')
  readonly rows = new Map<string, OpenRow>()

  constructor(start: number) {
    this.start = start
  }
}

/** GPU time of a run in hours that are closed, and not saved by a checkpoint. */
export interface Unsaved extends RowKey {
  readonly label: string
  readonly card: string | null
  readonly simulated: boolean
  seconds: number
}

export class Book {
  readonly hours = new Map<number, Hour>()
  /** By run. */
  readonly unsaved = new BoundedMap<string, Unsaved[]>(MOST_RUNS)
  /** Changes whenever an hour is taken out, so that nobody adds to a row that is gone. */
  generation = 0

  row(start: number, card: Card, user: string, job: string | null, run: string | null, runName: string | null): OpenRow {
    let hour = this.hours.get(start)
    if (!hour) {
      hour = new Hour(start)
      this.hours.set(start, hour)
    }
    const key = { gpu: card.id, user, job, run }
    const known = hour.rows.get(keyText(key))
    if (known) {
      known.runName = runName ?? known.runName
      return known
    }
    if (hour.rows.size >= MOST_ROWS && user !== OTHERS) {
      const isPlain = job === null && run === null
      const plain = hour.rows.get(keyText({ ...key, job: null, run: null }))
      return plain && !isPlain ? plain : this.row(start, card, OTHERS, null, null, null)
    }
    const { part } = hour
    const row: OpenRow = {
      ...{ hour: start, part, ...key, runName, simulated: card.simulated, label: card.label, card: card.name, settledSeconds: 0 },
      ...zeroSums(),
    }
    hour.rows.set(keyText(key), row)
    return row
  }

  /** Takes out the hours that ended before `at`; what their runs may still lose is kept. */
  takeBefore(at: number): Hour[] {
    const taken = [...this.hours.values()].filter(({ start }) => start < at)
    for (const { start, rows } of taken) {
      this.hours.delete(start)
      for (const row of rows.values()) if (row.run !== null) this.#keepUnsaved(row.run, row)
    }
    if (taken.length > 0) this.generation++
    return taken
  }

  /** What an agent before this one knew of runs that go on. */
  restore(unsaved: readonly (readonly [run: string, rows: readonly Unsaved[]])[], rows: readonly OpenRow[]): void {
    for (const [run, own] of unsaved) this.unsaved.set(run, [...own])
    for (const row of rows) if (row.run !== null) this.#keepUnsaved(row.run, row)
  }

  /** Everything so far of the run is safe. */
  settle(run: string): void {
    this.unsaved.delete(run)
    for (const row of this.#rowsOf(run)) row.settledSeconds = row.gpuSeconds
  }

  /** The run is lost since its last checkpoint. */
  lose(run: string, at: number, why: 'lostOomSeconds' | 'lostDeadSeconds'): void {
    const lost: Unsaved[] = [...(this.unsaved.get(run) ?? [])]
    for (const row of this.#rowsOf(run)) lost.push({ ...row, seconds: row.gpuSeconds - row.settledSeconds })
    for (const { gpu, label, card: name, simulated, user, job, seconds } of lost)
      if (seconds > 0) this.row(at, { id: gpu, label, name, simulated }, user, job, run, null)[why] += seconds
    this.settle(run)
  }

  #rowsOf(run: string): OpenRow[] {
    return [...this.hours.values()].flatMap(({ rows }) => [...rows.values()].filter((row) => row.run === run))
  }

  #keepUnsaved(run: string, row: OpenRow): void {
    const seconds = row.gpuSeconds - row.settledSeconds
    if (seconds <= 0) return
    const known = this.unsaved.get(run) ?? this.unsaved.keep(run, [])
    const same = known.find(({ gpu, user, job }) => gpu === row.gpu && user === row.user && job === row.job)
    if (same) same.seconds += seconds
    else {
      const { gpu, user, job, label, card, simulated } = row
      known.push({ gpu, user, job, run, label, card, simulated, seconds })
    }
  }
}
