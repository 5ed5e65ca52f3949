/** How much of what the allocator reserved is fragmented. Releasable cache is not fragmentation and is counted apart. */
import type { Reading, TrainingStep } from '../model.ts'

/** What an allocator says of itself. */
export interface AllocatorBytes {
  readonly allocatedBytes: Reading
  readonly reservedBytes: Reading
  readonly activeBytes: Reading
  readonly inactiveSplitBytes: Reading
}

export function allocatorBytes(step: TrainingStep): AllocatorBytes {
  return {
    allocatedBytes: step.memoryAllocatedBytes,
    reservedBytes: step.memoryReservedBytes,
    activeBytes: step.memoryActiveBytes,
    inactiveSplitBytes: step.memoryInactiveSplitBytes,
  }
}

export interface Fragmentation {
  /** inactive split ÷ reserved, 0–1; null when either is unknown or nothing is reserved. */
  readonly ratio: Reading
  readonly inactiveSplitBytes: Reading
  /** Whole unused segments: torch.cuda.empty_cache() frees them. */
  readonly releasableCacheBytes: Reading
  readonly releasableCacheRatio: Reading
  readonly level: 'none' | 'low' | 'medium' | 'high' | null
}

const MEDIUM = 0.1
const HIGH = 0.25
const LOW = 0.02

export function fragmentationOf(input: AllocatorBytes): Fragmentation {
  const { reservedBytes: reserved, inactiveSplitBytes: split } = input
  const active = input.activeBytes ?? input.allocatedBytes
  const known = reserved !== null && reserved > 0
  const ratio = known && split !== null ? clamp(split / reserved) : null
  const cache = known && split !== null && active !== null ? Math.max(0, reserved - active - split) : null
  return {
    ratio,
    inactiveSplitBytes: split,
    releasableCacheBytes: cache,
    releasableCacheRatio: cache === null || !known ? null : clamp(cache / reserved),
    level: ratio === null ? null : ratio >= HIGH ? 'high' : ratio >= MEDIUM ? 'medium' : ratio >= LOW ? 'low' : 'none',
  }
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value))
}
