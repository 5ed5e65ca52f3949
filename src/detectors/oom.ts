/** When memory will run out: a forecast with its interval, of a run's allocator where it tells, of the device where nobody does. */
import type { Detector, DetectorInput, DetectorKind } from '../core/kinds.ts'
import { flushed } from '../core/memory/cache-flush.ts'
import type { Forecast } from '../core/memory/oom-forecast.ts'
import { riskOf } from '../core/memory/oom-risk.ts'
import { OomWatch, type OomWatchState } from '../core/memory/oom-watch.ts'
import { RunMap, type RunMapState, rankKey } from '../core/memory/run-map.ts'
import type { Finding, FindingSubject, GpuSample, HostSample, Run, TrainingStep } from '../core/model.ts'
import { both, FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { oomDraft } from './oom-message.ts'

export interface OomOptions {
  /** Ends farther away than this are not mentioned. */
  readonly horizonHours: number
}

const DEFAULTS: OomOptions = { horizonHours: 48 }
const RUN_CAP = 16
const GPU_CAP = 64
/** A forecast is said again when it moved by this share of the time ahead. */
const MOVED = 0.2
/** … but not when that is little against the time it has lasted. */
const LEAST_MOVE = 0.05
const LEAST_MOVE_MS = 500
/** For so long after a cache was flushed, the device alone says little: it was full, and nothing happened. */
const FLUSHED_MS = 600_000
/** A burst that ends is smaller than this; a cache that goes is not. */
const FLUSH_RATIO = 0.3
const SILENT_MS = 600_000
const ALL_ENDED = 'Every process that used the GPU has ended.'

interface FlushMemory {
  top: number
  lastAt: number
  flushedAt: number | null
}

interface Saved {
  readonly map: RunMapState
  readonly watches: readonly (readonly [string, OomWatchState])[]
  readonly users: readonly (readonly [string, readonly number[]])[]
  readonly flushes: readonly (readonly [string, FlushMemory])[]
  readonly findings: unknown
}

class OomDetector implements Detector {
  readonly #horizonMs: number
  readonly #book = new FindingBook('oom')
  readonly #map = new RunMap()
  readonly #watches = new Map<string, OomWatch>()
  /** Processes seen on each GPU the last time. */
  readonly #users = new Map<string, readonly number[]>()
  readonly #flushes = new Map<string, FlushMemory>()
  readonly #keys = new Map<string, string>()

  constructor(options: OomOptions) {
    this.#horizonMs = options.horizonHours * 3_600_000
  }

  accept(input: DetectorInput): readonly Finding[] {
    switch (input.type) {
      case 'gpu':
        return this.#gpu(input.sample)
      case 'step':
        return this.#step(input.step)
      case 'run':
        return this.#run(input.run)
      case 'host':
        return this.#sweep(input.sample)
      case 'device':
        this.#map.noteDevice(input.device)
        return NO_FINDINGS
      default:
        return NO_FINDINGS
    }
  }

  snapshot(): unknown {
    const saved: Saved = {
      map: this.#map.snapshot(),
      watches: [...this.#watches].map(([key, watch]) => [key, watch.snapshot()] as const),
      users: [...this.#users].map(([gpu, pids]) => [gpu, [...pids]] as const),
      flushes: [...this.#flushes].map(([gpu, memory]) => [gpu, { ...memory }] as const),
      findings: this.#book.snapshot(),
    }
    return saved
  }

  restore(state: unknown): void {
    const saved = state as Saved
    this.#map.restore(saved.map)
    this.#watches.clear()
    for (const [key, one] of saved.watches) {
      const watch = new OomWatch()
      watch.restore(one)
      this.#watches.set(key, watch)
    }
    this.#users.clear()
    for (const [gpu, pids] of saved.users) this.#users.set(gpu, [...pids])
    this.#flushes.clear()
    for (const [gpu, memory] of saved.flushes) this.#flushes.set(gpu, { ...memory })
    this.#book.restore(saved.findings)
  }

  #gpu(sample: GpuSample): readonly Finding[] {
    const { at, gpu, memoryUsedBytes: used, memoryTotalBytes: total } = sample
    if (this.#users.size >= GPU_CAP && !this.#users.has(gpu)) return NO_FINDINGS
    this.#map.noteSample(sample)
    const key = this.#keyOf(gpu)
    if (this.#usersLeft(sample)) {
      this.#watches.get(key)?.restart()
      let ended = this.#book.resolve(this.#book.key(this.#subject(gpu)), at, ALL_ENDED)
      for (const one of this.#map.ranksOn(gpu)) ended = both(ended, this.#drop(`run ${one}`, at, ALL_ENDED))
      if (ended.length > 0) return ended
    }
    if (used === null || total === null || total <= 0) return NO_FINDINGS
    const watch = this.#watch(key)
    this.#noteFlush(gpu, sample, used / total, watch)
    watch.push({ at, bytes: used, capacityBytes: total })
    if (watch.forecast === null && this.#book.size === 0) return NO_FINDINGS
    const subject = this.#subject(gpu)
    if (this.#map.accountsFor(gpu, at))
      return this.#book.resolve(this.#book.key(subject), at, 'The run tells what its allocator needs; its figures are followed instead.')
    return this.#say(subject, at, this.#map.label(gpu), watch, total, 'device')
  }

  #subject(gpu: string): FindingSubject {
    return subjectOf({ gpu, gpuIndex: this.#map.index(gpu) })
  }

  /** Of the watch of a GPU; kept, because a new string costs more than all else that a quiet sample needs. */
  #keyOf(gpu: string): string {
    let key = this.#keys.get(gpu)
    if (key === undefined) {
      key = `gpu ${gpu}`
      this.#keys.set(gpu, key)
    }
    return key
  }

  /** Memory that was full and was given back at once is a cache: what rises next begins anew, and is no alarm by itself. */
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

  #step(step: TrainingStep): readonly Finding[] {
    const allocated = step.memoryAllocatedBytes
    if (allocated === null || !Number.isFinite(allocated)) return NO_FINDINGS
    const gpu = this.#map.noteStep(step)
    const capacity = this.#map.capacity(step.run, step.rank)
    if (capacity === null || capacity <= 0) return NO_FINDINGS
    const key = `run ${rankKey(step.run, step.rank)}`
    const dropped = this.#makeRoom(key, step.at)
    const watch = this.#watch(key)
    // Split blocks serve some requests and not others: half of them is taken to be of use, and the forecast is unsure of as much.
    const split = 0.5 * (step.memoryInactiveSplitBytes ?? 0)
    const peak = Math.max(allocated, step.memoryPeakAllocatedBytes ?? allocated) + split
    watch.push({ at: step.at, bytes: allocated, peakBytes: peak, slackBytes: split + 0.003 * capacity, capacityBytes: capacity })
    const subject = subjectOf({ run: step.run, rank: step.rank, gpuIndex: gpu === null ? null : this.#map.index(gpu) })
    const where = gpu === null ? '' : `${this.#map.label(gpu)}, `
    const name = `${where}run ${step.run}${step.rank > 0 ? `, rank ${step.rank}` : ''}`
    return both(dropped, this.#say(subject, step.at, name, watch, capacity, 'allocator'))
  }

  #run(run: Run): readonly Finding[] {
    if (run.endedAt === null) {
      this.#map.noteRun(run)
      return NO_FINDINGS
    }
    // What rose was the run's, and is about to be given back: the device begins anew, it does not take over the forecast.
    for (const gpu of this.#map.gpusOf(run.id)) this.#watches.get(this.#keyOf(gpu))?.restart()
    this.#map.noteRun(run)
    for (const key of [...this.#watches.keys()]) if (key.startsWith('run ') && key.endsWith(`@${run.id}`)) this.#watches.delete(key)
    return this.#book.resolveWhere((finding) => finding.subject.run === run.id, run.endedAt, 'The run has ended.')
  }

  /** Runs that stopped without a word. */
  #sweep(sample: HostSample): readonly Finding[] {
    let findings = NO_FINDINGS
    for (const [key, watch] of this.#watches)
      if (key.startsWith('run ') && watch.lastSeenAt !== null && sample.at - watch.lastSeenAt > SILENT_MS)
        findings = both(findings, this.#drop(key, sample.at, 'The run has not been heard of for ten minutes.'))
    return findings
  }

  #makeRoom(key: string, at: number): readonly Finding[] {
    if (this.#watches.has(key)) return NO_FINDINGS
    const runs = [...this.#watches.keys()].filter((one) => one.startsWith('run '))
    const oldest = runs.length >= RUN_CAP ? runs[0] : undefined
    return oldest === undefined ? NO_FINDINGS : this.#drop(oldest, at, 'No longer followed: too many runs at once.')
  }

  #drop(key: string, at: number, why: string): readonly Finding[] {
    this.#watches.delete(key)
    return this.#book.resolveRank(key.slice(4), at, why)
  }

  /** True when nobody is left of those who were there, be it that nobody was: what comes next is another story. */
  #usersLeft(sample: GpuSample): boolean {
    const { gpu, processes } = sample
    const before = this.#users.get(gpu)
    if (processes === null) {
      if (before === undefined) this.#users.set(gpu, [])
      return false
    }
    if (before !== undefined && before.length === processes.length && processes.every((one, i) => one.pid === before[i])) return false
    this.#users.set(
      gpu,
      processes.map((one) => one.pid),
    )
    return before !== undefined && !processes.some((one) => before.includes(one.pid))
  }

  #watch(key: string): OomWatch {
    const known = this.#watches.get(key)
    if (known !== undefined) return known
    const made = new OomWatch()
    this.#watches.set(key, made)
    return made
  }

  #say(
    subject: FindingSubject,
    at: number,
    name: string,
    watch: OomWatch,
    capacity: number,
    source: 'device' | 'allocator',
  ): readonly Finding[] {
    const allocator = source === 'allocator'
    const forecast = watch.forecast
    if (forecast === null && this.#book.size === 0) return NO_FINDINGS
    const key = this.#book.key(subject)
    const before = this.#book.get(key)
    if (forecast === null || forecast.fullAt * 1000 - at > this.#horizonMs)
      return before === undefined ? NO_FINDINGS : this.#book.resolve(key, at, `${name}: memory no longer heads for its limit.`)
    const ahead = Math.max(0, forecast.fullAt - at / 1000)
    const evidence = Math.max(forecast.span, (at - watch.since) / 1000)
    const risk = riskOf({ ahead, room: forecast.room, evidence, allocator, doubtful: watch.doubtful, before: before?.riskLevel ?? null })
    if (before !== undefined && before.riskLevel === risk && !moved(before, forecast, at)) return NO_FINDINGS
    const text = oomDraft({ at, name, forecast, capacity, allocator, risk, ahead, evidence, level: watch.level, since: watch.since })
    // The book says the same severity again only after a while; a forecast that moved is news at once.
    if (before !== undefined) this.#book.resolve(key, at)
    return this.#book.raise(subject, at, { ...text, since: before?.since ?? text.since ?? at })
  }
}

function moved(before: Finding, forecast: Forecast, at: number): boolean {
  const expected = Math.max(at, forecast.fullAt * 1000)
  const tolerance = Math.max(MOVED * (expected - at), LEAST_MOVE * (at - before.since), LEAST_MOVE_MS)
  return Math.abs(expected - (before.predictedAt ?? at)) > tolerance || at > (before.predictedLatestAt ?? at)
}

export const oom: DetectorKind<OomOptions> = { name: 'oom', defaults: DEFAULTS, create: (options) => new OomDetector(options) }
