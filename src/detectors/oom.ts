/** When memory will run out: a forecast with its interval, from the allocator of a run where it reports, else from the device. */
import { type Detector, type DetectorKind, MOST_RUNS, RANKS_PER_RUN } from '../core/detector-contract.ts'
import { flushed } from '../core/memory/cache-flush.ts'
import type { Forecast } from '../core/memory/oom-forecast.ts'
import { placeText } from '../core/memory/oom-report.ts'
import { riskOf } from '../core/memory/oom-risk.ts'
import { OomWatch, type OomWatchState } from '../core/memory/oom-watch.ts'
import { RunMap, type RunMapState, rankKey } from '../core/memory/run-map.ts'
import type { Finding, FindingSubject, GpuSample, HostSample, Run, TrainingStep } from '../core/model.ts'
import { byType } from './by-type.ts'
import { MEMORY_CHART } from './charts.ts'
import { both, FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { GpuProcesses, type GpuProcessesState } from './gpu-processes.ts'
import { HostMemory, type HostMemoryState } from './host-memory.ts'
import { LeakLines } from './leak-lines.ts'
import { type OomPlace, oomDraft } from './oom-message.ts'
import { atEndOfProcesses, atEndOfRun, notAnyMore } from './oom-outcome.ts'
import { RunTable, runsOfRanks } from './run-table.ts'
import { dropSilentRanks } from './silent-ranks.ts'

export interface OomOptions {
  /** Forecasts further ahead are not reported. */
  readonly horizonHours: number
  /** How much more evidence is asked for; 1 as tuned. */
  readonly caution: number
}

const DEFAULTS: OomOptions = { horizonHours: 48, caution: 1 }
const GPU_CAP = 64
/** A forecast is reported again when it moved by this share of the time ahead. */
const MOVED = 0.2
/** … unless that is little compared with how long it has lasted. */
const LEAST_MOVE = 0.05
const LEAST_MOVE_MS = 500
/** After a flushed cache the device says little for this long: it was full, and nothing happened. */
const FLUSHED_MS = 600_000
/** The end of a peak is a smaller fall; a flushed cache is a larger one. */
const FLUSH_RATIO = 0.3
/** What marks a rank, and not a GPU, in the saved state. */
const RANK = 'run '
const FULL_RATIO = 0.95
const FULL_MS = 60_000
/** The memory of a host has many users: further ahead a rise says little. */
const HOST_HORIZON_MS = 6 * 3_600_000

interface FlushMemory {
  top: number
  lastAt: number
  flushedAt: number | null
}

interface Saved {
  readonly map: RunMapState
  readonly watches: readonly (readonly [string, OomWatchState])[]
  readonly users: GpuProcessesState
  readonly flushes: readonly (readonly [string, FlushMemory])[]
  readonly findings: unknown
  readonly lines?: unknown
  readonly host?: HostMemoryState
}

class OomDetector implements Detector {
  readonly #horizonMs: number
  readonly #caution: number
  readonly #book = new FindingBook('oom')
  readonly #map: RunMap
  /** Of GPUs, and of ranks by their rankKey. */
  readonly #watches = new Map<string, OomWatch>()
  readonly #ranks: RunTable<OomWatch>
  readonly #users = new GpuProcesses()
  readonly #flushes = new Map<string, FlushMemory>()
  readonly #lines = new LeakLines()
  readonly #host: HostMemory

  constructor(options: OomOptions, maxRuns = MOST_RUNS) {
    this.#map = new RunMap(maxRuns)
    this.#ranks = new RunTable({
      cap: RANKS_PER_RUN * maxRuns,
      lastAt: ({ lastSeenAt }) => lastSeenAt ?? 0,
      isOpen: (key) => this.#book.hasRank(key),
    })
    this.#horizonMs = options.horizonHours * 3_600_000
    this.#caution = options.caution
    this.#host = new HostMemory(options.caution)
  }

  readonly accept = byType({
    gpu: ({ sample }) => this.#gpu(sample),
    step: ({ step }) => this.#step(step),
    run: ({ run }) => this.#run(run),
    host: ({ sample }) => this.#takeHost(sample),
    device: ({ device }) => void this.#map.noteDevice(device),
  })

  unfollowed(): Iterable<string> {
    return runsOfRanks(this.#ranks.missed())
  }

  snapshot(): unknown {
    const saved: Saved = {
      map: this.#map.snapshot(),
      watches: [
        ...Array.from(this.#watches, ([gpu, watch]) => [`gpu ${gpu}`, watch.snapshot()] as const),
        ...Array.from(this.#ranks, ([key, watch]) => [`${RANK}${key}`, watch.snapshot()] as const),
      ],
      users: this.#users.snapshot(),
      flushes: [...this.#flushes].map(([gpu, memory]) => [gpu, { ...memory }] as const),
      findings: this.#book.snapshot(),
      lines: this.#lines.snapshot(),
      host: this.#host.snapshot(),
    }
    return saved
  }

  restore(state: unknown): void {
    const saved = state as Saved
    this.#map.restore(saved.map)
    this.#watches.clear()
    this.#ranks.clear()
    for (const [key, one] of saved.watches) {
      const watch = new OomWatch(this.#caution)
      watch.restore(one)
      const table = key.startsWith(RANK) ? this.#ranks : this.#watches
      table.set(key.slice(RANK.length), watch)
    }
    this.#users.restore(saved.users)
    this.#flushes.clear()
    for (const [gpu, memory] of saved.flushes) this.#flushes.set(gpu, { ...memory })
    this.#book.restore(saved.findings)
    this.#lines.restore(saved.lines)
    this.#host.restore(saved.host)
  }

  #gpu(sample: GpuSample): readonly Finding[] {
    const { at, gpu, memoryUsedBytes: used, memoryTotalBytes: total } = sample
    if (this.#users.size >= GPU_CAP && !this.#users.has(gpu)) return NO_FINDINGS
    this.#map.noteSample(sample)
    if (this.#usersLeft(sample)) {
      this.#watches.get(gpu)?.restart()
      const own = this.#book.key(this.#subject(gpu))
      const end = (level: number) => (finding: Finding) => atEndOfProcesses(finding, at, level)
      let ended = this.#book.resolveWhere((finding) => finding.fingerprint === own, at, end(this.#watches.get(gpu)?.level ?? 0))
      for (const one of this.#map.ranksOn(gpu)) {
        const level = this.#ranks.get(one)?.level ?? 0
        this.#ranks.delete(one)
        ended = both(ended, this.#book.resolveRank(one, at, end(level)))
      }
      if (ended.length > 0) return ended
    }
    if (used === null || total === null || total <= 0) return NO_FINDINGS
    let watch = this.#watches.get(gpu)
    if (watch === undefined) {
      watch = new OomWatch(this.#caution)
      this.#watches.set(gpu, watch)
    }
    this.#noteFlush(gpu, sample, used / total, watch)
    watch.push({ at, bytes: used, capacityBytes: total })
    if (watch.forecast === null && this.#book.size === 0) return NO_FINDINGS
    const subject = this.#subject(gpu)
    if (this.#map.accountsFor(gpu, at))
      return this.#book.resolve(this.#book.key(subject), at, 'The run reports its allocator, which is followed instead.')
    return this.#say(subject, at, { gpu: this.#map.label(gpu), run: null }, watch, total)
  }

  #subject(gpu: string): FindingSubject {
    return subjectOf({ gpu, gpuIndex: this.#map.index(gpu) })
  }

  /** Full memory that is freed at once is a cache: the next rise starts again and is no alarm yet. */
  #noteFlush(gpu: string, sample: GpuSample, ratio: number, watch: OomWatch): void {
    let before = this.#flushes.get(gpu)
    if (before === undefined) {
      before = { top: ratio, lastAt: sample.at, flushedAt: null }
      this.#flushes.set(gpu, before)
    }
    const empty = sample.processes !== null && sample.processes.length === 0
    const { happened, top } = flushed({ before: before.top, now: ratio, quietMs: sample.at - before.lastAt, least: FLUSH_RATIO, empty })
    if (happened) watch.restart()
    const flushedAt = empty ? null : happened ? sample.at : before.flushedAt
    before.top = top
    before.lastAt = sample.at
    before.flushedAt = flushedAt
    watch.doubtful = flushedAt !== null && Math.abs(sample.at - flushedAt) < FLUSHED_MS
  }

  #takeHost(sample: HostSample): readonly Finding[] {
    const { at } = sample
    let findings = dropSilentRanks(this.#ranks, this.#book, at)
    for (const { subject, place, watch, capacity } of this.#host.take(sample))
      findings = both(findings, this.#say(subject, at, place, watch, capacity))
    for (const subject of this.#host.gone(at)) findings = both(findings, this.#book.resolve(this.#book.key(subject), at))
    return findings
  }

  #step(step: TrainingStep): readonly Finding[] {
    this.#host.noteStep(step.run)
    const allocated = step.memoryAllocatedBytes
    if (allocated === null || !Number.isFinite(allocated)) return NO_FINDINGS
    const gpu = this.#map.noteStep(step)
    const capacity = this.#map.capacity(step.run, step.rank)
    if (capacity === null || capacity <= 0) return NO_FINDINGS
    const key = rankKey(step.run, step.rank)
    const watch = this.#ranks.get(key) ?? this.#ranks.admit(key, step.at, () => new OomWatch(this.#caution))
    if (watch === null) return NO_FINDINGS
    // Fragmented memory serves some requests and not others: half of it counts as usable, and the forecast is unsure by as much.
    const split = 0.5 * (step.memoryInactiveSplitBytes ?? 0)
    const peak = Math.max(allocated, step.memoryPeakAllocatedBytes ?? allocated) + split
    watch.push({ at: step.at, bytes: allocated, peakBytes: peak, slackBytes: split + 0.003 * capacity, capacityBytes: capacity })
    const subject = subjectOf({ run: step.run, rank: step.rank, gpuIndex: gpu === null ? null : this.#map.index(gpu) })
    const run = `${step.run}${step.rank > 0 ? `, rank ${step.rank}` : ''}`
    return this.#say(subject, step.at, { gpu: gpu === null ? null : this.#map.label(gpu), run }, watch, capacity)
  }

  #run(run: Run): readonly Finding[] {
    this.#lines.note(run)
    this.#host.noteRun(run)
    if (run.endedAt === null) {
      this.#map.noteRun(run)
      return NO_FINDINGS
    }
    // The growth was the run's and is about to be freed: the GPU starts again and does not take over the forecast.
    for (const gpu of this.#map.gpusOf(run.id)) this.#watches.get(gpu)?.restart()
    this.#map.noteRun(run)
    this.#ranks.deleteRun(run.id)
    const { id, endedAt, outcome } = run
    return this.#book.resolveWhere(
      (finding) => finding.subject.run === id,
      endedAt,
      (finding) => atEndOfRun(finding, endedAt, outcome === 'oom'),
    )
  }

  #usersLeft({ gpu, processes }: GpuSample): boolean {
    // Processes that were never listed count as none.
    if (processes === null && this.#users.has(gpu)) return false
    return this.#users.note(gpu, processes ?? []).isEveryone
  }

  #say(subject: FindingSubject, at: number, place: OomPlace, watch: OomWatch, capacity: number): readonly Finding[] {
    const isHost = place.host !== undefined
    const allocator = place.run !== null && !isHost
    const horizonMs = isHost ? Math.min(HOST_HORIZON_MS, this.#horizonMs) : this.#horizonMs
    const forecast = watch.forecast
    if (forecast === null && this.#book.size === 0) return NO_FINDINGS
    const key = this.#book.key(subject)
    const before = this.#book.get(key)
    if (forecast === null || forecast.fullAt * 1000 - at > horizonMs)
      return before === undefined || isFull(watch, before, at)
        ? NO_FINDINGS
        : this.#book.resolveWhere(
            (finding) => finding.fingerprint === key,
            at,
            () => notAnyMore(place.run !== null ? `run ${place.run}` : (place.gpu ?? `host ${place.host}`)),
          )
    const ahead = Math.max(0, forecast.fullAt - at / 1000)
    const evidence = Math.max(forecast.span, (at - watch.since) / 1000)
    const risk = riskOf({ ahead, room: forecast.room, evidence, allocator, doubtful: watch.doubtful, before: before?.riskLevel ?? null })
    const line = this.#lines.of(subject, before?.since ?? watch.since)
    const isNamed = line === null || before?.evidence.line === placeText(line)
    if (before !== undefined && before.riskLevel === risk && isNamed && !moved(before, forecast, at)) return NO_FINDINGS
    const text = oomDraft({ at, line, place, forecast, capacity, risk, ahead, evidence, level: watch.level, since: watch.since })
    // The book repeats the same severity only after a while; a forecast that moved is news at once.
    if (before !== undefined) this.#book.resolve(key, at)
    return this.#book.raise(subject, at, { ...text, since: before?.since ?? text.since ?? at })
  }
}

/** Memory that is full no longer rises: what was forecast is happening, and the run has a moment to end. */
function isFull(watch: OomWatch, before: Finding, at: number): boolean {
  return watch.level >= FULL_RATIO && at < (before.predictedLatestAt ?? at) + FULL_MS
}

function moved(before: Finding, forecast: Forecast, at: number): boolean {
  const expected = Math.max(at, forecast.fullAt * 1000)
  const tolerance = Math.max(MOVED * (expected - at), LEAST_MOVE * (at - before.since), LEAST_MOVE_MS)
  return Math.abs(expected - (before.predictedAt ?? at)) > tolerance || at > (before.predictedLatestAt ?? at)
}

export const oom: DetectorKind<OomOptions> = {
  name: 'oom',
  about: 'Memory of a GPU, a run or the host will run out: the expected time, the earliest and the latest, and how high the risk is.',
  severities: ['info', 'warning', 'critical'],
  inputs: ['gpu', 'step', 'run', 'device', 'host'],
  charts: [MEMORY_CHART],
  defaults: DEFAULTS,
  create: (options, maxRuns) => new OomDetector(options, maxRuns),
}
