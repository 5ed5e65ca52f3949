/** Memory that grows and does not come back: of a device, a process, a process's host memory, or a run's allocator. */
import type { Detector, DetectorInput, DetectorKind } from '../core/kinds.ts'
import type { Leak } from '../core/memory/leak-verdict.ts'
import { LeakWatch, type LeakWatchState } from '../core/memory/leak-watch.ts'
import { RunMap, type RunMapState, rankKey } from '../core/memory/run-map.ts'
import type { Finding, FindingSubject, GpuSample, HostSample, ProcessView, Reading, Run, TrainingStep } from '../core/model.ts'
import { both, FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { type LeakSource, leakDraft } from './leak-message.ts'

export interface LeakOptions {
  /** How many processes of a GPU are followed one by one, the largest first. */
  readonly processesPerGpu: number
}

const DEFAULTS: LeakOptions = { processesPerGpu: 3 }
const RUN_CAP = 16
const GPU_CAP = 64
/** A process that holds this share of what is used stands for the device. */
const DOMINANT = 0.8
/** Processes that hold less of the device are not followed by themselves. */
const NOTABLE = 0.02
const HOST_EVERY_MS = 1000
const SILENT_MS = 600_000
const ALL_ENDED = 'Every process that used the GPU has ended.'

interface Saved {
  readonly map: RunMapState
  readonly watches: readonly (readonly [string, LeakWatchState])[]
  readonly pids: readonly (readonly [string, readonly number[]])[]
  readonly runs: readonly string[]
  readonly hostTotal: Reading
  readonly findings: unknown
}

class LeakDetector implements Detector {
  readonly #options: LeakOptions
  readonly #book = new FindingBook('leak')
  readonly #map = new RunMap()
  readonly #watches = new Map<string, LeakWatch>()
  /** Processes seen on each GPU the last time. */
  readonly #pids = new Map<string, readonly number[]>()
  /** Keys of run watches, least recently used first. */
  #runs: string[] = []
  #hostTotal: Reading = null
  readonly #keys = new Map<string, string>()

  constructor(options: LeakOptions) {
    this.#options = options
  }

  accept(input: DetectorInput): readonly Finding[] {
    switch (input.type) {
      case 'gpu':
        return this.#gpu(input.sample, input.processes)
      case 'step':
        return this.#step(input.step)
      case 'run':
        return this.#run(input.run)
      case 'device':
        this.#map.noteDevice(input.device)
        return NO_FINDINGS
      case 'host':
        return this.#host(input.sample)
      default:
        return NO_FINDINGS
    }
  }

  snapshot(): unknown {
    const saved: Saved = {
      map: this.#map.snapshot(),
      watches: [...this.#watches].map(([key, watch]) => [key, watch.snapshot()] as const),
      pids: [...this.#pids].map(([gpu, pids]) => [gpu, [...pids]] as const),
      runs: [...this.#runs],
      hostTotal: this.#hostTotal,
      findings: this.#book.snapshot(),
    }
    return saved
  }

  restore(state: unknown): void {
    const saved = state as Saved
    this.#map.restore(saved.map)
    this.#watches.clear()
    for (const [key, one] of saved.watches) {
      const watch = new LeakWatch(key.startsWith('run ') ? 'steps' : 'seconds')
      watch.restore(one)
      this.#watches.set(key, watch)
    }
    this.#pids.clear()
    for (const [gpu, pids] of saved.pids) this.#pids.set(gpu, [...pids])
    this.#runs = [...saved.runs]
    this.#hostTotal = saved.hostTotal
    this.#book.restore(saved.findings)
  }

  #gpu(sample: GpuSample, processes: readonly ProcessView[]): readonly Finding[] {
    const { at, gpu, memoryUsedBytes: used, memoryTotalBytes: total } = sample
    const key = this.#keyOf(gpu)
    if (!this.#watches.has(key) && !this.#hasRoom()) return NO_FINDINGS
    this.#map.noteSample(sample)
    let findings = this.#processesChanged(sample)
    if (used === null || total === null || total <= 0) return findings
    const covered = this.#map.covers(gpu, at)
    const notable = processes.filter((one) => (one.memoryUsedBytes ?? 0) >= NOTABLE * total)
    const largest =
      notable.length < 2
        ? notable
        : notable.toSorted((a, b) => (b.memoryUsedBytes ?? 0) - (a.memoryUsedBytes ?? 0)).slice(0, this.#options.processesPerGpu)
    const dominant = largest.find((one) => (one.memoryUsedBytes ?? 0) >= DOMINANT * used) ?? null
    // The run whose allocator is followed is taken to be the largest process; the others are still watched.
    for (const one of largest) {
      if (largest.length > 1) findings = both(findings, this.#process(one, at, used, total, covered && one === largest[0]))
      findings = both(findings, this.#hostMemory(one, at))
    }
    const watch = this.#watch(key, 'seconds')
    const confirmed = watch.push({ at, position: at / 1000, bytes: used, capacityBytes: total })
    if (watch.leak === null || covered) {
      if (this.#book.size === 0) return findings
      const why = covered ? 'The run tells what its allocator holds; its figures are followed instead.' : undefined
      const ended = this.#book.resolveWhere((finding) => finding.evidence.source === 'device' && finding.subject.gpu === gpu, at, why)
      return both(findings, ended)
    }
    if (!confirmed) return findings
    const subject = this.#subject(gpu, dominant)
    // What one process does needs no second finding for the whole device.
    const others = this.#book.keys().filter((key) => this.#book.get(key)?.subject.gpu === gpu && key !== this.#book.key(subject))
    if (dominant === null && others.length > 0) return findings
    const name = dominant === null ? this.#map.label(gpu) : `${this.#map.label(gpu)}, ${nameOf(dominant)}`
    return both(findings, this.#raise(subject, at, name, watch, watch.leak, total, 'device'))
  }

  /** Of the watch of a GPU; kept, because a new string costs more than most else that a quiet sample needs. */
  #keyOf(gpu: string): string {
    let key = this.#keys.get(gpu)
    if (key === undefined) {
      key = `gpu ${gpu}`
      if (this.#keys.size < GPU_CAP) this.#keys.set(gpu, key)
    }
    return key
  }

  #hasRoom(): boolean {
    let gpus = 0
    for (const key of this.#watches.keys()) if (key.startsWith('gpu ')) gpus++
    return gpus < GPU_CAP
  }

  #process(process: ProcessView, at: number, used: number, total: number, covered: boolean): readonly Finding[] {
    const held = process.memoryUsedBytes
    if (held === null) return NO_FINDINGS
    const watch = this.#watch(`pid ${process.gpu} ${process.pid}`, 'seconds')
    // The room that is left is the device's.
    const confirmed = watch.push({ at, position: at / 1000, bytes: held, peakBytes: Math.max(held, used), capacityBytes: total })
    const subject = this.#subject(process.gpu, process)
    if (watch.leak === null || covered) return this.#end(subject, at, 'process')
    return confirmed
      ? this.#raise(subject, at, `${this.#map.label(process.gpu)}, ${nameOf(process)}`, watch, watch.leak, total, 'process')
      : NO_FINDINGS
  }

  #hostMemory(process: ProcessView, at: number): readonly Finding[] {
    const resident = process.info?.residentBytes ?? null
    if (resident === null || this.#hostTotal === null || this.#hostTotal <= 0) return NO_FINDINGS
    const watch = this.#watch(`host ${process.gpu} ${process.pid}`, 'seconds')
    if (watch.lastSeenAt !== null && Math.abs(at - watch.lastSeenAt) < HOST_EVERY_MS) return NO_FINDINGS
    const confirmed = watch.push({ at, position: at / 1000, bytes: resident, capacityBytes: this.#hostTotal })
    const subject = subjectOf({ pid: process.pid, user: process.info?.user ?? null })
    if (watch.leak === null) return this.#end(subject, at, 'host memory')
    return confirmed
      ? this.#raise(subject, at, `${nameOf(process)}: host memory (RSS)`, watch, watch.leak, this.#hostTotal, 'host memory')
      : NO_FINDINGS
  }

  #step(step: TrainingStep): readonly Finding[] {
    const allocated = step.memoryAllocatedBytes
    if (allocated === null || !Number.isFinite(allocated)) return NO_FINDINGS
    const gpu = this.#map.noteStep(step)
    const key = `run ${rankKey(step.run, step.rank)}`
    let findings = this.#useRun(key, step.at)
    const watch = this.#watch(key, 'steps')
    const peak = (step.memoryPeakAllocatedBytes ?? allocated) + 0.5 * (step.memoryInactiveSplitBytes ?? 0)
    const known = this.#map.capacity(step.run, step.rank)
    const capacity = known ?? assumedCapacity(Math.max(peak, step.memoryReservedBytes ?? peak))
    const confirmed = watch.push({
      at: step.at,
      position: step.step,
      bytes: allocated,
      peakBytes: Math.max(peak, allocated),
      capacityBytes: capacity,
    })
    const subject = subjectOf({ run: step.run, rank: step.rank, gpuIndex: gpu === null ? null : this.#map.index(gpu) })
    if (watch.leak === null) findings = both(findings, this.#end(subject, step.at, 'allocator'))
    else if (confirmed) {
      const where = gpu === null ? '' : `${this.#map.label(gpu)}, `
      const name = `${where}run ${step.run}${step.rank > 0 ? `, rank ${step.rank}` : ''}: allocated memory at step ends`
      findings = both(findings, this.#raise(subject, step.at, name, watch, watch.leak, capacity, 'allocator'))
    }
    return findings
  }

  #run(run: Run): readonly Finding[] {
    if (run.endedAt === null) {
      this.#map.noteRun(run)
      return NO_FINDINGS
    }
    // What grew was the run's: the device and its process, which take over from the allocator, begin anew.
    for (const gpu of this.#map.gpusOf(run.id)) {
      this.#watches.get(this.#keyOf(gpu))?.restart()
      if (run.pid !== null) this.#watches.get(`pid ${gpu} ${run.pid}`)?.restart()
    }
    this.#map.noteRun(run)
    for (const key of this.#runs.filter((one) => one.endsWith(`@${run.id}`))) this.#forget(key)
    return this.#book.resolveWhere((finding) => finding.subject.run === run.id, run.endedAt, 'The run has ended.')
  }

  /** A good moment to look for runs that stopped without a word. */
  #host(sample: HostSample): readonly Finding[] {
    this.#hostTotal = sample.memoryTotalBytes
    let findings = NO_FINDINGS
    for (const key of this.#runs) {
      const last = this.#watches.get(key)?.lastSeenAt ?? null
      if (last !== null && sample.at - last > SILENT_MS)
        findings = both(findings, this.#dropRun(key, sample.at, 'The run has not been heard of for ten minutes.'))
    }
    return findings
  }

  #useRun(key: string, at: number): readonly Finding[] {
    if (this.#runs.at(-1) === key) return NO_FINDINGS
    this.#runs = [...this.#runs.filter((one) => one !== key), key]
    const oldest = this.#runs.length > RUN_CAP ? this.#runs[0] : undefined
    return oldest === undefined ? NO_FINDINGS : this.#dropRun(oldest, at, 'No longer followed: too many runs at once.')
  }

  #dropRun(key: string, at: number, why: string): readonly Finding[] {
    this.#forget(key)
    return this.#book.resolveRank(key.slice(4), at, why)
  }

  #forget(key: string): void {
    this.#watches.delete(key)
    this.#runs = this.#runs.filter((one) => one !== key)
  }

  /** Ends the watches of processes that left; a device that nobody uses any more starts anew. */
  #processesChanged(sample: GpuSample): readonly Finding[] {
    const { gpu, processes, at } = sample
    const before = this.#pids.get(gpu)
    if (processes === null) return NO_FINDINGS
    if (before !== undefined && before.length === processes.length && processes.every((one, i) => one.pid === before[i])) return NO_FINDINGS
    this.#pids.set(
      gpu,
      processes.map((one) => one.pid),
    )
    const gone = (before ?? []).filter((pid) => !processes.some((one) => one.pid === pid))
    let findings = NO_FINDINGS
    for (const pid of gone) {
      this.#watches.delete(`pid ${gpu} ${pid}`)
      this.#watches.delete(`host ${gpu} ${pid}`)
      findings = both(
        findings,
        this.#book.resolveWhere((one) => one.subject.pid === pid, at, `Process ${pid} has ended.`),
      )
    }
    if (before !== undefined && gone.length === before.length) {
      this.#watches.get(`gpu ${gpu}`)?.restart()
      findings = both(
        findings,
        this.#book.resolveWhere((one) => one.subject.gpu === gpu, at, ALL_ENDED),
      )
      for (const key of this.#map.ranksOn(gpu)) findings = both(findings, this.#dropRun(`run ${key}`, at, ALL_ENDED))
    }
    return findings
  }

  #watch(key: string, axis: 'seconds' | 'steps'): LeakWatch {
    const known = this.#watches.get(key)
    if (known !== undefined) return known
    if (!key.startsWith('run ')) this.#makeRoom(key.slice(0, key.lastIndexOf(' ') + 1))
    const made = new LeakWatch(axis)
    this.#watches.set(key, made)
    return made
  }

  /** Of many processes that are the largest in turn, those that were so longest ago are forgotten. */
  #makeRoom(prefix: string): void {
    const same = [...this.#watches.keys()].filter((key) => key.startsWith(prefix) && key.lastIndexOf(' ') + 1 === prefix.length)
    const oldest = same[0]
    if (prefix !== 'gpu ' && oldest !== undefined && same.length >= 2 * this.#options.processesPerGpu) this.#watches.delete(oldest)
  }

  #subject(gpu: string, process: ProcessView | null): FindingSubject {
    return subjectOf({ gpu, gpuIndex: this.#map.index(gpu), pid: process?.pid ?? null, user: process?.info?.user ?? null })
  }

  #end(subject: FindingSubject, at: number, source: LeakSource): readonly Finding[] {
    if (this.#book.size === 0) return NO_FINDINGS
    const key = this.#book.key(subject)
    return this.#book.get(key)?.evidence.source === source ? this.#book.resolve(key, at) : NO_FINDINGS
  }

  #raise(
    subject: FindingSubject,
    at: number,
    name: string,
    watch: LeakWatch,
    leak: Leak,
    capacity: number,
    source: LeakSource,
  ): readonly Finding[] {
    const key = this.#book.key(subject)
    return this.#book.due(key, at, 'warning')
      ? this.#book.raise(subject, at, leakDraft({ at, name, leak, msPerUnit: watch.msPerUnit, capacity, source }))
      : NO_FINDINGS
  }
}

/** Without a device to measure against: the next power of two above what was needed and a quarter. */
function assumedCapacity(needed: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, 1.25 * needed)))
}

function nameOf(process: ProcessView): string {
  return `process ${process.pid}${process.info?.name ? ` (${process.info.name})` : ''}`
}

export const leak: DetectorKind<LeakOptions> = { name: 'leak', defaults: DEFAULTS, create: (options) => new LeakDetector(options) }
