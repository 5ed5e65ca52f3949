/** Memory that grows and is never freed: of a GPU, a process, the host memory of a process, or the allocator of a run. */
import { type Detector, type DetectorKind, MOST_RUNS, RANKS_PER_RUN } from '../core/detector-contract.ts'
import type { Leak } from '../core/memory/leak-verdict.ts'
import { LeakWatch } from '../core/memory/leak-watch.ts'
import { placeText } from '../core/memory/oom-report.ts'
import { RunMap, type RunMapState, rankKey } from '../core/memory/run-map.ts'
import type { Finding, FindingSubject, GpuSample, HostSample, ProcessView, Reading, Run, TrainingStep } from '../core/model.ts'
import { byType } from './by-type.ts'
import { MEMORY_CHART } from './charts.ts'
import { both, FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { GpuProcesses, type GpuProcessesState } from './gpu-processes.ts'
import { HostLeaks, type HostLeaksState } from './host-leaks.ts'
import { LeakLines } from './leak-lines.ts'
import { type LeakSource, leakDraft } from './leak-message.ts'
import { LeakWatches, type LeakWatchesState } from './leak-watches.ts'
import { runsOfRanks } from './run-table.ts'
import { dropSilentRanks } from './silent-ranks.ts'

export interface LeakOptions {
  /** How many processes of a GPU are followed separately, the largest first. */
  readonly processesPerGpu: number
  /** How much more evidence is asked for; 1 as tuned. */
  readonly caution: number
}

const DEFAULTS: LeakOptions = { processesPerGpu: 3, caution: 1 }
/** A process with this share of the memory in use stands for the GPU. */
const DOMINANT = 0.8
/** Processes with a smaller share of the GPU are not followed. */
const NOTABLE = 0.02
const HOST_EVERY_MS = 1000
const ALL_ENDED = 'All processes on the GPU have ended.'

interface Saved extends LeakWatchesState {
  readonly map: RunMapState
  readonly pids: GpuProcessesState
  readonly hostTotal: Reading
  readonly findings: unknown
  readonly lines?: unknown
  readonly trees?: HostLeaksState
}

class LeakDetector implements Detector {
  readonly #options: LeakOptions
  readonly #book = new FindingBook('leak')
  readonly #map: RunMap
  readonly #lines = new LeakLines()
  readonly #watches: LeakWatches
  readonly #processes = new GpuProcesses()
  readonly #trees: HostLeaks
  #hostTotal: Reading = null

  constructor(options: LeakOptions, maxRuns = MOST_RUNS) {
    this.#options = options
    this.#trees = new HostLeaks(options.caution)
    this.#map = new RunMap(maxRuns)
    this.#watches = new LeakWatches(options, {
      cap: RANKS_PER_RUN * maxRuns,
      lastAt: ({ lastSeenAt }) => lastSeenAt ?? 0,
      isOpen: (key) => this.#book.hasRank(key),
    })
  }

  readonly accept = byType({
    gpu: ({ sample, processes }) => this.#gpu(sample, processes),
    step: ({ step }) => this.#step(step),
    run: ({ run }) => this.#run(run),
    host: ({ sample }) => this.#host(sample),
    device: ({ device }) => void this.#map.noteDevice(device),
  })

  unfollowed(): Iterable<string> {
    return runsOfRanks(this.#watches.ranks.missed())
  }

  snapshot(): unknown {
    const saved: Saved = {
      map: this.#map.snapshot(),
      ...this.#watches.snapshot(),
      pids: this.#processes.snapshot(),
      hostTotal: this.#hostTotal,
      findings: this.#book.snapshot(),
      lines: this.#lines.snapshot(),
      trees: this.#trees.snapshot(),
    }
    return saved
  }

  restore(state: unknown): void {
    const saved = state as Saved
    this.#map.restore(saved.map)
    this.#watches.restore(saved)
    this.#processes.restore(saved.pids)
    this.#hostTotal = saved.hostTotal
    this.#book.restore(saved.findings)
    this.#lines.restore(saved.lines)
    this.#trees.restore(saved.trees)
  }

  #gpu(sample: GpuSample, processes: readonly ProcessView[]): readonly Finding[] {
    const { at, gpu, memoryUsedBytes: used, memoryTotalBytes: total } = sample
    const key = this.#watches.keyOfGpu(gpu)
    if (!this.#watches.hasRoom(key)) return NO_FINDINGS
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
    // The run whose allocator is followed is assumed to be the largest process; the others are still watched.
    for (const one of largest) {
      if (largest.length > 1) findings = both(findings, this.#process(one, at, used, total, covered && one === largest[0]))
      findings = both(findings, this.#hostMemory(one, at))
    }
    const watch = this.#watches.watch(key)
    const confirmed = watch.push({ at, position: at / 1000, bytes: used, capacityBytes: total })
    if (watch.leak === null || covered) {
      if (this.#book.size === 0) return findings
      const why = covered ? 'The run reports its allocator, which is followed instead.' : undefined
      const ended = this.#book.resolveWhere((finding) => finding.evidence.source === 'device' && finding.subject.gpu === gpu, at, why)
      return both(findings, ended)
    }
    if (!confirmed) return findings
    const subject = this.#subject(gpu, dominant)
    // A leaking process needs no second finding for the whole GPU.
    const others = this.#book.keys().filter((key) => this.#book.get(key)?.subject.gpu === gpu && key !== this.#book.key(subject))
    if (dominant === null && others.length > 0) return findings
    const name = `${dominant === null ? 'Memory' : nameOf(dominant)} on ${this.#map.label(gpu)}`
    return both(findings, this.#raise(subject, at, name, watch, watch.leak, total, 'device'))
  }

  #process(process: ProcessView, at: number, used: number, total: number, covered: boolean): readonly Finding[] {
    const held = process.memoryUsedBytes
    if (held === null) return NO_FINDINGS
    const watch = this.#watches.watch(`pid ${process.gpu} ${process.pid}`)
    // Free memory is the GPU's.
    const confirmed = watch.push({ at, position: at / 1000, bytes: held, peakBytes: Math.max(held, used), capacityBytes: total })
    const subject = this.#subject(process.gpu, process)
    if (watch.leak === null || covered) return this.#end(subject, at, 'process')
    return confirmed
      ? this.#raise(subject, at, `${nameOf(process)} on ${this.#map.label(process.gpu)}`, watch, watch.leak, total, 'process')
      : NO_FINDINGS
  }

  #hostMemory(process: ProcessView, at: number): readonly Finding[] {
    // Only a recording of an earlier version says no more of it.
    const resident = this.#trees.hasTrees ? null : (process.info?.residentBytes ?? null)
    if (resident === null || this.#hostTotal === null || this.#hostTotal <= 0) return NO_FINDINGS
    const watch = this.#watches.watch(`host ${process.gpu} ${process.pid}`)
    if (watch.lastSeenAt !== null && Math.abs(at - watch.lastSeenAt) < HOST_EVERY_MS) return NO_FINDINGS
    const confirmed = watch.push({ at, position: at / 1000, bytes: resident, capacityBytes: this.#hostTotal })
    const subject = subjectOf({ pid: process.pid, user: process.info?.user ?? null })
    if (watch.leak === null) return this.#end(subject, at, 'host memory')
    return confirmed ? this.#raise(subject, at, nameOf(process), watch, watch.leak, this.#hostTotal, 'host memory') : NO_FINDINGS
  }

  #step(step: TrainingStep): readonly Finding[] {
    this.#trees.noteStep(step)
    const allocated = step.memoryAllocatedBytes
    if (allocated === null || !Number.isFinite(allocated)) return NO_FINDINGS
    const gpu = this.#map.noteStep(step)
    const key = rankKey(step.run, step.rank)
    const { ranks } = this.#watches
    const watch = ranks.get(key) ?? ranks.admit(key, step.at, () => new LeakWatch('steps', this.#options.caution))
    if (watch === null) return NO_FINDINGS
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
    if (watch.leak === null) return this.#end(subject, step.at, 'allocator')
    if (!confirmed && !this.#hasNewLine(subject)) return NO_FINDINGS
    const where = gpu === null ? '' : ` on ${this.#map.label(gpu)}`
    const name = `Run ${step.run}${step.rank > 0 ? `, rank ${step.rank}` : ''}${where}`
    return this.#raise(subject, step.at, name, watch, watch.leak, capacity, 'allocator')
  }

  #run(run: Run): readonly Finding[] {
    this.#lines.note(run)
    if (run.endedAt === null) {
      this.#map.noteRun(run)
      return NO_FINDINGS
    }
    // The growth was the run's: the watches of the GPU and the process, which take over, start again.
    for (const gpu of this.#map.gpusOf(run.id)) {
      this.#watches.get(this.#watches.keyOfGpu(gpu))?.restart()
      if (run.pid !== null) this.#watches.get(`pid ${gpu} ${run.pid}`)?.restart()
    }
    this.#map.noteRun(run)
    this.#watches.ranks.deleteRun(run.id)
    this.#trees.runEnded(run.id)
    return this.#book.resolveWhere((finding) => finding.subject.run === run.id, run.endedAt, 'The run has ended.')
  }

  /** Also drops runs that stopped silently. */
  #host(sample: HostSample): readonly Finding[] {
    this.#hostTotal = sample.memoryTotalBytes
    let findings = dropSilentRanks(this.#watches.ranks, this.#book, sample.at)
    for (const { subject, name, watch, confirmed, capacity, roomBytes } of this.#trees.take(sample)) {
      if (watch.leak === null) findings = both(findings, this.#end(subject, sample.at, 'host memory'))
      else if (confirmed || this.#hasNewLine(subject))
        findings = both(findings, this.#raise(subject, sample.at, name, watch, watch.leak, capacity, 'host memory', roomBytes))
    }
    for (const subject of this.#trees.gone(sample.at)) findings = both(findings, this.#end(subject, sample.at, 'host memory'))
    return findings
  }

  /** Ends the watches of processes that left; an empty GPU starts again. */
  #processesChanged(sample: GpuSample): readonly Finding[] {
    const { gpu, processes, at } = sample
    if (processes === null) return NO_FINDINGS
    const gone = this.#processes.note(gpu, processes)
    let findings = NO_FINDINGS
    for (const pid of gone.pids) {
      this.#watches.delete(`pid ${gpu} ${pid}`)
      this.#watches.delete(`host ${gpu} ${pid}`)
      findings = both(
        findings,
        this.#book.resolveWhere((one) => one.subject.pid === pid, at, `Process ${pid} has ended.`),
      )
    }
    if (gone.isEveryone) {
      this.#watches.get(this.#watches.keyOfGpu(gpu))?.restart()
      findings = both(
        findings,
        this.#book.resolveWhere((one) => one.subject.gpu === gpu, at, ALL_ENDED),
      )
      for (const key of this.#map.ranksOn(gpu)) {
        this.#watches.ranks.delete(key)
        findings = both(findings, this.#book.resolveRank(key, at, ALL_ENDED))
      }
    }
    return findings
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
    roomBytes: Reading = null,
  ): readonly Finding[] {
    const key = this.#book.key(subject)
    const isNews = this.#hasNewLine(subject)
    if (!isNews && !this.#book.due(key, at, 'warning')) return NO_FINDINGS
    const since = this.#book.get(key)?.since ?? at - (leak.to - leak.from) * watch.msPerUnit
    const line = this.#lines.of(subject, since)
    // The book repeats a finding only after a while; the line behind it is news at once.
    if (isNews) this.#book.resolve(key, at)
    return this.#book.raise(subject, at, {
      ...leakDraft({ at, name, leak, msPerUnit: watch.msPerUnit, capacity, source, line, roomBytes }),
      since,
    })
  }

  /** A line was recorded that the finding does not name yet. */
  #hasNewLine(subject: FindingSubject): boolean {
    const before = this.#book.get(this.#book.key(subject))
    const line = before === undefined ? null : this.#lines.of(subject, before.since)
    return line !== null && before?.evidence.line !== placeText(line)
  }
}

/** Without a known GPU: the next power of two above 1.25 times the need. */
function assumedCapacity(needed: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, 1.25 * needed)))
}

function nameOf(process: ProcessView): string {
  return `Process ${process.pid}${process.info?.name ? ` (${process.info.name})` : ''}`
}

export const leak: DetectorKind<LeakOptions> = {
  name: 'leak',
  about:
    'Memory keeps growing and is never freed: of a GPU, a process, the allocator of a run, or the host memory of a run or process and its children.',
  severities: ['warning'],
  inputs: ['gpu', 'step', 'run', 'device', 'host'],
  charts: [MEMORY_CHART],
  defaults: DEFAULTS,
  create: (options, maxRuns) => new LeakDetector(options, maxRuns),
}
