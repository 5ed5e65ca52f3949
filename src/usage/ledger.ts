/**
 * Keeps what is counted on disk. Rows only grow and are written as they stand, so a kill at any moment neither loses more than the time
 * since the last save nor counts anything twice: see DayRows.
 */
import { join } from 'node:path'
import { logLane, STUCK_AT_END_MS } from '../core/disk-lane.ts'
import { FolderLock, HEARTBEAT_MS } from '../core/folder-lock.ts'
import { KeptFile } from '../core/kept-file.ts'
import type { Log } from '../core/kinds.ts'
import { makeFolder } from '../core/make-folder.ts'
import { MISTRUST_MS } from '../core/wall-clock.ts'
import { Book, type OpenRow } from './book.ts'
import { appendRows, compressDays, DayRows, listDays, type Retention, readDay, sweepDays } from './day-files.ts'
import { encodeOpen, OPEN_FILE, readOpen } from './open-file.ts'
import { HOUR_MS, type UsageRow } from './row.ts'
import { Totals, type UserTotals } from './totals.ts'

/** A save is a dozen disk calls: early after a start, then once a minute. */
const FIRST_SAVE_MS = 10_000
const SAVE_MS = 60_000
/** An hour is closed this long after its end: samples of other GPUs still come. */
const CLOSE_AFTER_MS = 60_000
/** While the disk cannot be written. */
const MOST_WAITING_ROWS = 50_000

export interface LedgerOptions {
  /** null: nothing is kept. */
  readonly dir: string | null
  readonly log: Log
  readonly now: () => number
  readonly sinceJumpMs?: () => number
  readonly retention: Retention
  /** Puts what is only counted aside into rows. */
  readonly settle: () => void
  readonly longestGapMs: number
  readonly saveMs?: number
}

export class Ledger {
  readonly book = new Book()
  readonly #options: LedgerOptions
  readonly #file: KeptFile | null
  readonly #lock: FolderLock | null
  #timer: NodeJS.Timeout | null = null
  /** Of everything in the files of days. */
  #totals = new Totals()
  #published: readonly UserTotals[] = []
  /** Of hours that are over and not in a day's file. */
  #closed: OpenRow[] = []
  #saving: Promise<void> | null = null
  #isLoaded = false
  #fault: string | null = null
  #beatMs = Number.NEGATIVE_INFINITY
  #sweptMs = Number.NEGATIVE_INFINITY
  #isClosed = false
  /** Another agent counts in this folder. */
  #isOthers = false
  /** What an earlier agent left is read, or cannot be. */
  readonly opened: Promise<void>

  constructor(options: LedgerOptions) {
    this.#options = options
    const { dir, saveMs = SAVE_MS } = options
    this.#file = dir === null ? null : new KeptFile(join(dir, OPEN_FILE), { mode: 0o640, folderMode: 0o750, flush: true })
    this.#lock = dir === null ? null : new FolderLock(join(dir, 'usage.lock'), 0o640)
    this.#isLoaded = dir === null
    if (saveMs > 0) this.#saveLater(Math.min(FIRST_SAVE_MS, saveMs), saveMs)
    this.opened = this.save()
  }

  /** Why nothing is kept now; null when it is. */
  get fault(): string | null {
    return this.#fault ?? logLane.stuck()?.message ?? null
  }

  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** As they are on disk, so that a restart never shows less. */
  totals(): readonly UserTotals[] {
    if (this.#file !== null) return this.#published
    const totals = new Totals()
    totals.add(this.#ownRows())
    return totals.list()
  }

  /** One save at a time: a disk that does not answer holds one. */
  save(): Promise<void> {
    this.#saving ??= this.#save()
      .then(
        () => this.#note(null),
        (error: unknown) => this.#note((error as Error).message),
      )
      .finally(() => {
        this.#saving = null
      })
    return this.#saving
  }

  /** Saves everything counted before the call. */
  #saveLater(ms: number, mostMs: number): void {
    this.#timer = setTimeout(() => {
      void this.save()
      this.#saveLater(Math.min(2 * ms, mostMs), mostMs)
    }, ms).unref()
  }

  async flush(): Promise<void> {
    await this.#saving
    await this.save()
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#timer) clearTimeout(this.#timer)
    const finish = async () => {
      this.#options.settle()
      await this.flush()
      if (this.#lock?.held) await this.#lock.release()
    }
    await logLane.patiently(finish, STUCK_AT_END_MS).catch(() => undefined)
  }

  /** Every row of the span, a day at a time. */
  async *rows(from: number, to: number): AsyncGenerator<Iterable<UsageRow>> {
    await this.opened
    yield* readRows(this.#options.dir, this.#isOthers ? null : this.#ownRows(), from, to)
  }

  #ownRows(): OpenRow[] {
    return [...this.#closed, ...[...this.book.hours.values()].flatMap(({ rows }) => [...rows.values()])]
  }

  #note(fault: string | null): void {
    if (fault !== null && this.#fault !== fault) this.#options.log.warn({ reason: fault }, `usage is counted in memory only: ${fault}`)
    if (fault === null && this.#fault !== null) this.#options.log.info({}, 'usage is kept on disk again')
    this.#fault = fault
  }

  async #save(): Promise<void> {
    const { now, dir, longestGapMs } = this.#options
    this.#closed.push(...this.book.takeBefore(now() - HOUR_MS - CLOSE_AFTER_MS - longestGapMs).flatMap(({ rows }) => [...rows.values()]))
    if (this.#closed.length > MOST_WAITING_ROWS) this.#closed.splice(0, this.#closed.length - MOST_WAITING_ROWS)
    if (dir === null || this.#file === null) return
    await this.#enter(dir)
    if (!this.#isLoaded) await this.#load(dir)
    const over = this.#closed.slice()
    if (over.length > 0) {
      await appendRows(dir, over)
      this.#totals.add(over)
      this.#closed = this.#closed.filter((row) => !over.includes(row))
    }
    let written: readonly UserTotals[] = []
    await this.#file.save(() => {
      const rows = this.#ownRows()
      const all = new Totals(this.#totals.saved())
      all.add(rows)
      written = all.list()
      return encodeOpen({ totals: this.#totals.saved(), unsaved: [...this.book.unsaved], rows })
    })
    this.#published = written
    await this.#sweep(dir)
  }

  /** Two agents would count the same use twice, so only one of a folder does. */
  async #enter(dir: string): Promise<void> {
    const lock = this.#lock
    if (!lock) return
    const ms = performance.now()
    if (lock.held && ms - this.#beatMs < HEARTBEAT_MS) return
    this.#beatMs = ms
    if (lock.held && (await lock.heartbeat())) return
    await makeFolder(dir, 0o750)
    const outcome = await lock.acquire()
    this.#isOthers = !outcome.held
    if (!outcome.held) throw new Error(`${outcome.owner} counts the use of the GPUs in ${dir}`)
  }

  /** What an agent before this one had not put into a day's file comes first. */
  async #load(dir: string): Promise<void> {
    const found = await readOpen(join(dir, OPEN_FILE))
    if (found) {
      this.#totals = new Totals(found.totals)
      this.#closed.unshift(...found.rows)
      this.book.restore(found.unsaved, found.rows)
    } else for await (const rows of readRows(dir, [], 0, Number.MAX_SAFE_INTEGER)) this.#totals.add(rows)
    this.#isLoaded = true
  }

  async #sweep(dir: string): Promise<void> {
    const { now, retention, sinceJumpMs } = this.#options
    const ms = performance.now()
    if (ms - this.#sweptMs < HOUR_MS / 2 || (sinceJumpMs?.() ?? MISTRUST_MS) < MISTRUST_MS) return
    this.#sweptMs = ms
    await compressDays(dir, now())
    await sweepDays(dir, retention)
  }
}

/** `own`: rows that count besides the files of days; null: those of the agent that writes there. */
export async function* readRows(
  dir: string | null,
  own: readonly UsageRow[] | null,
  from: number,
  to: number,
): AsyncGenerator<Iterable<UsageRow>> {
  const files = dir === null ? [] : await listDays(dir)
  const open = own ?? (dir === null ? [] : ((await readOpen(join(dir, OPEN_FILE)))?.rows ?? []))
  const isIn = ({ hour }: UsageRow) => hour + HOUR_MS > from && hour < to
  const days = new Set([...files.map(({ day }) => day), ...open.map(({ hour }) => new Date(hour).toISOString().slice(0, 10))])
  for (const day of [...days].sort()) {
    const start = Date.parse(day)
    if (start + 24 * HOUR_MS <= from || start >= to) continue
    const rows = new DayRows()
    if (dir !== null)
      await readDay(
        dir,
        files.filter((file) => file.day === day),
        rows,
      )
    for (const row of open) if (new Date(row.hour).toISOString().startsWith(day)) rows.add({ ...row })
    yield [...rows.values()].filter(isIn)
  }
}
