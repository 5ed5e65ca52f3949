/** The pools of host memory that may run out: the machine's, and the limits (cgroups) that runs and GPU processes are under. */
import { BoundedMap } from '../core/bounded-map.ts'
import { OomWatch, type OomWatchState } from '../core/memory/oom-watch.ts'
import type { FindingSubject, HostSample, Run } from '../core/model.ts'
import { subjectOf } from './finding.ts'
import type { OomPlace } from './oom-message.ts'

const POOL_CAP = 64
const RUN_CAP = 256
const GONE_MS = 60_000
/** Screens update more often than this; a forecast need not. */
const LEAST_MS = 1000
/** A run that loads its data fills memory steadily, and stops: below this level that is no alarm … */
const LOADED_RATIO = 0.8
/** … until its first step, and for this long. */
const LOADING_MS = 300_000

interface Pool {
  readonly watch: OomWatch
  seenAt: number
  readonly subject: FindingSubject
}

export interface PoolReading {
  readonly subject: FindingSubject
  readonly place: OomPlace
  readonly watch: OomWatch
  readonly capacity: number
}

export interface HostMemoryState {
  readonly pools: readonly (readonly [string, Omit<Pool, 'watch'> & { readonly watch: OomWatchState }])[]
  readonly loading: unknown
}

export class HostMemory {
  readonly #caution: number
  readonly #pools = new Map<string, Pool>()
  /** Runs without a step, and when they began. */
  readonly #loading = new BoundedMap<string, number>(RUN_CAP)

  constructor(caution: number) {
    this.#caution = caution
  }

  noteRun({ id, startedAt, endedAt }: Run): void {
    if (endedAt !== null) this.#loading.delete(id)
    else if (!this.#loading.has(id)) this.#loading.set(id, startedAt)
  }

  noteStep(run: string): void {
    // Kept, so that the next report of the run does not make it load again.
    if (this.#loading.has(run)) this.#loading.set(run, Number.NEGATIVE_INFINITY)
  }

  take(sample: HostSample): readonly PoolReading[] {
    const { at, hostname, memoryUsedBytes, memoryTotalBytes } = sample
    const readings: (PoolReading | null)[] = []
    if (memoryUsedBytes !== null && memoryTotalBytes !== null && memoryTotalBytes > 0) {
      const used = memoryUsedBytes + (sample.swapUsedBytes ?? 0)
      const place = { gpu: null, run: null, host: hostname }
      readings.push(this.#push('host', at, used, memoryTotalBytes + (sample.swapTotalBytes ?? 0), subjectOf({ host: hostname }), place))
    }
    for (const { pid, run, limit } of sample.trees ?? []) {
      if (!limit || limit.limitBytes <= 0) continue
      const subject = run === null ? subjectOf({ pid }) : subjectOf({ run })
      const place = { gpu: null, run: run ?? null, host: run === null ? `process ${pid}` : hostname }
      readings.push(this.#push(`limit ${run ?? pid}`, at, limit.usedBytes, limit.limitBytes, subject, place))
    }
    return readings.filter((reading) => reading !== null)
  }

  gone(at: number): readonly FindingSubject[] {
    const gone: FindingSubject[] = []
    for (const [key, { seenAt, subject }] of this.#pools) {
      if (at - seenAt < GONE_MS && at >= seenAt - GONE_MS) continue
      this.#pools.delete(key)
      gone.push(subject)
    }
    return gone
  }

  snapshot(): HostMemoryState {
    return {
      pools: Array.from(this.#pools, ([key, pool]) => [key, { ...pool, watch: pool.watch.snapshot() }] as const),
      loading: Array.from(this.#loading, ([run, at]) => [run, Math.max(0, at)]),
    }
  }

  /** An earlier version kept none. */
  restore(saved: HostMemoryState | undefined): void {
    this.#pools.clear()
    this.#loading.load(saved?.loading ?? [])
    for (const [key, { watch: state, ...rest }] of saved?.pools ?? []) {
      const watch = new OomWatch(this.#caution)
      watch.restore(state)
      this.#pools.set(key, { ...rest, watch })
    }
  }

  #push(key: string, at: number, used: number, capacity: number, subject: FindingSubject, place: OomPlace): PoolReading | null {
    let pool = this.#pools.get(key)
    if (pool === undefined) {
      if (this.#pools.size >= POOL_CAP) return null
      pool = { watch: new OomWatch(this.#caution), seenAt: Number.NEGATIVE_INFINITY, subject }
      this.#pools.set(key, pool)
    }
    if (Math.abs(at - pool.seenAt) < LEAST_MS) return null
    pool.seenAt = at
    // What it loaded is there now, and no reason to expect more.
    const isLoading = used < LOADED_RATIO * capacity && this.#isLoading(at)
    if (pool.watch.doubtful && !isLoading && used < LOADED_RATIO * capacity) pool.watch.restart()
    pool.watch.push({ at, bytes: Math.min(used, capacity), capacityBytes: capacity })
    pool.watch.doubtful = isLoading
    return { subject, place, watch: pool.watch, capacity }
  }

  #isLoading(at: number): boolean {
    for (const startedAt of this.#loading.values()) if (at - startedAt < LOADING_MS) return true
    return false
  }
}
