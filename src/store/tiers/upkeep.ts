/** The agent's side of the upkeep: decides when there is something to do, has it done in a process of its own, and reports how far it is. */
import { type ChildProcess, fork } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { openDays } from './close-days.ts'
import { type RetentionRules, TierRetention } from './retention.ts'
import { readState } from './state.ts'
import { FOLDER, HOUR_MS } from './tier-table.ts'
import type { UpkeepNews, UpkeepOrder } from './upkeep-work.ts'

const LOOK_MS = 60_000
/** The last records of a day are written a moment after it. */
const DAY_IS_OVER_MS = 5 * LOOK_MS
const RETRY_FIRST_MS = 10 * LOOK_MS
const RETRY_LONGEST_MS = 6 * HOUR_MS
/** Without a word for so long it is ended, and tried again later. */
const SILENCE_MS = 15 * LOOK_MS
const HEAP_MB = 512

export interface UpkeepOptions extends RetentionRules {
  readonly entry: URL
  readonly inCharge: () => boolean | null
  readonly firstLookMs?: number
  readonly lookMs?: number
}

export interface UpkeepHealth {
  /** Logs from before records were kept. `share`: of their bytes. */
  readonly import: { readonly state: 'unknown' | 'waiting' | 'running' | 'done'; readonly share: number }
  /** The day that is being closed; null: none. */
  readonly closing: string | null
  /** What went wrong last; null: nothing. */
  readonly fault: string | null
  /** Files that could not be read, by name. */
  readonly damaged: readonly string[]
}

const MOST_NAMES = 20

export class Upkeep {
  readonly #options: UpkeepOptions
  readonly #retention: TierRetention
  readonly #damaged = new Set<string>()
  #timer: NodeJS.Timeout | null = null
  #child: ChildProcess | null = null
  #import: UpkeepHealth['import'] = { state: 'unknown', share: 0 }
  #closing: string | null = null
  #fault: string | null = null
  #retryMs = RETRY_FIRST_MS
  #notBeforeMs = Number.NEGATIVE_INFINITY
  #hasSwept = false
  #isClosed = false

  constructor(options: UpkeepOptions) {
    this.#options = options
    this.#retention = new TierRetention(options)
    this.#lookIn(options.firstLookMs ?? LOOK_MS / 2)
  }

  health(): UpkeepHealth {
    return { import: this.#import, closing: this.#closing, fault: this.#fault, damaged: [...this.#damaged] }
  }

  /** Reported once, then only counted. */
  noteDamage(path: string, error: Error): void {
    if (this.#damaged.has(path) || this.#damaged.size >= MOST_NAMES) return
    this.#damaged.add(path)
    this.#options.log.warn({ err: error, path }, `a file of the history cannot be read and is left out: ${path}: ${error.message}`)
  }

  close(): void {
    this.#isClosed = true
    if (this.#timer) clearTimeout(this.#timer)
    this.#child?.kill('SIGKILL')
  }

  #lookIn(ms: number): void {
    if (this.#isClosed) return
    this.#timer = setTimeout(() => {
      void this.#look()
        .catch((error: unknown) => {
          this.#fault = (error as Error).message
        })
        .finally(() => this.#lookIn(this.#options.lookMs ?? LOOK_MS))
    }, ms).unref()
  }

  async #look(): Promise<void> {
    if (this.#options.inCharge() !== true || this.#child) return
    if (this.#options.monotonicMs() >= this.#notBeforeMs && (await this.#isWorkDue())) {
      if (!this.#isClosed) this.#start()
      return
    }
    // Once, after each day that was closed, and as long as something has to go.
    if (!this.#hasSwept) this.#hasSwept = !(await this.#retention.sweep())
  }

  async #isWorkDue(): Promise<boolean> {
    const root = join(this.#options.logDir, FOLDER)
    if (this.#import.state !== 'done') {
      const state = await readState(root)
      if (state === null) return false
      if (state.imported !== null) {
        this.#import = { state: 'waiting', share: this.#import.share }
        return true
      }
      this.#import = { state: 'done', share: 1 }
    }
    const [oldest] = await openDays(root)
    return oldest !== undefined && oldest < this.#firstOpenDay()
  }

  /** By the clock: a record from the future closes nothing. */
  #firstOpenDay(): string {
    return new Date(this.#options.now() - DAY_IS_OVER_MS).toISOString().slice(0, 10)
  }

  #start(): void {
    const { entry, log, logDir, monotonicMs } = this.#options
    const child = fork(entry, [], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      execArgv: ['--v8-pool-size=1', `--max-old-space-size=${HEAP_MB}`],
    })
    this.#child = child
    let outcome = 'the process that looks after the history ended early'
    const watchdog = setTimeout(() => child.kill('SIGKILL'), SILENCE_MS).unref()
    child.on('message', (news: UpkeepNews) => {
      watchdog.refresh()
      if (news.type === 'import') this.#import = { state: 'running', share: news.totalBytes === 0 ? 1 : news.doneBytes / news.totalBytes }
      else if (news.type === 'day') this.#closing = news.day
      else if (news.type === 'failed') outcome = news.reason
      else {
        outcome = ''
        this.#import = { state: 'done', share: 1 }
        for (const fault of news.faults) this.noteDamage(fault.split(': ')[0] ?? fault, new Error(fault))
      }
    })
    child.on('error', (error) => {
      outcome = error.message
    })
    child.on('close', () => {
      clearTimeout(watchdog)
      this.#child = null
      this.#closing = null
      this.#hasSwept = false
      if (this.#isClosed) return
      if (outcome === '') {
        this.#fault = null
        this.#retryMs = RETRY_FIRST_MS
        return
      }
      if (this.#import.state === 'running') this.#import = { state: 'waiting', share: this.#import.share }
      if (outcome !== this.#fault) log.warn({}, `the history could not be looked after, and it will be tried again: ${outcome}`)
      this.#fault = outcome
      this.#notBeforeMs = monotonicMs() + this.#retryMs
      this.#retryMs = Math.min(2 * this.#retryMs, RETRY_LONGEST_MS)
    })
    lowerPriority(child.pid)
    const order: UpkeepOrder = { logDir, before: this.#firstOpenDay() }
    child.send(order)
  }
}

/** Everything else on the machine comes first. */
function lowerPriority(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_LOW)
  } catch {
    // It has ended already.
  }
}
