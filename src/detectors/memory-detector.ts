/** What the detectors of memory share: who runs on which GPU, which processes left it, and runs that end, fall silent or are too many. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { Detector, DetectorInput } from '../core/detector-contract.ts'
import { RunMap, type RunMapState } from '../core/memory/run-map.ts'
import type { Finding, FindingSubject, GpuSample, HostSample, ProcessView, Run, TrainingStep } from '../core/model.ts'
import { FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'

export const ALL_ENDED = 'All processes on the GPU have ended.'
export const TOO_MANY = 'Not followed anymore: too many runs at once.'
export const SILENT = 'The run has reported nothing for 10 min.'
const SILENT_MS = 600_000
const GPU_CAP = 64

export function isSilent(lastAt: number | null, at: number): boolean {
  return lastAt !== null && at - lastAt > SILENT_MS
}

interface Saved {
  readonly map: RunMapState
  readonly findings: unknown
}

export abstract class MemoryDetector<State extends object> implements Detector {
  protected readonly book: FindingBook
  protected readonly map = new RunMap()

  constructor(name: string) {
    this.book = new FindingBook(name)
  }

  protected abstract gpu(sample: GpuSample, processes: readonly ProcessView[]): readonly Finding[]
  protected abstract step(step: TrainingStep): readonly Finding[]
  protected abstract host(sample: HostSample): readonly Finding[]
  /** The map still knows where the run was. */
  protected abstract runEnded(run: Run, at: number): readonly Finding[]
  protected abstract save(): State
  protected abstract load(state: State): void

  accept(input: DetectorInput): readonly Finding[] {
    switch (input.type) {
      case 'gpu':
        return this.gpu(input.sample, input.processes)
      case 'step':
        return this.step(input.step)
      case 'run': {
        const ended = input.run.endedAt === null ? NO_FINDINGS : this.runEnded(input.run, input.run.endedAt)
        this.map.noteRun(input.run)
        return ended
      }
      case 'host':
        return this.host(input.sample)
      case 'device':
        this.map.noteDevice(input.device)
        return NO_FINDINGS
      default:
        return NO_FINDINGS
    }
  }

  snapshot(): unknown {
    return { ...this.save(), map: this.map.snapshot(), findings: this.book.snapshot() }
  }

  restore(state: unknown): void {
    const { map, findings } = state as Saved
    this.map.restore(map)
    this.book.restore(findings)
    this.load(state as State)
  }

  protected subjectOfGpu(gpu: string, process: ProcessView | null = null): FindingSubject {
    return subjectOf({ gpu, gpuIndex: this.map.index(gpu), pid: process?.pid ?? null, user: process?.info?.user ?? null })
  }

  protected subjectOfStep({ run, rank }: TrainingStep): FindingSubject {
    const gpu = this.map.gpuOf(run, rank)
    return subjectOf({ run, rank, gpuIndex: gpu === null ? null : this.map.index(gpu) })
  }
}

/** `resnet`, `resnet, rank 3`. */
export function runName({ run, rank }: TrainingStep): string {
  return rank > 0 ? `${run}, rank ${rank}` : run
}

/** Which processes left a GPU since its last list of them. */
export class GpuUsers extends BoundedMap<string, readonly number[]> {
  constructor() {
    super(GPU_CAP)
  }

  /** null: nobody came or left. `all`: none of the earlier ones is there anymore, what comes next is another program. */
  note({ gpu, processes }: GpuSample): { readonly gone: readonly number[]; readonly all: boolean } | null {
    const before = this.get(gpu)
    if (processes === null) return null
    if (before !== undefined && before.length === processes.length && processes.every((one, i) => one.pid === before[i])) return null
    const pids = processes.map((one) => one.pid)
    this.set(gpu, pids)
    const gone = (before ?? []).filter((pid) => !pids.includes(pid))
    return { gone, all: before !== undefined && gone.length === before.length }
  }
}
