/** Segments with the blocks in them at a moment: as the dump has them at the end, rebuilt from the events before. */
import { EXIT, Failure } from '../../core/failure.ts'
import { ACTION, INACTIVE } from '../read/keys.ts'
import type { Device } from './device.ts'
import type { Lifetimes } from './lifetimes.ts'
import { SegmentPools } from './segment-pools.ts'

export const MEBIBYTE = 1024 ** 2
/** Requests up to this come from the pool of small segments. */
export const SMALL_BYTES = MEBIBYTE
export const SMALL_SEGMENT_BYTES = 2 * MEBIBYTE
const ROUNDING_BYTES = 512
/** Parts of expandable segments that are looked at to undo what mapped and unmapped them. */
const MOST_LOOKS = 1e8

export interface LiveBlock {
  readonly address: number
  /** As the allocator counts it. */
  readonly bytes: number
  readonly requestedBytes: number
  readonly stack: number
}

export interface MappedSegment {
  readonly address: number
  readonly bytes: number
  /** As PyTorch writes it. */
  readonly stream: number
  /** `0.0`: the default one. */
  readonly pool: string
  readonly isSmall: boolean
  readonly isExpandable: boolean
  readonly blocks: readonly LiveBlock[]
  /** Sizes of the unused pieces. */
  readonly free: readonly number[]
}

export interface BlockMap {
  readonly segments: readonly MappedSegment[]
  /** As the dump says; otherwise sizes of blocks that were freed later are rounded by rule. */
  readonly isExact: boolean
}

type Place = Omit<MappedSegment, 'blocks' | 'free'>

/** What the allocator asks the driver for where it has no piece that is large enough. */
export function segmentBytesFor(request: number): number {
  if (request <= SMALL_BYTES) return SMALL_SEGMENT_BYTES
  return request < 10 * MEBIBYTE ? 20 * MEBIBYTE : Math.ceil(request / SMALL_SEGMENT_BYTES) * SMALL_SEGMENT_BYTES
}

export function blockMapAt(device: Device, lifetimes: Lifetimes, index: number): BlockMap {
  const { trace } = lifetimes
  // Events that change nothing may follow, such as the oom itself.
  for (let i = index + 1; i < trace.count; i++) if (changesBlocks(trace.action(i))) return rebuilt(device, lifetimes, index)
  return { segments: dumped(device), isExact: true }
}

function changesBlocks(action: number): boolean {
  return action !== ACTION.oom && action !== ACTION.snapshot && action !== ACTION.other && action !== ACTION.free_requested
}

function dumped(device: Device): MappedSegment[] {
  const { blocks } = device.tables
  return placesAtEnd(device).map((place, i) => {
    const { first, count } = (device.segments[i] as Device['segments'][number]).blocks
    const live: LiveBlock[] = []
    const free: number[] = []
    for (let block = first; block < first + count; block++) {
      const bytes = blocks.sizes[block] as number
      if (blocks.states[block] === INACTIVE) free.push(bytes)
      else {
        const [address, requestedBytes, stack] = [blocks.addresses[block], blocks.requested[block], blocks.stacks[block]] as [
          number,
          number,
          number,
        ]
        live.push({ address, bytes, requestedBytes, stack })
      }
    }
    return { ...place, blocks: live, free }
  })
}

function placesAtEnd(device: Device): Place[] {
  const pools = new SegmentPools(device)
  return device.segments.map((segment) => ({
    address: segment.address,
    bytes: segment.totalBytes,
    stream: device.tables.streams.value(segment.stream),
    pool: pools.name(segment.pool),
    isSmall: segment.isSmall,
    isExpandable: segment.isExpandable,
  }))
}

function rebuilt(device: Device, lifetimes: Lifetimes, index: number): BlockMap {
  const places = placesAt(device, index)
  const live = liveBlocks(device, lifetimes, index).sort((a, b) => a.address - b.address)
  let next = 0
  const segments = places.map((place): MappedSegment => {
    const end = place.address + place.bytes
    const blocks: LiveBlock[] = []
    const free: number[] = []
    while (next < live.length && (live[next] as LiveBlock).address < place.address) next++
    let at = place.address
    for (; next < live.length && (live[next] as LiveBlock).address < end; next++) {
      const block = live[next] as LiveBlock
      if (block.address > at) free.push(block.address - at)
      blocks.push(block)
      at = Math.max(at, block.address + block.bytes)
    }
    if (at < end) free.push(end - at)
    return { ...place, blocks, free: free.filter((bytes) => isSplitOff(bytes, place)) }
  })
  return { segments, isExact: false }
}

/** A rest too small to be split off stays a part of the block before it. */
function isSplitOff(bytes: number, { isSmall, isExpandable, bytes: all }: Place): boolean {
  return isSmall || isExpandable || bytes === all ? bytes >= ROUNDING_BYTES : bytes > MEBIBYTE
}

function liveBlocks({ tables }: Device, lifetimes: Lifetimes, index: number): LiveBlock[] {
  const { trace, early } = lifetimes
  const sizes = new Map(tables.blocks.addresses.map((address, block) => [address, tables.blocks.sizes[block] as number]))
  const bytesOf = (address: number, requested: number, isLast: boolean) =>
    (isLast ? sizes.get(address) : undefined) ?? Math.max(1, Math.ceil(requested / ROUNDING_BYTES)) * ROUNDING_BYTES
  const found: LiveBlock[] = []
  for (const [i, address] of early.addresses.entries()) {
    const [end, requestedBytes, stack] = [early.freedAt[i], early.sizes[i], early.stacks[i]] as [number, number, number]
    if (end > index) found.push({ address, requestedBytes, stack, bytes: bytesOf(address, requestedBytes, end === trace.count) })
  }
  for (let i = 0; i <= index; i++) {
    if (trace.action(i) !== ACTION.alloc || trace.address(i) < 0 || lifetimes.endOf(i) <= index) continue
    const [address, requestedBytes] = [tables.addresses.value(trace.address(i)), trace.size(i)]
    found.push({
      address,
      requestedBytes,
      stack: trace.stack(i),
      bytes: bytesOf(address, requestedBytes, lifetimes.endOf(i) === trace.count),
    })
  }
  return found
}

/** The segments at the end, with what happened since undone. */
function placesAt(device: Device, index: number): Place[] {
  const { trace, tables } = device
  const pools = new SegmentPools(device)
  const atEnd = placesAtEnd(device)
  const fixed = new Map(atEnd.filter(({ isExpandable }) => !isExpandable).map((place) => [place.address, place]))
  let expandable = atEnd.filter(({ isExpandable }) => isExpandable)
  let looks = 0
  for (let i = trace.count - 1; i > index; i--) {
    const action = trace.action(i)
    if (action < ACTION.segment_alloc || action > ACTION.segment_unmap || trace.address(i) < 0) continue
    const [address, bytes] = [tables.addresses.value(trace.address(i)), trace.size(i)]
    const isExpandable = action === ACTION.segment_map || action === ACTION.segment_unmap
    const place = {
      address,
      bytes,
      stream: tables.streams.value(trace.stream(i)),
      pool: pools.name(trace.pool(i)),
      isSmall: bytes <= SMALL_SEGMENT_BYTES,
      isExpandable,
    }
    if (action === ACTION.segment_alloc) fixed.delete(address)
    else if (action === ACTION.segment_free) fixed.set(address, place)
    else {
      looks += expandable.length
      if (looks > MOST_LOOKS)
        throw new Failure('the expandable segments of this file change too often to rebuild them', { exitCode: EXIT.noSource })
      if (action === ACTION.segment_map) expandable = expandable.flatMap((one) => without(one, address, bytes))
      else expandable.push(place)
    }
  }
  return merged([...fixed.values(), ...expandable].sort((a, b) => a.address - b.address))
}

function without(place: Place, address: number, bytes: number): Place[] {
  const [end, cutEnd] = [place.address + place.bytes, address + bytes]
  if (cutEnd <= place.address || address >= end) return [place]
  const left = { ...place, bytes: address - place.address }
  const right = { ...place, address: cutEnd, bytes: end - cutEnd }
  return [left, right].filter((part) => part.bytes > 0)
}

/** Mapped parts of an expandable segment that touch are one. */
function merged(places: readonly Place[]): Place[] {
  const all: Place[] = []
  for (const place of places) {
    const last = all.at(-1)
    const isNext =
      last?.isExpandable &&
      place.isExpandable &&
      last.address + last.bytes === place.address &&
      last.stream === place.stream &&
      last.pool === place.pool
    if (last !== undefined && isNext) all[all.length - 1] = { ...last, bytes: last.bytes + place.bytes }
    else all.push(place)
  }
  return all
}
