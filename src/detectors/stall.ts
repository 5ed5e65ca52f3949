/** Training has stalled: no step for ten step times; without reported steps, a GPU that went idle in the middle of its work. */
import { BoundedMap } from '../core/bounded-map.ts'
import { type Detector, type DetectorInput, type DetectorKind, MOST_RUNS } from '../core/detector-contract.ts'
import type { Finding, GpuSample, ProcessView, Reading, Run, TrainingStep } from '../core/model.ts'
import { STEP_TIME_CHART, UTILIZATION_CHART } from './charts.ts'
import { EndedRuns } from './ended-runs.ts'
import { both, FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { advance, observedTime } from './observed-time.ts'
import { RunTable } from './run-table.ts'
import { excuseOf } from './stall-excuse.ts'
import { gpuPace, largest, quietness } from './stall-gpu.ts'
import { gpuDraft, placeText, runDraft } from './stall-message.ts'
import { hangOf, isStepping, limitOf, moveOn, type Pace, pace, type RunFacts } from './stall-steps.ts'
import {
  areLeftAtWork,
  awaitsSample,
  countLeft,
  isAnyMemoryHeld,
  isUsedBy,
  lastWorked,
  notePids,
  ownPids,
  type WatchedGpu,
} from './stall-tenancy.ts'
import { coresSince, noteCores, noteWork, work } from './stall-work.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

type StallOptions = Thresholds<'stall'>

const GPU_CAP = 256
/** A run that is silent for this long is over. */
const FORGET_MS = 3_600_000
/** A gap in the samples is not a silence of the run. */
const HOLE_MS = 10_000
const SILENT = 'has been silent for an hour'

export const stall: DetectorKind<StallOptions> = {
  name: 'stall',
  about:
    'Training has stalled: no step for ten step times, or a GPU went idle in the middle of its work. Names the rank and the line that hold it up.',
  severities: ['info', 'warning'],
  inputs: ['gpu', 'step', 'run', 'device', 'host'],
  findsAgainSeconds: 60,
  charts: [UTILIZATION_CHART, STEP_TIME_CHART],
  defaults: THRESHOLDS.stall,
  create: (options, maxRuns) => new StallDetector(options, maxRuns),
}

class StallDetector implements Detector {
  readonly #options: StallOptions
  readonly #book = new FindingBook('stall')
  readonly #runs: RunTable<Pace>
  /** A run is announced before its first step. */
  readonly #facts: BoundedMap<string, RunFacts>
  readonly #gpus = new BoundedMap<string, WatchedGpu>(GPU_CAP)
  readonly #past: EndedRuns
  readonly #time = observedTime()
  #intervalMs = 0
  /** Counts changes of the processes on the GPUs. */
  #pidsVersion = 0

  constructor(options: StallOptions, maxRuns = MOST_RUNS) {
    this.#options = options
    this.#runs = new RunTable<Pace>({ cap: maxRuns, lastAt: ({ lastAt }) => lastAt, isOpen: (id) => this.#book.has(this.#keyOf(id)) })
    this.#facts = new BoundedMap(maxRuns, { isRenewed: true })
    this.#past = new EndedRuns(maxRuns)
  }

  accept(input: DetectorInput): readonly Finding[] {
    switch (input.type) {
      case 'gpu':
        return this.#sample(input.sample, input.processes)
      case 'step':
        return this.#step(input.step)
      case 'run':
        return this.#run(input.run)
      case 'host':
        return this.#host(input.sample.at)
      case 'device': {
        const gpu = this.#gpu(input.device.id)
        gpu.label = input.device.label
        gpu.index = input.device.index
        return NO_FINDINGS
      }
      default:
        return NO_FINDINGS
    }
  }

  unfollowed(): Iterable<string> {
    return this.#runs.missed()
  }

  snapshot(): unknown {
    return {
      findings: this.#book.snapshot(),
      runs: this.#runs.saved(),
      facts: this.#facts.saved(),
      past: this.#past.snapshot(),
      gpus: this.#gpus.saved(),
      time: { ...this.#time },
      intervalMs: this.#intervalMs,
      pidsVersion: this.#pidsVersion,
    }
  }

  restore(state: unknown): void {
    const saved = state as {
      findings: unknown
      runs: unknown
      facts: unknown
      past: unknown
      gpus: unknown
      time: object
      intervalMs: number
      pidsVersion: number
    }
    this.#book.restore(saved.findings)
    this.#runs.load(saved.runs)
    this.#facts.load(saved.facts)
    this.#past.restore(saved.past)
    this.#gpus.load(saved.gpus)
    Object.assign(this.#time, saved.time)
    this.#intervalMs = saved.intervalMs
    this.#pidsVersion = saved.pidsVersion
  }

  #gpu(id: string): WatchedGpu {
    return (
      this.#gpus.get(id) ??
      this.#gpus.keep(id, { id, label: id, index: null, pace: gpuPace(), work: work(), pids: [], seenMs: 0, memoryUsedBytes: null })
    )
  }

  #sample(sample: GpuSample, processes: readonly ProcessView[]): readonly Finding[] {
    if (!this.#advance(sample.at)) return NO_FINDINGS
    const gpu = this.#gpu(sample.gpu)
    gpu.memoryUsedBytes = sample.memoryUsedBytes
    gpu.seenMs = this.#time.ms
    if (notePids(gpu, processes)) this.#pidsVersion++
    if (this.#runs.size > 0) {
      noteWork(gpu.work, sample, this.#time.ms, this.#areStepping())
      noteCores(gpu.work, processes, this.#time.ms)
    }
    let findings: readonly Finding[] = NO_FINDINGS
    for (const id of this.#runs.dropSilent(sample.at, FORGET_MS)) findings = both(findings, this.#drop(id, sample.at, SILENT))
    for (const run of this.#runs.values()) findings = both(findings, this.#judge(run, sample.at, sample.utilizationRatio))
    return both(findings, this.#judgeGpu(gpu, sample, processes))
  }

  /** Where there is no GPU, the host is the clock. */
  #host(at: number): readonly Finding[] {
    if (this.#gpus.size > 0 || this.#runs.size === 0 || !this.#advance(at)) return NO_FINDINGS
    let findings: readonly Finding[] = NO_FINDINGS
    for (const run of this.#runs.values()) findings = both(findings, this.#judge(run, at, null))
    return findings
  }

  #advance(at: number): boolean {
    const passed = at - this.#time.lastAt
    const hole = this.#intervalMs === 0 ? 300_000 : Math.max(HOLE_MS, 5 * this.#intervalMs)
    if (!advance(this.#time, at, hole)) return false
    if (passed > 0 && passed < 300_000) this.#intervalMs += (passed - this.#intervalMs) / (this.#intervalMs === 0 ? 1 : 8)
    return true
  }

  #step(step: TrainingStep): readonly Finding[] {
    if (this.#past.isPast(step)) return NO_FINDINGS
    let run = this.#runs.get(step.run)
    if (!run) {
      // Spooled steps that arrive hours later say nothing about now.
      if (this.#time.lastAt - step.at > FORGET_MS) return NO_FINDINGS
      const said = this.#book.get(this.#keyOf(step.run))?.severity ?? null
      const made = this.#runs.admit(step.run, step.at, () => ({ ...pace(step, this.#time, this.#facts.get(step.run)), said }))
      if (made === null) return NO_FINDINGS
      run = made
    } else if (!moveOn(run, step, this.#time, limitOf(run, this.#options))) return NO_FINDINGS
    if (run.pidsVersion !== this.#pidsVersion) {
      run.pidsVersion = this.#pidsVersion
      run.pids = ownPids(run, this.#gpus)
    }
    if (run.said === null) return NO_FINDINGS
    run.said = null
    return this.#book.resolve(this.#keyOf(run.run), step.at, `Run ${run.run} makes steps again: step ${step.step}.`)
  }

  #run(run: Run): readonly Finding[] {
    this.#past.note(run)
    const known = this.#runs.get(run.id)
    if (known) {
      known.user = run.user
      known.gpus = [...run.gpus]
      known.pid = run.pid
      known.hang = run.hang ?? null
    }
    if (run.endedAt === null) this.#facts.set(run.id, { user: run.user, gpus: [...run.gpus], pid: run.pid })
    else this.#facts.delete(run.id)
    return run.endedAt === null ? NO_FINDINGS : this.#drop(run.id, run.endedAt, 'has ended')
  }

  #drop(id: string, at: number, why: string): readonly Finding[] {
    this.#runs.delete(id)
    return this.#book.resolve(this.#keyOf(id), at, `Run ${id} ${why}.`)
  }

  #keyOf(id: string): string {
    return this.#book.key(subjectOf({ run: id }))
  }

  #judge(run: Pace, at: number, utilizationRatio: Reading): readonly Finding[] {
    // A step from the future has a wrong clock.
    run.progressMs = Math.min(run.progressMs, this.#time.ms)
    const silentMs = this.#time.ms - run.progressMs
    const limitMs = limitOf(run, this.#options)
    if (run.said === null && silentMs <= limitMs) return NO_FINDINGS
    if (run.said === null && awaitsSample(run, this.#gpus.values(), run.progressMs + limitMs, this.#time.ms, this.#intervalMs))
      return NO_FINDINGS
    if (silentMs > FORGET_MS) return this.#drop(run.run, at, SILENT)
    const left = run.pidsVersion === this.#pidsVersion ? run.pids.length : countLeft(run, this.#gpus.values())
    if (left === 0 && this.#gpus.size > 0 && (run.pids.length > 0 || !isAnyMemoryHeld(this.#gpus.values())))
      return this.#drop(run.run, at, 'has left its GPUs')
    if (left < run.pids.length && this.#isLeftToOthers(run, limitMs)) return this.#drop(run.run, at, 'has left its GPU to others')
    // A stall lasts until a step comes, whatever the GPU does in between.
    const excuse = run.said === 'warning' ? null : this.#excuse(run, silentMs, limitMs)
    const severity = excuse === null ? 'warning' : 'info'
    run.said = severity
    const subject = subjectOf({ run: run.run, user: run.user })
    const key = this.#book.key(subject)
    const before = this.#book.get(key)
    const hang = hangOf(run)
    const isNews = hang !== null && before !== undefined && before.evidence.place !== placeText(hang)
    if (!isNews && !this.#book.due(key, at, severity)) return NO_FINDINGS
    // The book repeats a finding only after a while; where it stands is news at once.
    if (isNews) this.#book.resolve(key, at)
    const draft = runDraft({ run, at, utilizationRatio, silentMs, left, excuse, hang })
    return this.#book.raise(subject, at, { ...draft, ...(before ? { since: before.since } : {}) })
  }

  #excuse(run: Pace, silentMs: number, limitMs: number): string | null {
    const nowMs = this.#time.ms
    const isStuck = hangOf(run)?.isStuck ?? false
    let [copiedMs, cores] = [-1, 0]
    for (const gpu of this.#gpus.values()) {
      if (!isUsedBy(gpu, run)) continue
      copiedMs = Math.max(copiedMs, gpu.work.copiedMs)
      cores = Math.max(cores, coresSince(gpu.work, run.progressMs, nowMs))
    }
    return excuseOf(
      { run, nowMs, silentMs, limitMs, workedMs: lastWorked(run, this.#gpus.values()), copiedMs, cores, isStuck },
      this.#options,
    )
  }

  /** A process left, another run makes steps, and every GPU in use works: the run ended silently. (A lost rank leaves others behind that wait.) */
  #isLeftToOthers(run: Pace, limitMs: number): boolean {
    const now = this.#time.ms
    const roomMs = 2 * this.#intervalMs
    for (const other of this.#runs.values())
      if (other.progressMs > run.progressMs + limitMs / 2) return areLeftAtWork(run, this.#gpus.values(), now - limitMs - roomMs)
    return false
  }

  #areStepping(): boolean {
    for (const run of this.#runs.values()) if (!isStepping(run, this.#time)) return false
    return true
  }

  #judgeGpu(gpu: WatchedGpu, sample: GpuSample, processes: readonly ProcessView[]): readonly Finding[] {
    const { pace: state } = gpu
    const holder = largest(processes)
    const before = state.pid
    const severity = quietness(state, sample, holder, this.#time.ms, this.#options)
    // Reported steps show it better and sooner.
    const raised = this.#runs.size > 0 ? null : severity
    if (raised === null && state.said === null) return NO_FINDINGS
    if (raised === null || before !== state.pid) {
      state.said = null
      const subject = subjectOf({ gpu: gpu.id, pid: before })
      return this.#book.resolve(this.#book.key(subject), sample.at, `GPU ${gpu.label} is not idle anymore.`)
    }
    state.said = raised
    const quietMs = this.#time.ms - state.workedMs
    const subject = subjectOf({ gpu: gpu.id, gpuIndex: gpu.index, pid: state.pid, user: holder?.info?.user ?? null })
    if (!this.#book.due(this.#book.key(subject), sample.at, raised)) return NO_FINDINGS
    const memoryBytes = holder?.memoryUsedBytes ?? sample.memoryUsedBytes ?? 0
    return this.#book.raise(subject, sample.at, gpuDraft(gpu.label, state, raised, sample.at, quietMs, memoryBytes))
  }
}
