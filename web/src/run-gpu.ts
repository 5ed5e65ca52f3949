/** Which GPU a rank of a training run is on. */
import { isGpuOfRun } from '../../src/core/known/about-gpu.ts'
import type { Reading } from '../../src/core/model.ts'
import type { GpuCell } from './live/gpu-cell.ts'

export interface GpuFacts {
  readonly id: string
  readonly label: string
  readonly index: number
  readonly usedBytes: Reading
  readonly pids: readonly number[]
}

export interface RankPlace {
  readonly gpu: string
  /** Nobody said so: what its allocator reserved fits what this GPU has in use. */
  readonly isGuess: boolean
}

/** A device may hold this much more than the allocator reserved and still be taken for its own. */
const CONTEXT_BYTES = 4 * 1024 ** 3

/** Reading it subscribes to the GPU's samples. */
export function factsOf(cell: GpuCell): GpuFacts {
  const { label, index } = cell.info.value
  const sample = cell.sample.value
  return { id: cell.id, label, index, usedBytes: sample?.memoryUsedBytes ?? null, pids: sample?.processes?.map(({ pid }) => pid) ?? [] }
}

/** As the detectors see it: what the run says, then its process, then the GPU whose use fits. Null if not known. */
export function placeOfRank(
  run: { readonly gpus: readonly string[]; readonly pid: Reading } | null,
  rank: number,
  reservedBytes: Reading,
  gpus: readonly GpuFacts[],
): RankPlace | null {
  const said = run?.gpus.flatMap((name) => gpus.find((gpu) => isGpuOfRun(gpu, name)) ?? []) ?? []
  const pid = run?.pid ?? null
  const candidates = said.length > 0 ? said : pid === null ? [] : gpus.filter(({ pids }) => pids.includes(pid))
  const sure = candidates[rank % Math.max(1, candidates.length)] ?? (gpus.length === 1 ? gpus[0] : undefined)
  if (sure) return { gpu: sure.id, isGuess: false }
  return reservedBytes === null ? null : nearest(reservedBytes, gpus)
}

function nearest(reservedBytes: number, gpus: readonly GpuFacts[]): RankPlace | null {
  let best: RankPlace | null = null
  let smallest = CONTEXT_BYTES
  for (const { id, usedBytes } of gpus) {
    const apart = usedBytes === null ? CONTEXT_BYTES : Math.abs(usedBytes - reservedBytes)
    if (apart >= smallest) continue
    smallest = apart
    best = { gpu: id, isGuess: true }
  }
  return best
}
