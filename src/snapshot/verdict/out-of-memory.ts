/** What happened at an oom event: what was asked for, who held what, why it did not fit, and what would help soonest. */
import type { CodePlace, OomCauseKind, WayOut } from '../../core/memory/oom-report.ts'
import { segmentBytesFor } from './block-map.ts'
import type { Level } from './curve.ts'
import type { Fragmentation } from './fragmentation.ts'
import type { LeakVerdict } from './leak.ts'
import type { Share } from './live-set.ts'

/** Names of core/memory/ledger.ts. */
export interface LedgerPart {
  readonly name:
    | 'torch_allocated'
    | 'torch_rounding'
    | 'torch_pending_free'
    | 'torch_inactive_split'
    | 'torch_releasable_cache'
    | 'outside_torch'
    | 'free'
  readonly bytes: number
}

export interface OutOfMemory {
  readonly eventIndex: number
  readonly timeUs: number | null
  readonly requestBytes: number
  readonly deviceFreeBytes: number | null
  /** What was missing for a new segment; null where the driver's figure is not known. */
  readonly missingBytes: number | null
  readonly line: string
  readonly place: CodePlace | null
  readonly level: Level
  readonly ledger: readonly LedgerPart[]
  readonly cause: OomCauseKind
  readonly heldByLine: readonly Share[]
  readonly heldByCategory: readonly Share[]
  readonly fragmentation: Fragmentation
  /** Cheapest first, three at most. */
  readonly waysOut: readonly WayOut[]
}

export interface OomInput {
  readonly eventIndex: number
  readonly timeUs: number | null
  readonly line: string
  readonly place: CodePlace | null
  readonly level: Level
  readonly fragmentation: Fragmentation
  readonly byLine: readonly Share[]
  readonly byCategory: readonly Share[]
  readonly byModule: readonly Share[]
  readonly leak: LeakVerdict
  /** Memory of the device, where somebody said it. */
  readonly deviceBytes: number | null
}

/** Less than this share of all memory did not decide anything. */
const COUNTS = 0.1
const MOST_WAYS = 3
const MOST_HOLDERS = 10

export function outOfMemoryOf(input: OomInput): OutOfMemory {
  const { eventIndex, timeUs, line, place, level, fragmentation, byLine, byCategory } = input
  const { bytes: requestBytes, deviceFreeBytes } = fragmentation.request
  const needed = segmentBytesFor(requestBytes)
  const cause = causeOf(input, needed)
  const missingBytes = deviceFreeBytes === null ? null : cause === 'limit' ? needed : needed - deviceFreeBytes
  return {
    eventIndex,
    timeUs,
    requestBytes,
    deviceFreeBytes,
    missingBytes,
    line,
    place,
    level,
    ledger: ledgerOf(input),
    cause,
    heldByLine: byLine.slice(0, MOST_HOLDERS),
    heldByCategory: byCategory,
    fragmentation,
    waysOut: waysOut(input, missingBytes ?? needed, cause),
  }
}

function ledgerOf({ level, fragmentation, deviceBytes }: OomInput): LedgerPart[] {
  const { parts, roundingBytes, request } = fragmentation
  const { wholeSegmentBytes, ...pieces } = parts
  const split = Object.values(pieces).reduce((sum, bytes) => sum + bytes, 0)
  const free = request.deviceFreeBytes
  const outside = deviceBytes === null || free === null ? null : Math.max(0, deviceBytes - free - level.reservedBytes)
  const ledger: LedgerPart[] = [
    { name: 'torch_allocated', bytes: level.allocatedBytes - level.pendingBytes },
    { name: 'torch_rounding', bytes: roundingBytes },
    { name: 'torch_pending_free', bytes: level.pendingBytes },
    { name: 'torch_inactive_split', bytes: split },
    { name: 'torch_releasable_cache', bytes: wholeSegmentBytes },
  ]
  if (outside !== null) ledger.push({ name: 'outside_torch', bytes: outside })
  if (free !== null) ledger.push({ name: 'free', bytes: free })
  return ledger
}

/** As the Python SDK judges at the moment itself (python/gpuwarden/oom_ledger.py): the largest part that is enough and counts. */
function causeOf(input: OomInput, needed: number): OomCauseKind {
  const parts = new Map(ledgerOf(input).map(({ name, bytes }) => [name, bytes]))
  const total = [...parts.values()].reduce((sum, bytes) => sum + bytes, 0)
  const request = input.fragmentation.request
  if (request.deviceFreeBytes !== null && request.deviceFreeBytes >= needed) return 'limit'
  const leaked = input.leak.candidates.reduce((sum, { heldBytes }) => sum + heldBytes, 0)
  const unused = (parts.get('torch_inactive_split') ?? 0) + (parts.get('torch_releasable_cache') ?? 0)
  const suspects: [OomCauseKind, number][] = [
    ['leak', leaked],
    ['other_processes', parts.get('outside_torch') ?? 0],
    ['fragmentation', unused],
    ['pending_free', parts.get('torch_pending_free') ?? 0],
  ]
  const [worst] = suspects.filter(([, bytes]) => bytes >= request.bytes && bytes > COUNTS * total).sort(([, a], [, b]) => b - a)
  return worst?.[0] ?? 'capacity'
}

/** In the order of what they cost the person; those that are enough come first. */
function waysOut({ fragmentation, byLine, byCategory, byModule, leak, level }: OomInput, missing: number, cause: OomCauseKind): WayOut[] {
  const ways: Omit<WayOut, 'isEnough'>[] = []
  const { parts, expandable, pins } = fragmentation
  const add = (what: string, bytes: number, line: string | null = null, isBound = false) => {
    if (bytes > 0) ways.push({ what, line, bytes, isBound })
  }
  const of = (category: string) => byCategory.find(({ name }) => name === category)?.bytes ?? 0
  if (cause === 'limit') add('raise the limit: torch.cuda.set_per_process_memory_fraction()', fragmentation.request.deviceFreeBytes ?? 0)
  if (expandable && fragmentation.fitsIfCompacted === true)
    add('set expandable_segments:True in PYTORCH_ALLOC_CONF', expandable.atMostBytes, null, true)
  for (const { line, heldBytes } of leak.candidates) add('stop keeping what each step makes at', heldBytes, line)
  for (const pin of pins.slice(0, 2)) add(`let go of ${pin.blocks} blocks in otherwise empty segments, made at`, pin.freesBytes, pin.line)
  add('give whole unused segments back: torch.cuda.empty_cache()', parts.wholeSegmentBytes)
  add('wait for the stream that still uses what was freed (record_stream)', level.pendingBytes)
  add('allocate on the stream that has it cached, or empty the cache first', parts.otherStreamBytes)
  add('free CUDA graphs or MemPools: their private pools hold unused memory', parts.otherPoolBytes)
  const [holder] = byLine.filter(({ name, ratio }) => !name.startsWith('(') && ratio > COUNTS)
  if (holder) add(`keep fewer than ${holder.blocks} blocks made at`, holder.bytes, holder.name)
  const [largest] = byModule
  if (largest && of('activations') > 0) add('checkpoint the activations of', Math.min(largest.bytes, of('activations')), largest.name)
  add('halve the batch or the sequence length: activations and inputs shrink', (of('activations') + of('input')) / 2)
  add('free gradients before the forward pass: zero_grad(set_to_none=True)', of('gradients'))
  add('keep optimizer state in 8 bits, or shard it over the GPUs', of('optimizer_state') / 2)
  const judged = ways.map((way) => ({ ...way, isEnough: way.bytes >= missing }))
  return [
    ...judged.filter(({ isEnough }) => isEnough),
    ...judged.filter(({ isEnough }) => !isEnough).sort((a, b) => b.bytes - a.bytes),
  ].slice(0, MOST_WAYS)
}
