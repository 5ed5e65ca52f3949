import { CURVE_FIELDS } from '../core/curve-fields.ts'
import type { StepFigure } from '../core/fields/step.ts'
import type { Provenance, Reading, Run, TrainingStep } from '../core/model.ts'
import { NO_FIGURES } from '../core/record.ts'
import { GPU_CLOCK, hasGpuClock, isOccasional } from '../core/step-phases.ts'
import { Labels, labelText, provenanceLabels } from './labels.ts'

const MAX_RUNS = 32
const MAX_RANKS = 64
const MAX_NAMES = 16
const MAX_COUNTED = 1024
const ENDED_KEPT_MS = 10 * 60_000
/** A run that fell silent without an end is not shown forever. */
const SILENT_KEPT_MS = 60 * 60_000

export const STEP_SECONDS_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** One rank of one run. A field that a step leaves null keeps its previous value. */
export interface RankEntry {
  readonly labels: Labels
  readonly latest: Record<StepFigure, Reading>
  steps: number
  lastStep: number
  lastAt: number
  /** Steps per bucket, not cumulative; the last one is what exceeds every bound. */
  readonly bucketCounts: number[]
  secondsSum: number
  readonly phases: Map<string, number>
  /** Phases are by the GPU's clock; steps without it do not change them. */
  phasesByGpu: boolean
  readonly custom: Map<string, number>
}

/** A run as a whole, by its lowest rank. */
export interface RunWork {
  readonly labels: Labels
  readonly run: Run
  readonly rank: RankEntry | null
}

interface RunEntry {
  info: Labels | null
  run: Run | null
  /** What sets a simulated run apart. */
  mark: Labels
  readonly ranks: Map<number, RankEntry>
  updatedAt: number
  endedAt: number | null
}

/** Maps are kept in the order of their last update, so the first key is the one to forget. */
function touch<K, V>(map: Map<K, V>, key: K, value: V, max: number): boolean {
  map.delete(key)
  map.set(key, value)
  if (map.size <= max) return false
  for (const oldest of map.keys()) return map.delete(oldest)
  return false
}

export class TrainingMetrics {
  readonly #now: () => number
  readonly #runs = new Map<string, RunEntry>()
  #evicted = 0
  /** Runs that ended, by outcome, and which of them were counted. */
  readonly #ended = new Map<string, { readonly labels: Labels; count: number }>()
  readonly #counted = new Map<string, string>()

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  clear(): void {
    for (const known of [this.#runs, this.#ended, this.#counted]) known.clear()
    this.#evicted = 0
  }

  get evicted(): number {
    return this.#evicted
  }

  accept(steps: readonly TrainingStep[], provenance: Provenance = 'live'): void {
    for (const step of steps) {
      const run = this.#run(step.run)
      const rank = run.ranks.get(step.rank) ?? newRank(step, provenance)
      if (touch(run.ranks, step.rank, rank, MAX_RANKS)) this.#evicted++
      record(rank, step)
    }
  }

  acceptRun(run: Run): void {
    const entry = this.#run(run.id)
    entry.mark = provenanceLabels(run.provenance)
    entry.run = run
    entry.info = Labels.of({ run: run.id, name: run.name, user: run.user, host: run.host }).and(entry.mark)
    entry.endedAt = run.endedAt === null ? null : (entry.endedAt ?? this.#now())
    this.#countEnd(run)
  }

  ends(): readonly { readonly labels: Labels; readonly count: number }[] {
    return [...this.#ended.values()]
  }

  /** Once per end, by what its first witness said: a counter never falls. */
  #countEnd({ id, endedAt, outcome, provenance }: Run): void {
    if (endedAt === null) this.#counted.delete(id)
    else if (outcome !== null && !this.#counted.has(id)) {
      touch(this.#counted, id, outcome, MAX_COUNTED)
      const key = `${provenance} ${outcome}`
      const ended = this.#ended.get(key) ?? { labels: Labels.of({ outcome }).and(provenanceLabels(provenance)), count: 0 }
      ended.count++
      this.#ended.set(key, ended)
    }
  }

  ranks(): readonly RankEntry[] {
    this.#forgetOld()
    return Array.from(this.#runs.values(), (run) => [...run.ranks.values()]).flat()
  }

  runInfos(): readonly Labels[] {
    this.#forgetOld()
    return Array.from(this.#runs.values(), (run) => run.info).filter((info) => info !== null)
  }

  /** Announced runs. */
  works(): readonly RunWork[] {
    this.#forgetOld()
    return Array.from(this.#runs.values()).flatMap(({ run, ranks, mark }): RunWork[] => {
      const rank = ranks.get(Math.min(...ranks.keys())) ?? null
      return run === null ? [] : [{ labels: Labels.of({ run: run.id }).and(mark), run, rank }]
    })
  }

  /** Runs that said that they have ended, and when we heard of it. */
  runEnds(): readonly { readonly labels: Labels; readonly at: number }[] {
    this.#forgetOld()
    return Array.from(this.#runs, ([run, { endedAt, mark }]) => ({ labels: Labels.of({ run }).and(mark), at: endedAt })).filter(
      (one): one is { labels: Labels; at: number } => one.at !== null,
    )
  }

  /** Keyed by what the label will say, so that two runs can never be one series twice. */
  #run(id: string): RunEntry {
    const key = labelText(id)
    const run = this.#runs.get(key) ?? {
      info: null,
      run: null,
      mark: provenanceLabels('live'),
      ranks: new Map(),
      updatedAt: 0,
      endedAt: null,
    }
    run.updatedAt = this.#now()
    if (touch(this.#runs, key, run, MAX_RUNS)) this.#evicted++
    return run
  }

  #forgetOld(): void {
    const now = this.#now()
    for (const [key, { endedAt, updatedAt }] of this.#runs)
      if ((endedAt !== null && now - endedAt >= ENDED_KEPT_MS) || now - updatedAt >= SILENT_KEPT_MS) this.#runs.delete(key)
  }
}

function newRank(step: TrainingStep, provenance: Provenance): RankEntry {
  return {
    labels: Labels.of({ run: step.run, rank: step.rank }).and(provenanceLabels(provenance)),
    latest: { ...NO_FIGURES },
    steps: Math.max(0, step.step),
    lastStep: step.step,
    lastAt: Number.NEGATIVE_INFINITY,
    bucketCounts: new Array<number>(STEP_SECONDS_BUCKETS.length + 1).fill(0),
    secondsSum: 0,
    phases: new Map(),
    phasesByGpu: false,
    custom: new Map(),
  }
}

function record(rank: RankEntry, step: TrainingStep): void {
  observe(rank, step.stepSeconds)
  if (step.at < rank.lastAt) return
  rank.lastAt = step.at
  // A run that went back to a checkpoint does its steps again: they count, and the counter never falls.
  rank.steps += Math.max(0, step.step - rank.lastStep)
  rank.lastStep = step.step
  for (const field of CURVE_FIELDS) rank.latest[field] = step[field] ?? rank.latest[field]
  if (step.phaseSeconds !== null) rememberPhases(rank, step.phaseSeconds)
  if (step.custom !== null) remember(rank.custom, step.custom)
}

function rememberPhases(rank: RankEntry, sent: Readonly<Record<string, number>>): void {
  const byGpu = hasGpuClock(sent)
  const isShown = (name: string) => (byGpu ? name.endsWith(GPU_CLOCK) : !rank.phasesByGpu) || isOccasional(name)
  if (byGpu && !rank.phasesByGpu) {
    rank.phasesByGpu = true
    rank.phases.clear()
  }
  const shown = Object.entries(sent).filter(([name]) => isShown(name))
  remember(rank.phases, Object.fromEntries(shown.map(([name, value]) => [name.replace(GPU_CLOCK, ''), value])))
}

function observe(rank: RankEntry, stepSeconds: Reading): void {
  if (stepSeconds === null || !Number.isFinite(stepSeconds) || stepSeconds < 0) return
  let bucket = 0
  while (stepSeconds > (STEP_SECONDS_BUCKETS[bucket] ?? Number.POSITIVE_INFINITY)) bucket++
  rank.bucketCounts[bucket] = (rank.bucketCounts[bucket] ?? 0) + 1
  rank.secondsSum += stepSeconds
}

function remember(values: Map<string, number>, from: Readonly<Record<string, number>>): void {
  for (const name in from) touch(values, labelText(name), from[name] ?? Number.NaN, MAX_NAMES)
}
