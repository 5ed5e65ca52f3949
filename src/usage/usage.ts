/** Who used the GPUs: counts what the hub publishes, keeps it, and answers questions about it. */
import { logLane } from '../core/disk-lane.ts'
import type { HubEvent, Log, Sink } from '../core/kinds.ts'
import { Counter } from './counter.ts'
import { Ledger } from './ledger.ts'
import { priceList } from './prices.ts'
import type { UsageValues } from './settings.ts'
import { type SummaryQuery, summarize, type UsageSummary } from './summary.ts'
import type { UserTotals } from './totals.ts'

export interface UsageOptions {
  /** null: counted in memory only. */
  readonly dir: string | null
  readonly settings: Pick<UsageValues, 'usage.keep_days' | 'usage.keep_mb' | 'usage.price_per_hour' | 'usage.prices'>
  /** Between two samples. */
  readonly intervalMs: number
  readonly log: Log
  readonly now: () => number
  readonly sinceJumpMs?: () => number
  readonly saveMs?: number
}

export type UsageQuestion = Omit<SummaryQuery, 'priceOf'>

export interface Usage extends Sink {
  /** Rejects when the disk does not answer. */
  summary(question: UsageQuestion): Promise<UsageSummary>
  totals(): readonly UserTotals[]
  /** Why nothing is kept on disk now; null when it is. */
  fault(): string | null
  flush(): Promise<void>
  close(): Promise<void>
}

/** Five intervals: a tick or two may be late, but a machine that was asleep used nothing. */
export function longestGapMs(intervalMs: number): number {
  return Math.min(1_800_000, Math.max(10_000, 5 * intervalMs))
}

export function createUsage(options: UsageOptions): Usage {
  const { settings, intervalMs, ...surroundings } = options
  const gapMs = longestGapMs(intervalMs)
  const ledger = new Ledger({
    ...surroundings,
    retention: { keepDays: settings['usage.keep_days'], keepBytes: settings['usage.keep_mb'] * 1024 ** 2 },
    settle: () => counter.settle(),
    longestGapMs: gapMs,
  })
  const counter = new Counter(ledger.book, gapMs)
  const priceOf = priceList(settings)
  // What a run lost is known when the hours before the start are.
  let early: HubEvent[] = []
  void ledger.opened.then(() => {
    for (const event of early) counter.accept(event)
    early = []
  })
  return {
    name: 'usage',
    accept(event) {
      if (event.type === 'run' && !ledger.isLoaded && event.run.endedAt !== null && early.length < 1000) early.push(event)
      else counter.accept(event)
    },
    summary: (question) => logLane.patiently(() => summarize(ledger.rows(question.from, question.to), { ...question, priceOf })),
    totals: () => ledger.totals(),
    fault: () => ledger.fault,
    flush: () => ledger.flush(),
    close: () => ledger.close(),
  }
}
