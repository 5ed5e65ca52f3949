/** Training that stands still: no step for ten step times; without training figures, a GPU that fell silent in the middle of its work. */
import type { Detector, DetectorInput, DetectorKind } from '../kinds.ts'
import type { Finding, GpuSample, ProcessView, Reading, Run, TrainingStep } from '../model.ts'
import { BoundedMap } from './bounded-map.ts'
import { EndedRuns } from './ended-runs.ts'
import { both, FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { advance, observedTime } from './observed-time.ts'
import { median } from './rolling-median.ts'
import { type GpuPace, type GpuPaceOptions, gpuPace, largest, quietness } from './stall-gpu.ts'
import { limitOf, moveOn, type Pace, pace } from './stall-steps.ts'
import { THRESHOLDS } from './thresholds.ts'
import { bytes, duration } from './words.ts'

export interface StallOptions extends GpuPaceOptions {
  readonly stepTimes: number
  readonly graceSeconds: number
}

interface Gpu {
  readonly id: string
  label: string
  index: number | null
  readonly pace: GpuPace
  pids: number[]
  memoryUsedBytes: Reading
}

const RUN_CAP = 32
const GPU_CAP = 256
const PID_CAP = 64
/** A run that has been silent for so long is over, whatever it was. */
const FORGET_MS = 3_600_000
/** A hole in the samples is not a silence of the run. */
const HOLE_MS = 10_000
/** A process that holds less is about to go, or has only looked in. */
const HELD_BYTES = 256 * 1024 * 1024

export const stall: DetectorKind<StallOptions> = {
  name: 'stall',
  defaults: THRESHOLDS.stall,
  create: (options) => new StallDetector(options),
}

class StallDetector implements Detector {
  readonly #options: StallOptions
  readonly #book = new FindingBook('stall')
  readonly #runs = new BoundedMap<string, Pace>(RUN_CAP)
  readonly #gpus = new BoundedMap<string, Gpu>(GPU_CAP)
  readonly #past = new EndedRuns()
  readonly #time = observedTime()
  #intervalMs = 0
  /** Counts every change of who is on the GPUs. */
  #pidsVersion = 0

  constructor(options: StallOptions) {
    this.#options = options
  }

  accept(input: DetectorInput): readonly Finding[] {
    switch (input.type) {
      case 'gpu':
        return this.#sample(input.sample, input.processes)
      case 'step':
        return this.#step(input.step)
      case 'run':
        return this.#run(input.run)
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

  snapshot(): unknown {
    return {
      findings: this.#book.snapshot(),
      runs: this.#runs.entries(),
      past: this.#past.snapshot(),
      gpus: this.#gpus.entries(),
      time: { ...this.#time },
      intervalMs: this.#intervalMs,
      pidsVersion: this.#pidsVersion,
    }
  }

  restore(state: unknown): void {
    const saved = state as {
      findings: unknown
      runs: unknown
      past: unknown
      gpus: unknown
      time: object
      intervalMs: number
      pidsVersion: number
    }
    this.#book.restore(saved.findings)
    this.#runs.load(saved.runs)
    this.#past.restore(saved.past)
    this.#gpus.load(saved.gpus)
    Object.assign(this.#time, saved.time)
    this.#intervalMs = saved.intervalMs
    this.#pidsVersion = saved.pidsVersion
  }

  #gpu(id: string): Gpu {
    return this.#gpus.get(id) ?? this.#gpus.set(id, { id, label: id, index: null, pace: gpuPace(), pids: [], memoryUsedBytes: null })
  }

  #sample(sample: GpuSample, processes: readonly ProcessView[]): readonly Finding[] {
    const passed = sample.at - this.#time.lastAt
    const hole = this.#intervalMs === 0 ? 300_000 : Math.max(HOLE_MS, 5 * this.#intervalMs)
    if (!advance(this.#time, sample.at, hole)) return NO_FINDINGS
    if (passed > 0 && passed < 300_000) this.#intervalMs += (passed - this.#intervalMs) / (this.#intervalMs === 0 ? 1 : 8)
    const gpu = this.#gpu(sample.gpu)
    gpu.memoryUsedBytes = sample.memoryUsedBytes
    this.#notePids(gpu, processes)
    let findings: readonly Finding[] = NO_FINDINGS
    for (const run of this.#runs.values()) findings = both(findings, this.#judge(run, sample))
    return both(findings, this.#judgeGpu(gpu, sample, processes))
  }

  #notePids(gpu: Gpu, processes: readonly ProcessView[]): void {
    let count = 0
    let same = true
    for (const process of processes) {
      if (process.memoryUsedBytes !== null && process.memoryUsedBytes < HELD_BYTES) continue
      if (gpu.pids[count] !== process.pid) same = false
      count++
    }
    if (same && count === gpu.pids.length) return
    this.#pidsVersion++
    gpu.pids = processes
      .filter((process) => process.memoryUsedBytes === null || process.memoryUsedBytes >= HELD_BYTES)
      .slice(0, PID_CAP)
      .map((process) => process.pid)
  }

  #step(step: TrainingStep): readonly Finding[] {
    if (this.#past.isPast(step)) return NO_FINDINGS
    let run = this.#runs.get(step.run)
    if (!run) {
      // Steps that were spooled and come hours later tell nothing about now.
      if (this.#time.lastAt - step.at > FORGET_MS) return NO_FINDINGS
      run = this.#runs.set(step.run, pace(step, this.#time))
    } else if (!moveOn(run, step, this.#time, limitOf(run, this.#options))) return NO_FINDINGS
    if (run.pidsVersion !== this.#pidsVersion) {
      run.pidsVersion = this.#pidsVersion
      run.pids = [...this.#gpus.values()].flatMap((gpu) => gpu.pids).slice(0, PID_CAP)
    }
    if (!run.stalled) return NO_FINDINGS
    run.stalled = false
    return this.#book.resolve(this.#book.key(subjectOf({ run: run.run })), step.at, `Run ${run.run} moves again: step ${step.step}.`)
  }

  #run(run: Run): readonly Finding[] {
    this.#past.note(run)
    const known = this.#runs.get(run.id)
    if (known) known.user = run.user
    return run.endedAt === null ? NO_FINDINGS : this.#drop(run.id, run.endedAt, 'has ended')
  }

  #drop(id: string, at: number, why: string): readonly Finding[] {
    this.#runs.delete(id)
    return this.#book.resolve(this.#book.key(subjectOf({ run: id })), at, `Run ${id} ${why}.`)
  }

  #judge(run: Pace, sample: GpuSample): readonly Finding[] {
    const silentMs = this.#time.ms - run.progressMs
    const limitMs = run.stalled ? 0 : limitOf(run, this.#options)
    if (silentMs <= limitMs) return NO_FINDINGS
    if (silentMs > FORGET_MS) return this.#drop(run.run, sample.at, 'has been silent for an hour')
    const left = this.#left(run)
    if (left === 0 && (run.pids.length > 0 || !this.#anyMemoryHeld())) return this.#drop(run.run, sample.at, 'has left its GPUs')
    run.stalled = true
    const subject = subjectOf({ run: run.run, user: run.user })
    if (!this.#book.due(this.#book.key(subject), sample.at, 'warning')) return NO_FINDINGS
    const usualMs = median(run.gaps)
    return this.#book.raise(subject, sample.at, {
      severity: 'warning',
      since: sample.at - silentMs,
      message: `Run ${run.run} stands still: no step for ${duration(silentMs)} after step ${run.lastStep}; usually there is one every ${duration(usualMs)}.`,
      evidence: {
        silent_seconds: Math.round(silentMs / 10) / 100,
        usual_step_seconds: Math.round(usualMs) / 1000,
        last_step: run.lastStep,
        utilization_ratio: sample.utilizationRatio,
        processes_left: run.pids.length === 0 ? null : left,
        processes_before: run.pids.length,
      },
      confidence: run.pids.length === 0 ? 0.7 : 0.9,
      advice: [
        'See where it hangs: py-spy dump --pid PID; a collective that waits for a lost rank looks like this.',
        'A slow disk, a data loader without workers, or a long checkpoint are the harmless causes.',
      ],
    })
  }

  /** How many of the run's processes are still on a GPU. */
  #left(run: Pace): number {
    if (run.pidsVersion === this.#pidsVersion) return run.pids.length
    let left = 0
    for (const gpu of this.#gpus.values()) for (const pid of gpu.pids) if (run.pids.includes(pid)) left++
    return left
  }

  /** Inside a container the driver may list no process at all; then the memory tells whether anybody is there. */
  #anyMemoryHeld(): boolean {
    for (const gpu of this.#gpus.values()) if (gpu.memoryUsedBytes === null || gpu.memoryUsedBytes >= HELD_BYTES) return true
    return false
  }

  #judgeGpu(gpu: Gpu, sample: GpuSample, processes: readonly ProcessView[]): readonly Finding[] {
    const { pace: state } = gpu
    const holder = largest(processes)
    const before = state.pid
    const severity = quietness(state, sample, holder, this.#time.ms, this.#options)
    // Where steps are reported they tell it better and sooner.
    const raised = this.#runs.size > 0 ? null : severity
    if (raised === null && state.said === null) return NO_FINDINGS
    if (raised === null || before !== state.pid) {
      state.said = null
      const subject = subjectOf({ gpu: gpu.id, pid: before })
      return this.#book.resolve(this.#book.key(subject), sample.at, `The silence on GPU ${gpu.label} is over.`)
    }
    state.said = raised
    const quietMs = this.#time.ms - state.workedMs
    const subject = subjectOf({ gpu: gpu.id, gpuIndex: gpu.index, pid: state.pid, user: holder?.info?.user ?? null })
    if (!this.#book.due(this.#book.key(subject), sample.at, raised)) return NO_FINDINGS
    const memoryBytes = holder?.memoryUsedBytes ?? sample.memoryUsedBytes ?? 0
    return this.#book.raise(subject, sample.at, {
      severity: raised,
      since: sample.at - quietMs,
      message: `GPU ${gpu.label} has been silent for ${duration(quietMs)} after ${duration(state.busyMs)} of work, with ${bytes(memoryBytes)} still held${state.pid === null ? '' : ` by process ${state.pid}`}.`,
      evidence: {
        quiet_seconds: Math.round(quietMs / 100) / 10,
        busy_seconds: Math.round(state.busyMs / 100) / 10,
        longest_pause_seconds: Math.round(state.longestPauseMs / 100) / 10,
        memory_used_bytes: memoryBytes,
      },
      confidence: raised === 'warning' ? 0.7 : 0.5,
      advice: ['If it is a training run, see where it hangs (py-spy dump). With the SDK its steps would tell at once.'],
    })
  }
}
