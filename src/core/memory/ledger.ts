/** Where the memory of a GPU is: entries that always add up to its total, each with an explanation. */
import type { Reading } from '../model.ts'
import type { AllocatorBytes } from './fragmentation.ts'

export type LedgerName =
  | 'torch_allocated'
  | 'torch_rounding'
  | 'torch_pending_free'
  | 'torch_inactive_split'
  | 'torch_releasable_cache'
  | 'non_torch'
  | 'other_processes'
  | 'other'
  | 'driver_reserve'
  | 'free'

export interface LedgerEntry {
  readonly name: LedgerName
  readonly bytes: number
  readonly explanation: string
}

export interface AllocatorFigures extends AllocatorBytes {
  /** Its process; null when unknown. */
  readonly pid: Reading
  /** Before rounding up to blocks; only snapshots have it. */
  readonly requestedBytes?: Reading
}

export interface LedgerInput {
  readonly totalBytes: Reading
  readonly usedBytes: Reading
  readonly driverReservedBytes: Reading
  /** null: the list could not be read. */
  readonly processes: readonly { readonly pid: number; readonly memoryUsedBytes: Reading }[] | null
  readonly allocators: readonly AllocatorFigures[]
  /** The GPU has the memory of the host: what no process on it holds, the rest of the machine does. */
  readonly isOfHost?: boolean
  /** What can be allocated, where that is less than what this GPU does not use: memory of the host that others use. */
  readonly freeBytes?: Reading
}

export interface Ledger {
  readonly totalBytes: number
  readonly entries: readonly LedgerEntry[]
  /** Readings of different moments did not fit together, and some entry was cut. */
  readonly adjusted: boolean
}

const EXPLANATIONS: Readonly<Record<LedgerName, string>> = {
  torch_allocated: 'Tensors that PyTorch holds now.',
  torch_rounding: 'Added by the allocator to round requests up to its block sizes.',
  torch_pending_free: 'Freed by the program, but a stream still uses it.',
  torch_inactive_split: 'Fragmented: unusable pieces of segments that are partly in use. They cannot be freed.',
  torch_releasable_cache: 'Whole unused segments in the cache: torch.cuda.empty_cache() frees them.',
  non_torch: 'Memory of this process outside the PyTorch allocator: CUDA context, NCCL, cuDNN and other libraries.',
  other_processes: 'Held by other processes on this GPU.',
  other: 'In use, but of no known process: managed memory, or processes whose memory the driver does not report.',
  driver_reserve: 'Reserved by the driver and firmware.',
  free: 'Available.',
}

const OF_HOST: Readonly<Partial<Record<LedgerName, string>>> = {
  other: 'In use by the rest of the machine: this GPU shares the memory of the host.',
}

/** null when the total is unknown. Every other reading may be missing; nothing is invented for it. */
export function ledgerOf(input: LedgerInput): Ledger | null {
  const total = amount(input.totalBytes)
  if (input.totalBytes === null || total <= 0) return null
  const pot = new Pot(total)
  const reserve = pot.take(amount(input.driverReservedBytes))
  const used = input.usedBytes === null ? 0 : pot.take(amount(input.usedBytes))
  const free = input.isOfHost && input.freeBytes != null ? Math.min(pot.left, amount(input.freeBytes)) : pot.left
  const ofOthers = pot.left - free
  const inUse = new Pot(used)
  const entries: [LedgerName, number][] = []
  let torch = { allocated: 0, rounding: 0, pending: 0, split: 0, cache: 0 }
  for (const allocator of input.allocators) torch = addTorch(torch, allocator, inUse)
  entries.push(
    ['torch_allocated', torch.allocated],
    ['torch_rounding', torch.rounding],
    ['torch_pending_free', torch.pending],
    ['torch_inactive_split', torch.split],
    ['torch_releasable_cache', torch.cache],
  )
  const { own, others } = outside(input, inUse)
  entries.push(
    ['non_torch', own],
    ['other_processes', others],
    ['other', inUse.left + ofOthers],
    ['driver_reserve', reserve],
    ['free', free],
  )
  return {
    totalBytes: total,
    entries: entries
      .filter(([name, bytes]) => bytes > 0 || name === 'free')
      .map(([name, bytes]) => ({ name, bytes, explanation: (input.isOfHost ? OF_HOST[name] : undefined) ?? EXPLANATIONS[name] })),
    adjusted: pot.short || inUse.short,
  }
}

/** Never gives out more than there is. */
class Pot {
  left: number
  short = false

  constructor(bytes: number) {
    this.left = bytes
  }

  take(wanted: number): number {
    const given = Math.min(wanted, this.left)
    if (given < wanted) this.short = true
    this.left -= given
    return given
  }
}

interface Torch {
  readonly allocated: number
  readonly rounding: number
  readonly pending: number
  readonly split: number
  readonly cache: number
}

/** Splits what one allocator reserved; the cache is what remains. */
function addTorch(sum: Torch, figures: AllocatorFigures, inUse: Pot): Torch {
  const { allocatedBytes, activeBytes, inactiveSplitBytes, requestedBytes } = figures
  const reserved = new Pot(inUse.take(amount(figures.reservedBytes ?? allocatedBytes)))
  const allocated = reserved.take(amount(allocatedBytes))
  const pending = activeBytes === null ? 0 : reserved.take(Math.max(0, amount(activeBytes) - amount(allocatedBytes)))
  const split = reserved.take(amount(inactiveSplitBytes))
  const rounding = requestedBytes == null ? 0 : Math.max(0, allocated - amount(requestedBytes))
  if (reserved.short) inUse.short = true
  return {
    allocated: sum.allocated + allocated - rounding,
    rounding: sum.rounding + rounding,
    pending: sum.pending + pending,
    split: sum.split + split,
    cache: sum.cache + reserved.left,
  }
}

/** Memory of processes beyond their allocators, and of processes without a known allocator. */
function outside(input: LedgerInput, inUse: Pot): { own: number; others: number } {
  const processes = input.processes ?? []
  // One process and one allocator without a PID belong together.
  const alone = processes.length === 1 && input.allocators.length === 1 && input.allocators[0]?.pid === null
  let own = 0
  let others = 0
  for (const process of processes) {
    const mine = input.allocators.filter((one) => alone || one.pid === process.pid)
    const held = amount(process.memoryUsedBytes)
    if (mine.length === 0) others += inUse.take(held)
    else own += inUse.take(Math.max(0, held - mine.reduce((sum, one) => sum + amount(one.reservedBytes ?? one.allocatedBytes), 0)))
  }
  return { own, others }
}

function amount(reading: Reading): number {
  return reading === null || !Number.isFinite(reading) ? 0 : Math.max(0, Math.round(reading))
}
