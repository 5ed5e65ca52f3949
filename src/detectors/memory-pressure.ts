/** The allocator hits the limit (cudaMalloc fails, the cache is flushed, it tries again), or memory stays nearly full. */
import { type Detector, type DetectorKind, MOST_RUNS, RANKS_PER_RUN } from '../core/detector-contract.ts'
import { formatBytes, formatCount, formatDuration, formatPercent } from '../core/format.ts'
import { RunMap, type RunMapState, rankKey } from '../core/memory/run-map.ts'
import type { Finding, GpuSample, Run, Severity, TrainingStep } from '../core/model.ts'
import { byType } from './by-type.ts'
import { MEMORY_CHART } from './charts.ts'
import { DevicePressure, type DevicePressureOptions, LEVEL } from './device-pressure.ts'
import { both, FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { RunTable, runsOfRanks } from './run-table.ts'
import { SILENT, SILENT_MS } from './silent-ranks.ts'
import { THRESHOLDS } from './thresholds.ts'
import { evidenceNumber } from './words.ts'

export interface MemoryPressureOptions extends DevicePressureOptions {
  /** Share of the GPU that the run's peak must need; below it a cache is flushed now and then, no more. */
  readonly neededRatio: number
  /** Above this need a single failure is a warning. */
  readonly tightRatio: number
}

const DEFAULTS: MemoryPressureOptions = {
  retries: 3,
  windowSeconds: 60,
  // Below half of the GPU even twice the need fits: retries alone are no danger.
  neededRatio: 0.5,
  tightRatio: 0.85,
  levelRatio: THRESHOLDS.memory.levelRatio,
  levelGapRatio: THRESHOLDS.memory.levelGapRatio,
  fullRatio: THRESHOLDS.memory.fullRatio,
  holdMinutes: THRESHOLDS.memory.holdMinutes,
}

const NAME = 'memory_pressure'
const LEVEL_PRINT = `${NAME}|${LEVEL}`
const TIMES_KEPT = 64

interface RunState {
  retries: number
  ooms: number
  /** Times of failures, newest last. */
  times: number[]
  lastAt: number
  peak: number
}

interface Saved {
  readonly map: RunMapState
  readonly runs: readonly (readonly [string, RunState])[]
  readonly devices: unknown
  readonly findings: unknown
}

class MemoryPressureDetector implements Detector {
  readonly #options: MemoryPressureOptions
  readonly #windowMs: number
  readonly #book = new FindingBook(NAME)
  readonly #map: RunMap
  readonly #runs: RunTable<RunState>
  readonly #devices: DevicePressure

  constructor(options: MemoryPressureOptions, maxRuns = MOST_RUNS) {
    this.#map = new RunMap(maxRuns)
    this.#runs = new RunTable({
      cap: RANKS_PER_RUN * maxRuns,
      lastAt: ({ lastAt }) => lastAt,
      isOpen: (key) => this.#book.hasRank(key),
    })
    this.#options = options
    this.#windowMs = options.windowSeconds * 1000
    this.#devices = new DevicePressure(options, this.#book, this.#map)
  }

  readonly accept = byType({
    gpu: ({ sample }) => this.#gpu(sample),
    step: ({ step }) => this.#step(step),
    run: ({ run }) => this.#run(run),
    host: ({ sample }) => this.#sweep(sample.at),
    device: ({ device }) => void this.#map.noteDevice(device),
  })

  unfollowed(): Iterable<string> {
    return runsOfRanks(this.#runs.missed())
  }

  snapshot(): unknown {
    const saved: Saved = structuredClone({
      map: this.#map.snapshot(),
      runs: [...this.#runs],
      devices: this.#devices.snapshot(),
      findings: this.#book.snapshot(),
    })
    return saved
  }

  restore(state: unknown): void {
    const saved = structuredClone(state) as Saved
    this.#map.restore(saved.map)
    this.#runs.load(saved.runs)
    this.#devices.restore(saved.devices)
    this.#book.restore(saved.findings)
  }

  #step(step: TrainingStep): readonly Finding[] {
    if (step.memoryAllocatedBytes !== null) this.#map.noteStep(step)
    const retries = step.allocRetries
    if (retries === null || !Number.isFinite(retries)) return NO_FINDINGS
    const key = rankKey(step.run, step.rank)
    const state =
      this.#runs.get(key) ??
      this.#runs.admit(key, step.at, () => ({ retries, ooms: step.oomCount ?? 0, times: [], lastAt: step.at, peak: 0 }))
    if (state === null) return NO_FINDINGS
    if (step.at < state.lastAt - this.#windowMs) state.times = []
    // A counter that fell belongs to a new process.
    for (let count = Math.min(TIMES_KEPT, retries - state.retries); count > 0; count--) state.times.push(step.at)
    if (state.times.length > TIMES_KEPT) state.times.splice(0, state.times.length - TIMES_KEPT)
    const ooms = step.oomCount ?? state.ooms
    const failed = ooms > state.ooms
    Object.assign(state, { retries, ooms, lastAt: step.at, peak: step.memoryPeakAllocatedBytes ?? step.memoryAllocatedBytes ?? state.peak })
    return this.#judgeRun(step, state, failed)
  }

  #judgeRun(step: TrainingStep, state: RunState, failed: boolean): readonly Finding[] {
    // The usual case, at every step.
    if (state.times.length === 0 && !failed && this.#book.size === 0) return NO_FINDINGS
    const subject = subjectOf({ run: step.run, rank: step.rank })
    const key = this.#book.key(subject)
    const recent = state.times.filter((at) => step.at - at <= this.#windowMs && at <= step.at).length
    const capacity = this.#map.capacity(step.run, step.rank)
    const needed = capacity === null ? 1 : (state.peak + 0.5 * (step.memoryInactiveSplitBytes ?? 0)) / capacity
    const severity = this.#severity(recent, needed, failed, this.#book.has(key))
    if (severity === null) return this.#book.resolve(key, step.at, `Run ${step.run}: allocations succeed again.`)
    const share = capacity === null ? '' : `; the run needs ${formatPercent(needed)} of ${formatBytes(capacity)}`
    const what = failed
      ? 'the allocator raised an out-of-memory error'
      : `cudaMalloc failed ${formatCount(recent, 'time')} in ${formatDuration(this.#windowMs)} and the cache was flushed`
    return this.#book.raise(subject, step.at, {
      severity,
      since: state.times.find((at) => step.at - at <= this.#windowMs && at <= step.at) ?? step.at,
      message: `Run ${step.run}${step.rank > 0 ? `, rank ${step.rank}` : ''}: ${what}${share}.`,
      evidence: {
        source: 'allocator',
        retriesInWindow: recent,
        retriesTotal: state.retries,
        outOfMemoryErrors: state.ooms,
        windowSeconds: this.#options.windowSeconds,
        neededRatio: capacity === null ? null : evidenceNumber(needed),
      },
      confidence: Math.min(0.98, 0.6 + 0.05 * recent + (needed > this.#options.tightRatio ? 0.2 : 0)),
      advice: [
        'Save a checkpoint.',
        'Reduce the batch size or the sequence length, or limit how much they vary.',
        'Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: it reduces fragmented memory.',
      ],
    })
  }

  #severity(recent: number, needed: number, failed: boolean, active: boolean): Severity | null {
    if (failed) return 'critical'
    if (recent === 0) return null
    if (needed >= this.#options.tightRatio) return 'warning'
    if (needed >= this.#options.neededRatio && recent >= (active ? 1 : this.#options.retries)) return 'warning'
    return active || recent >= this.#options.retries ? 'info' : null
  }

  #gpu(sample: GpuSample): readonly Finding[] {
    this.#map.noteSample(sample)
    let ended = NO_FINDINGS
    if (sample.processes !== null && sample.processes.length === 0)
      for (const key of this.#map.ranksOn(sample.gpu))
        ended = both(ended, this.#drop(key, sample.at, 'All processes on the GPU have ended.'))
    return both(ended, this.#devices.accept(sample))
  }

  #run(run: Run): readonly Finding[] {
    this.#map.noteRun(run)
    if (run.endedAt === null) return NO_FINDINGS
    this.#runs.deleteRun(run.id)
    return this.#book.resolveWhere((finding) => finding.subject.run === run.id, run.endedAt, 'The run has ended.')
  }

  /** Runs that stopped silently. */
  #sweep(at: number): readonly Finding[] {
    let findings = NO_FINDINGS
    for (const key of this.#runs.dropSilent(at, SILENT_MS)) findings = both(findings, this.#drop(key, at, SILENT))
    for (const [key, state] of this.#runs) if (at - state.lastAt > SILENT_MS) findings = both(findings, this.#drop(key, at, SILENT))
    return findings
  }

  #drop(key: string, at: number, why: string): readonly Finding[] {
    this.#runs.delete(key)
    return this.#book.resolveRank(key, at, why)
  }
}

export const memoryPressure: DetectorKind<MemoryPressureOptions> = {
  name: NAME,
  about: 'The allocator hits the limit of the GPU and flushes its cache, or the memory of the GPU stays nearly full.',
  severities: ['info', 'warning', 'critical'],
  inputs: ['gpu', 'step', 'run', 'device', 'host'],
  charts: [MEMORY_CHART],
  // Memory that stays nearly full is always an alert of level warning; the finding is a warning only when almost nothing is left.
  alertSeverity: ({ severity, fingerprint }) => (severity === 'info' && fingerprint.startsWith(LEVEL_PRINT) ? 'warning' : severity),
  defaults: DEFAULTS,
  create: (options, maxRuns) => new MemoryPressureDetector(options, maxRuns),
}
