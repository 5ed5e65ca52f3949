/** What training runs say of their allocators on one GPU, and how that fits the device's own figures. */
import { allocatorBytes } from '../../../../src/core/memory/fragmentation.ts'
import { type AllocatorFigures, type Ledger, type LedgerName, ledgerOf } from '../../../../src/core/memory/ledger.ts'
import type { GpuProcess, GpuSample, Reading, TrainingStep } from '../../../../src/core/model.ts'
import { type GpuFacts, placeOfRank } from '../../run-gpu.ts'

export interface RunFacts {
  readonly id: string
  readonly name: string
  readonly gpus: readonly string[]
  readonly pid: Reading
  readonly endedAt: Reading
}

/** The latest word of one rank's allocator. */
export interface Allocator {
  readonly step: TrainingStep
  readonly run: RunFacts | null
  /** Its GPU was concluded from how much memory it reserved. */
  readonly isGuess: boolean
}

/** Allocator figures count as current for this long, or for twenty steps. */
const FRESH_MS = 30_000
const FRESH_STEPS = 20

export function isFresh({ at, stepSeconds }: TrainingStep, now: number): boolean {
  return now - at <= Math.max(FRESH_MS, FRESH_STEPS * 1000 * (stepSeconds ?? 0))
}

export function allocatorsOn(
  gpu: string,
  steps: readonly TrainingStep[],
  runs: ReadonlyMap<string, RunFacts>,
  gpus: readonly GpuFacts[],
): readonly Allocator[] {
  return steps.flatMap((step) => {
    if (step.memoryAllocatedBytes === null && step.memoryReservedBytes === null) return []
    const run = runs.get(step.run) ?? null
    const place = placeOfRank(run, step.rank, step.memoryReservedBytes, gpus)
    return place?.gpu === gpu ? [{ step, run, isGuess: place.isGuess }] : []
  })
}

/** The device's memory at this moment; allocators that have ended or fallen silent no longer count. */
export function ledgerNow(sample: GpuSample, totalBytes: Reading, allocators: readonly Allocator[], now: number): Ledger | null {
  const current = allocators.filter(({ step, run }) => isFresh(step, now) && (run === null || run.endedAt === null))
  const taken = new Set<number>()
  return ledgerOf({
    totalBytes: sample.memoryTotalBytes ?? totalBytes,
    usedBytes: sample.memoryUsedBytes,
    driverReservedBytes: sample.memoryReservedBytes,
    processes: sample.processes,
    allocators: current.map((allocator): AllocatorFigures => {
      const pid = pidOf(allocator, sample.processes ?? [], taken)
      if (pid !== null) taken.add(pid)
      return { pid, ...allocatorBytes(allocator.step) }
    }),
  })
}

/** A step does not say in which process it ran: the run's own where it is on this GPU, else the largest that is nobody else's. */
function pidOf({ run }: Allocator, processes: readonly GpuProcess[], taken: ReadonlySet<number>): Reading {
  const free = processes.filter(({ pid }) => !taken.has(pid))
  const said = free.find(({ pid }) => pid === run?.pid)
  const largest = free.toSorted((a, b) => (b.memoryUsedBytes ?? 0) - (a.memoryUsedBytes ?? 0))[0]
  return (said ?? largest)?.pid ?? null
}

export interface Reserve {
  readonly reservedBytes: number
  readonly parts: readonly { readonly name: LedgerName; readonly bytes: number; readonly explanation: string }[]
  /** Fragmented ÷ reserved; null when the allocator does not report it. */
  readonly fragmentedRatio: Reading
}

/** How one allocator's reserve is divided: the ledger of a device that is nothing but this reserve. */
export function reserveOf(step: TrainingStep): Reserve | null {
  const reservedBytes = step.memoryReservedBytes
  if (reservedBytes === null || reservedBytes <= 0) return null
  const whole = { totalBytes: reservedBytes, usedBytes: reservedBytes, driverReservedBytes: null, processes: null }
  const ledger = ledgerOf({ ...whole, allocators: [{ pid: null, ...allocatorBytes(step) }] })
  const parts = (ledger?.entries ?? []).filter(({ bytes }) => bytes > 0)
  const split = parts.find(({ name }) => name === 'torch_inactive_split')?.bytes ?? 0
  return { reservedBytes, parts, fragmentedRatio: step.memoryInactiveSplitBytes === null ? null : split / reservedBytes }
}

export interface Judgement {
  readonly words: string
  readonly tone: 'muted' | 'good' | 'plain' | 'warning' | 'critical'
}

export function judge(ratio: Reading): Judgement {
  if (ratio === null) return { words: 'This allocator does not report its fragmentation.', tone: 'muted' }
  if (ratio < 0.02) return { words: 'Almost none of it is fragmented.', tone: 'good' }
  if (ratio < 0.1) return { words: 'A little of it is fragmented: nothing to do.', tone: 'plain' }
  const share = ratio < 0.25 ? 'A noticeable part' : 'Much'
  return {
    words: `${share} of it is fragmented: large requests may not fit. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps.`,
    tone: ratio < 0.25 ? 'warning' : 'critical',
  }
}
