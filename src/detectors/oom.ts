/** When memory will run out: a forecast with its interval, from the allocator of a run where it reports, else from the device. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { DetectorKind } from '../core/detector-contract.ts'
import { flushed } from '../core/memory/cache-flush.ts'
import type { Forecast } from '../core/memory/oom-forecast.ts'
import { riskOf } from '../core/memory/oom-risk.ts'
import { OomWatch } from '../core/memory/oom-watch.ts'
import { rankKey } from '../core/memory/run-map.ts'
import type { Finding, FindingSubject, GpuSample, HostSample, Run, TrainingStep } from '../core/model.ts'
import { MEMORY_CHART } from './charts.ts'
import { both, type FindingEnding, NO_FINDINGS } from './finding.ts'
import { GpuUsers, MemoryDetector, runName, SILENT, TOO_MANY } from './memory-detector.ts'
import { MemoryWatches, type MemoryWatchesState } from './memory-watches.ts'
import { type OomPlace, oomDraft } from './oom-message.ts'
import { atEndOfProcesses, atEndOfRun, notAnyMore } from './oom-outcome.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

/** A forecast is reported again when it moved by this share of the time ahead. */
const MOVED = 0.2
/** … unless that is little compared with how long it has lasted. */
const LEAST_MOVE = 0.05
const LEAST_MOVE_MS = 500
/** After a flushed cache the device says little for this long: it was full, and nothing happened. */
const FLUSHED_MS = 600_000
/** The end of a peak is a smaller fall; a flushed cache is a larger one. */
const FLUSH_RATIO = 0.3
const FULL_RATIO = 0.95
const FULL_MS = 60_000
const GPU_CAP = 64

interface FlushMemory {
  top: number
  lastAt: number
  flushedAt: number | null
}

interface Saved extends MemoryWatchesState {
  readonly users: readonly (readonly [string, readonly number[]])[]
  readonly flushes: readonly (readonly [string, FlushMemory])[]
}

class OomDetector extends MemoryDetector<Saved> {
  readonly #horizonMs: number
  readonly #watches = new MemoryWatches(() => new OomWatch())
  readonly #users = new GpuUsers()
  readonly #flushes = new BoundedMap<string, FlushMemory>(GPU_CAP)

  constructor(options: Thresholds<'oom'>) {
    super('oom')
    this.#horizonMs = options.horizonHours * 3_600_000
  }

  protected save(): Saved {
    return { ...this.#watches.snapshot(), users: this.#users.saved(), flushes: this.#flushes.saved() }
  }

  protected load(saved: Saved): void {
    this.#watches.restore(saved)
    this.#users.load(saved.users)
    this.#flushes.load(saved.flushes)
  }

  protected gpu(sample: GpuSample): readonly Finding[] {
    const { at, gpu, memoryUsedBytes: used, memoryTotalBytes: total } = sample
    const key = this.#watches.keyOfGpu(gpu)
    if (!this.#watches.hasRoom(key)) return NO_FINDINGS
    this.map.noteSample(sample)
    if (this.#users.note(sample)?.all) {
      this.#watches.get(key)?.restart()
      const own = this.book.key(this.subjectOfGpu(gpu))
      const end = (finding: Finding) => atEndOfProcesses(finding, at)
      let ended = this.book.resolveWhere((finding) => finding.fingerprint === own, at, end)
      for (const one of this.map.ranksOn(gpu)) ended = both(ended, this.#drop(`run ${one}`, at, end))
      if (ended.length > 0) return ended
    }
    if (used === null || total === null || total <= 0) return NO_FINDINGS
    const watch = this.#watches.watch(key)
    this.#noteFlush(gpu, sample, used / total, watch)
    watch.push({ at, bytes: used, capacityBytes: total })
    if (watch.forecast === null && this.book.size === 0) return NO_FINDINGS
    const subject = this.subjectOfGpu(gpu)
    if (this.map.accountsFor(gpu, at))
      return this.book.resolve(this.book.key(subject), at, 'The run reports its allocator, which is followed instead.')
    return this.#say(subject, at, { gpu: this.map.label(gpu), run: null }, watch, total)
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

  protected step(step: TrainingStep): readonly Finding[] {
    const allocated = step.memoryAllocatedBytes
    if (allocated === null || !Number.isFinite(allocated)) return NO_FINDINGS
    const gpu = this.map.noteStep(step)
    const capacity = this.map.capacity(step.run, step.rank)
    if (capacity === null || capacity <= 0) return NO_FINDINGS
    const key = `run ${rankKey(step.run, step.rank)}`
    const oldest = this.#watches.useRun(key)
    const dropped = oldest === null ? NO_FINDINGS : this.#drop(oldest, step.at, TOO_MANY)
    const watch = this.#watches.watch(key)
    // Fragmented memory serves some requests and not others: half of it counts as usable, and the forecast is unsure by as much.
    const split = 0.5 * (step.memoryInactiveSplitBytes ?? 0)
    const peak = Math.max(allocated, step.memoryPeakAllocatedBytes ?? allocated) + split
    watch.push({ at: step.at, bytes: allocated, peakBytes: peak, slackBytes: split + 0.003 * capacity, capacityBytes: capacity })
    return both(
      dropped,
      this.#say(this.subjectOfStep(step), step.at, { gpu: gpu === null ? null : this.map.label(gpu), run: runName(step) }, watch, capacity),
    )
  }

  protected runEnded({ id, outcome }: Run, at: number): readonly Finding[] {
    // The growth was the run's and is about to be freed: the GPU starts again and does not take over the forecast.
    for (const gpu of this.map.gpusOf(id)) this.#watches.get(this.#watches.keyOfGpu(gpu))?.restart()
    this.#watches.deleteRun(id)
    return this.book.resolveWhere(
      (finding) => finding.subject.run === id,
      at,
      (finding) => atEndOfRun(finding, at, outcome === 'oom'),
    )
  }

  protected host({ at }: HostSample): readonly Finding[] {
    let findings = NO_FINDINGS
    for (const key of this.#watches.silentRuns(at)) findings = both(findings, this.#drop(key, at, SILENT))
    return findings
  }

  #drop(key: string, at: number, end: FindingEnding): readonly Finding[] {
    this.#watches.delete(key)
    return this.book.resolveRank(key.slice('run '.length), at, end)
  }

  #say(subject: FindingSubject, at: number, place: OomPlace, watch: OomWatch, capacity: number): readonly Finding[] {
    const allocator = place.run !== null
    const forecast = watch.forecast
    if (forecast === null && this.book.size === 0) return NO_FINDINGS
    const key = this.book.key(subject)
    const before = this.book.get(key)
    if (forecast === null || forecast.fullAt * 1000 - at > this.#horizonMs)
      return before === undefined || isFull(watch, before, at)
        ? NO_FINDINGS
        : this.book.resolveWhere(
            (finding) => finding.fingerprint === key,
            at,
            () => notAnyMore(place.run === null ? `${place.gpu}` : `run ${place.run}`),
          )
    const ahead = Math.max(0, forecast.fullAt - at / 1000)
    const evidence = Math.max(forecast.span, (at - watch.since) / 1000)
    const risk = riskOf({ ahead, room: forecast.room, evidence, allocator, doubtful: watch.doubtful, before: before?.riskLevel ?? null })
    if (before !== undefined && before.riskLevel === risk && !moved(before, forecast, at)) return NO_FINDINGS
    const text = oomDraft({ at, place, forecast, capacity, risk, ahead, evidence, level: watch.level, since: watch.since })
    // The book repeats the same severity only after a while; a forecast that moved is news at once.
    if (before !== undefined) this.book.resolve(key, at)
    return this.book.raise(subject, at, { ...text, since: before?.since ?? text.since ?? at })
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

export const oom: DetectorKind<Thresholds<'oom'>> = {
  name: 'oom',
  about: 'Memory will run out: the expected time, the earliest and the latest, and how high the risk is.',
  severities: ['info', 'warning', 'critical'],
  inputs: ['gpu', 'step', 'run', 'device', 'host'],
  charts: [MEMORY_CHART],
  defaults: THRESHOLDS.oom,
  create: (options) => new OomDetector(options),
}
