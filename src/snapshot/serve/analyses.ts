/** The analyses that are held in memory, each by a process: few at a time, and each only while somebody looks. */
import { AnalysisProcess, type AnalysisState, type Answer } from './analysis-process.ts'
import type { Question, SnapshotFile } from './messages.ts'

/** Each may take some hundred megabytes. */
const MOST_PROCESSES = 2
const IDLE_MS = 5 * 60_000
const MOST_FAULTS = 64
const FAULT_MS = 30_000

export interface AnalysesOptions {
  readonly entry: URL
  readonly idleMs?: number
  readonly most?: number
  readonly faultMs?: number
}

export class Analyses {
  readonly #options: AnalysesOptions
  readonly #running = new Map<string, AnalysisProcess>()
  /** Why a file could not be read: it is not read again for each question, only after a while. */
  readonly #faults = new Map<string, { readonly reason: string; readonly at: number }>()
  readonly #timer: NodeJS.Timeout
  #isClosed = false

  constructor(options: AnalysesOptions) {
    this.#options = options
    const idleMs = options.idleMs ?? IDLE_MS
    this.#timer = setInterval(() => this.#endIdle(idleMs), Math.min(idleMs, 30_000))
    this.#timer.unref()
  }

  /** Begins with it where it is not in memory; `busy`: others are being read. */
  open(id: string, file: SnapshotFile): AnalysisState | 'busy' {
    const known = this.#running.get(id)
    if (known) {
      known.usedAt = Date.now()
      return known.state
    }
    const fault = this.#faults.get(id)
    if (fault !== undefined && Date.now() - fault.at < (this.#options.faultMs ?? FAULT_MS)) return { kind: 'failed', reason: fault.reason }
    if (this.#isClosed || !this.#makeRoom()) return 'busy'
    const made = new AnalysisProcess({ entry: this.#options.entry, file, onEnd: () => this.#ended(id, made) })
    this.#running.set(id, made)
    return made.state
  }

  /** null: it is not ready. */
  ask(id: string, question: Question): Promise<Answer> | null {
    const running = this.#running.get(id)
    return running?.state.kind === 'ready' ? running.ask(question) : null
  }

  /** Forgets what is known of it; the next look reads it anew. */
  forget(id: string): void {
    this.#faults.delete(id)
    this.#running.get(id)?.end()
    this.#running.delete(id)
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
    for (const running of this.#running.values()) running.end()
    this.#running.clear()
  }

  #ended(id: string, ended: AnalysisProcess): void {
    if (this.#running.get(id) !== ended) return
    this.#running.delete(id)
    if (ended.state.kind !== 'failed') return
    this.#faults.delete(id)
    this.#faults.set(id, { reason: ended.state.reason, at: Date.now() })
    const [oldest] = this.#faults.keys()
    if (this.#faults.size > MOST_FAULTS && oldest !== undefined) this.#faults.delete(oldest)
  }

  #makeRoom(): boolean {
    if (this.#running.size < (this.#options.most ?? MOST_PROCESSES)) return true
    const [idle] = [...this.#running].filter(([, one]) => !one.isBusy).sort(([, a], [, b]) => a.usedAt - b.usedAt)
    if (!idle) return false
    this.forget(idle[0])
    return true
  }

  #endIdle(idleMs: number): void {
    for (const [id, one] of this.#running) if (!one.isBusy && Date.now() - one.usedAt > idleMs) this.forget(id)
  }
}
