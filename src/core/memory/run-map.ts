/** Which GPU the allocator of a run is on, and how much of that GPU the run can have. */
import { BoundedMap } from '../bounded-map.ts'
import { MOST_RUNS, RANKS_PER_RUN } from '../detector-contract.ts'
import type { GpuInfo, GpuSample, Reading, Run, TrainingStep } from '../model.ts'
import { median } from './statistics.ts'

interface Gpu {
  label: string
  index: number
  total: Reading
  used: Reading
  pids: readonly number[]
  samples: number
}

interface Rank {
  gpu: string | null
  lastAt: number
  /** What its process may have of the GPU, and what its allocator has; null: no limit was set, or not known. */
  limit: Reading
  reserved: Reading
  /** ms between its steps. */
  every: number
  /** GPU memory outside this allocator, newest last. */
  outside: number[]
  /** The same, once per sample, and the smallest so far. */
  others: number[]
  leastOthers: number
  othersGrew: boolean
  sample: number
}

interface RunFacts {
  readonly gpus: readonly string[]
  readonly pid: Reading
}

export interface RunMapState {
  readonly gpus: readonly (readonly [string, Gpu])[]
  readonly ranks: readonly (readonly [string, Rank])[]
  readonly runs: readonly (readonly [string, RunFacts])[]
}

const GPU_CAP = 256
const OUTSIDE_KEPT = 15
/** Allocator readings are current for this long, or for twenty steps. */
const FRESH_MS = 30_000
const FRESH_STEPS = 20
/** A GPU may hold this much more than the allocator reserved and still be its own. */
const CONTEXT_BYTES = 4 * 1024 ** 3
/** When others have taken this share since the run was first seen, its allocator does not explain the GPU anymore. */
const OTHERS_RATIO = 0.1
const OTHERS_KEPT = 5

export function rankKey(run: string, rank: number): string {
  return `${rank}@${run}`
}

export class RunMap {
  private readonly gpus = new BoundedMap<string, Gpu>(GPU_CAP)
  private readonly ranks: BoundedMap<string, Rank>
  private readonly runs: BoundedMap<string, RunFacts>

  constructor(maxRuns = MOST_RUNS) {
    this.ranks = new BoundedMap(RANKS_PER_RUN * maxRuns, { isRenewed: true })
    this.runs = new BoundedMap(maxRuns, { isRenewed: true })
  }

  noteDevice(device: GpuInfo): void {
    const gpu = this.gpu(device.id)
    gpu.label = device.label
    gpu.index = device.index
    gpu.total ??= device.memoryTotalBytes
  }

  noteSample(sample: GpuSample): void {
    const gpu = this.gpu(sample.gpu)
    gpu.samples++
    gpu.used = sample.memoryUsedBytes
    if (sample.memoryTotalBytes !== null && sample.memoryTotalBytes > 0) gpu.total = sample.memoryTotalBytes
    const list = sample.processes
    if (list !== null && (list.length !== gpu.pids.length || list.some((one, i) => one.pid !== gpu.pids[i])))
      gpu.pids = list.map((one) => one.pid)
  }

  noteRun(run: Run): void {
    if (run.endedAt !== null) {
      this.runs.delete(run.id)
      for (const key of [...this.ranks.keys()]) if (key.endsWith(`@${run.id}`)) this.ranks.delete(key)
    } else this.runs.set(run.id, { gpus: [...run.gpus], pid: run.pid })
  }

  /** Notes a step with allocator readings; returns its GPU, or null when unknown. */
  noteStep(step: TrainingStep): string | null {
    const key = rankKey(step.run, step.rank)
    const rank = this.ranks.get(key) ?? newRank(step.at)
    if (step.at > rank.lastAt) rank.every = rank.every === 0 ? step.at - rank.lastAt : 0.9 * rank.every + 0.1 * (step.at - rank.lastAt)
    rank.lastAt = step.at
    rank.limit = step.memoryLimitBytes
    rank.reserved = step.memoryReservedBytes
    rank.gpu = this.find(step)
    const used = rank.gpu === null ? null : (this.gpus.get(rank.gpu)?.used ?? null)
    if (used !== null && step.memoryReservedBytes !== null && used >= step.memoryReservedBytes) {
      rank.outside.push(used - step.memoryReservedBytes)
      if (rank.outside.length > OUTSIDE_KEPT) rank.outside.shift()
      this.noteOthers(rank, used - step.memoryReservedBytes)
    }
    this.ranks.set(key, rank)
    return rank.gpu
  }

  /** GPU memory that the run can have: all but what others hold, within the limit that it set. null when neither is known. */
  capacity(run: string, rank: number): number | null {
    const entry = this.ranks.get(rankKey(run, rank))
    const gpu = entry?.gpu == null ? undefined : this.gpus.get(entry.gpu)
    if (entry === undefined || gpu === undefined || gpu.total === null) return entry?.limit ?? null
    return Math.min(gpu.total - median(entry.outside), entry.limit ?? Number.POSITIVE_INFINITY)
  }

  /** The limit that a run on this GPU set for itself, of the one closest to it; null: none has one. */
  limited(gpu: string, at: number): { readonly limit: number; readonly ratio: number } | null {
    let closest: { readonly limit: number; readonly ratio: number } | null = null
    for (const rank of this.ranks.values()) {
      const { gpu: own, limit, reserved } = rank
      if (own !== gpu || limit === null || limit <= 0 || reserved === null || !isFresh(rank, at)) continue
      if (closest === null || reserved / limit > closest.ratio) closest = { limit, ratio: reserved / limit }
    }
    return closest
  }

  /** Whether a run currently reports its allocator on this GPU: then the device says less. */
  covers(gpu: string, at: number): boolean {
    for (const rank of this.ranks.values()) if (rank.gpu === gpu && isFresh(rank, at)) return true
    return false
  }

  /** The same, and memory of others has not grown since the run was first seen. */
  accountsFor(gpu: string, at: number): boolean {
    for (const rank of this.ranks.values()) if (rank.gpu === gpu && !rank.othersGrew && isFresh(rank, at)) return true
    return false
  }

  /** GPUs on which the run was seen. */
  gpusOf(run: string): Set<string> {
    const gpus = new Set<string>()
    for (const [key, rank] of this.ranks) if (rank.gpu !== null && key.endsWith(`@${run}`)) gpus.add(rank.gpu)
    return gpus
  }

  /** Keys (see rankKey) of the runs that were seen on this GPU. */
  ranksOn(gpu: string): string[] {
    return [...this.ranks].filter(([, rank]) => rank.gpu === gpu).map(([key]) => key)
  }

  gpuOf(run: string, rank: number): string | null {
    return this.ranks.get(rankKey(run, rank))?.gpu ?? null
  }

  label(gpu: string): string {
    const known = this.gpus.get(gpu)
    return `GPU ${known === undefined || known.label === '' ? gpu : known.label}`
  }

  index(gpu: string): number | null {
    const known = this.gpus.get(gpu)
    return known === undefined || known.index < 0 ? null : known.index
  }

  snapshot(): RunMapState {
    return { gpus: this.gpus.saved(), ranks: this.ranks.saved(), runs: this.runs.saved() }
  }

  restore(state: RunMapState): void {
    // The state of an older version lacks some fields.
    this.gpus.load(state.gpus.map(([id, gpu]) => [id, { ...gpu, samples: gpu.samples ?? 0 }]))
    this.ranks.load(state.ranks.map(([key, rank]) => [key, { ...newRank(rank.lastAt), ...rank }]))
    this.runs.load(state.runs)
  }

  private gpu(id: string): Gpu {
    const known = this.gpus.get(id)
    if (known !== undefined) return known
    return this.gpus.keep(id, { label: '', index: -1, total: null, used: null, pids: [], samples: 0 })
  }

  /** A step may be newer than the sample, so the difference is off; the median of several is used. */
  private noteOthers(rank: Rank, bytes: number): void {
    const gpu = rank.gpu === null ? undefined : this.gpus.get(rank.gpu)
    if (gpu === undefined || gpu.total === null || gpu.samples === rank.sample) return
    rank.sample = gpu.samples
    rank.others.push(bytes)
    if (rank.others.length > OTHERS_KEPT) rank.others.shift()
    if (rank.others.length < OTHERS_KEPT) return
    const now = median(rank.others)
    rank.leastOthers = rank.leastOthers < 0 ? now : Math.min(rank.leastOthers, now)
    rank.othersGrew = now - rank.leastOthers > OTHERS_RATIO * gpu.total
  }

  private find(step: TrainingStep): string | null {
    const facts = this.runs.get(step.run)
    if (facts !== undefined && facts.gpus.length > 0) return facts.gpus[step.rank % facts.gpus.length] ?? null
    const pid = facts?.pid ?? null
    if (pid !== null) {
      const holding = [...this.gpus].filter(([, gpu]) => gpu.pids.includes(pid))
      if (holding.length > 0) return holding[step.rank % holding.length]?.[0] ?? null
    }
    if (this.gpus.size === 1) return this.gpus.keys().next().value ?? null
    return this.nearest(step.memoryReservedBytes, this.ranks.get(rankKey(step.run, step.rank))?.gpu ?? null)
  }

  /** The GPU whose memory in use fits what the allocator reserved; the last one stays while it still fits. */
  private nearest(reserved: Reading, before: string | null): string | null {
    if (reserved === null) return before
    let best: string | null = null
    let smallest = CONTEXT_BYTES
    for (const [id, gpu] of this.gpus) {
      if (gpu.used === null) continue
      const more = Math.abs(gpu.used - reserved)
      if (id === before && more < CONTEXT_BYTES) return id
      if (more < smallest) {
        smallest = more
        best = id
      }
    }
    return best ?? before
  }
}

function newRank(at: number): Rank {
  return {
    gpu: null,
    lastAt: at,
    limit: null,
    reserved: null,
    every: 0,
    outside: [],
    others: [],
    leastOthers: -1,
    othersGrew: false,
    sample: -1,
  }
}

function isFresh(rank: Rank, at: number): boolean {
  return Math.abs(at - rank.lastAt) <= Math.max(FRESH_MS, FRESH_STEPS * rank.every)
}
