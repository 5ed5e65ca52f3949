/** Asks the ranks of a run that stands still where they are, in the answers to their signs of life, and concludes who holds it up. */
import { randomBytes } from 'node:crypto'
import { BoundedMap } from '../core/bounded-map.ts'
import { hangVerdict } from '../core/hang/hang-verdict.ts'
import { keptStacks, type RankStacks } from '../core/hang/rank-stacks.ts'
import type { Log } from '../core/kinds.ts'
import type { Finding, HangVerdict, Reading } from '../core/model.ts'
import { askRas, type RasStatus } from './nccl-ras.ts'
import type { Progress } from './progress.ts'
import { rankViews } from './rank-views.ts'
import type { RunRecord } from './run-record.ts'

/** What an SDK finds in the answer to its steps. */
export interface StackOrder {
  readonly id: string
}

export interface StandstillsOptions {
  readonly now: () => number
  readonly log: Log
  /** 0: NCCL is not asked. */
  readonly rasPort: number
  readonly run: (id: string) => RunRecord | undefined
  readonly progress: (id: string) => Promise<Progress | null>
  readonly change: (id: string, make: (known: RunRecord | undefined) => RunRecord | null) => Promise<RunRecord | null>
  /** Label of the GPU that a process uses. */
  readonly gpuOf?: (pid: number) => string | null
}

/** One look at all ranks of a run. */
interface Look {
  readonly id: string
  readonly run: string
  readonly begunAt: number
  readonly answers: Map<number, RankStacks>
  /** A stall was found: what came is judged, and kept with the run. */
  isStall: boolean
  ras: Promise<RasStatus | null> | null
  timer: NodeJS.Timeout | null
}

export interface LookState {
  readonly id: string | null
  readonly at: number
  /** No rank is waited for anymore. */
  readonly isOver: boolean
  /** When the last step came, where more than a few step times have passed since; null: it makes steps, or never did. */
  readonly silentSince: Reading
  readonly verdict: HangVerdict | null
  readonly ranks: readonly RankStacks[]
  /** What NCCL itself reports. */
  readonly notes: readonly string[]
}

const MOST_RUNS = 64
const MOST_RANKS = 1024
/** An SDK gives a sign of life every second, and looks for one. */
const WAIT_MS = 4000
/** A look may be judged or taken for an answer for this long. */
const FRESH_MS = 30_000
/** While a stall lasts. */
const AGAIN_MS = 55_000
/** Earlier than the detector, so that the answers are there when it finds a stall. */
const SILENT_STEPS = 5
const SILENT_MS = 1500

export class Standstills {
  readonly #options: StandstillsOptions
  readonly #looks = new BoundedMap<string, Look>(MOST_RUNS, { isRenewed: true })

  constructor(options: StandstillsOptions) {
    this.#options = options
  }

  /** Repeated with every answer to this rank until its stacks are there. */
  orderFor(run: string, rank: number): StackOrder | null {
    const look = this.#looks.get(run)
    if (!look || look.answers.has(rank) || this.#age(look) > FRESH_MS) return null
    return { id: look.id }
  }

  /** A rank lives but has no step to report. */
  noteSign(run: string, progress: Progress): void {
    const since = this.#silentSince(progress)
    if (since === null || this.#options.run(run)?.endedAt != null) return
    const look = this.#looks.get(run)
    if (!look || look.begunAt < since) this.#begin(run)
  }

  noteFinding({ detector, state, provenance, subject: { run }, since }: Finding): void {
    if (detector !== 'stall' || state !== 'active' || provenance !== 'live' || run === null) return
    const known = this.#options.run(run)
    if (!known || known.endedAt !== null) return
    let look = this.#looks.get(run)
    if (!look || look.begunAt < since || this.#age(look) > AGAIN_MS) look = this.#begin(run)
    look.isStall = true
    void this.#judgeWhenReady(look)
  }

  /** By request; null: no such run, or it is over. */
  ask(run: string): StackOrder | null {
    const known = this.#options.run(run)
    return known && known.endedAt === null ? { id: this.#begin(run).id } : null
  }

  /** False: nobody asked for this. */
  take(run: string, id: string, stacks: RankStacks): boolean {
    const look = this.#looks.get(run)
    if (!look || look.id !== id || look.answers.size >= MOST_RANKS) return false
    look.answers.set(stacks.rank, stacks)
    void this.#judgeWhenReady(look)
    return true
  }

  async stateOf(run: RunRecord): Promise<LookState> {
    const progress = await this.#options.progress(run.id)
    const silentSince = progress === null ? null : this.#silentSince(progress)
    const look = this.#looks.get(run.id)
    if (!look || run.endedAt !== null) {
      const { hang, stacks } = run
      return { id: null, at: hang?.at ?? run.updatedAt, isOver: true, silentSince, verdict: hang, ranks: stacks, notes: [] }
    }
    const isOver = this.#isOver(look, progress)
    const { verdict, ranks, notes } = await this.#conclude(look, run, progress)
    return { id: look.id, at: look.begunAt, isOver, silentSince, verdict, ranks, notes }
  }

  drop(run: string): void {
    const look = this.#looks.get(run)
    if (look?.timer) clearTimeout(look.timer)
    this.#looks.delete(run)
  }

  #begin(run: string): Look {
    this.drop(run)
    const { now, rasPort } = this.#options
    const look: Look = {
      id: randomBytes(8).toString('hex'),
      run,
      begunAt: now(),
      answers: new Map(),
      isStall: false,
      ras: null,
      timer: null,
    }
    look.ras = rasPort === 0 ? null : askRas(rasPort)
    look.timer = setTimeout(() => void this.#judgeWhenReady(look), WAIT_MS + 50).unref()
    this.#looks.set(run, look)
    return look
  }

  async #judgeWhenReady(look: Look): Promise<void> {
    const { run: runOf, progress: progressOf, change, log, now } = this.#options
    try {
      const run = runOf(look.run)
      const progress = await progressOf(look.run)
      if (!look.isStall || !run || run.endedAt !== null || !progress || !this.#isOver(look, progress)) return
      // It made a step in the meantime.
      if (lastStepAt(progress) > look.begunAt) return
      const { verdict, ranks } = await this.#conclude(look, run, progress)
      const isKnown = run.hang !== null && run.hang.sentence === verdict.sentence && run.hang.at >= lastStepAt(progress)
      if (verdict.kind === 'unknown' || isKnown) return
      await change(look.run, (known) =>
        known ? { ...known, hang: { ...verdict, at: now() }, stacks: keptStacks(ranks), updatedAt: now() } : null,
      )
      log.warn({ run: look.run, culprits: verdict.culprits, waiting: verdict.waiting.length }, `a run stands still: ${verdict.sentence}`)
    } catch (error) {
      log.error({ err: error, run: look.run }, 'where a run stands still could not be found out')
    }
  }

  async #conclude(
    look: Look,
    run: RunRecord,
    progress: Progress | null,
  ): Promise<Pick<LookState, 'ranks' | 'notes'> & { verdict: HangVerdict }> {
    const { gpuOf = () => null, now } = this.#options
    const ras = this.#age(look) > WAIT_MS || this.#isOver(look, progress) ? await look.ras : null
    const views = rankViews({ run, ranks: progress?.ranks ?? new Map(), answers: look.answers, ras, gpuOf, now: now() })
    const ranks = views.flatMap(({ stacks }) => stacks ?? []).sort((a, b) => a.rank - b.rank)
    return { verdict: hangVerdict(views, run.worldSize), ranks, notes: ras?.notes ?? [] }
  }

  #isOver(look: Look, progress: Progress | null): boolean {
    if (this.#age(look) >= WAIT_MS) return true
    const ranks = [...(progress?.ranks.keys() ?? [])]
    return ranks.length > 0 && ranks.every((rank) => look.answers.has(rank))
  }

  #age({ begunAt }: Look): number {
    return this.#options.now() - begunAt
  }

  #silentSince({ ranks }: Progress): Reading {
    let [lastAt, stepSeconds] = [0, 0]
    for (const one of ranks.values()) {
      lastAt = Math.max(lastAt, one.lastAt)
      stepSeconds = Math.max(stepSeconds, one.recentStepSeconds ?? 0)
    }
    if (lastAt === 0) return null
    return this.#options.now() - lastAt > Math.max(SILENT_MS, SILENT_STEPS * stepSeconds * 1000) ? lastAt : null
  }
}

function lastStepAt({ ranks }: Progress): number {
  return Math.max(0, ...[...ranks.values()].map(({ lastAt }) => lastAt))
}
