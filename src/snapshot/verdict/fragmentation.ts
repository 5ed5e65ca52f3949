/** How much of the free memory a request cannot use, and why. One number says little: it depends on the size that is asked for. */
import { type BlockMap, type MappedSegment, MEBIBYTE, SMALL_BYTES, SMALL_SEGMENT_BYTES, segmentBytesFor } from './block-map.ts'
import type { StackWordsTable } from './stack-words.ts'

/** What was asked for. */
export interface FragmentRequest {
  readonly bytes: number
  readonly source: 'out of memory' | 'largest of the last steps'
  readonly eventIndex: number
  readonly line: string
  readonly stream: number
  readonly pool: string
  /** What the driver had left; null where that is not known. */
  readonly deviceFreeBytes: number | null
}

export interface Pin {
  readonly line: string
  readonly blocks: number
  readonly bytes: number
  readonly segments: number
  /** What would be whole again without it. */
  readonly freesBytes: number
}

/** Free bytes of the device, each counted once. */
export interface FreeParts {
  /** In pieces of at least the request. */
  readonly usableBytes: number
  /** Whole segments, too small: the allocator gives them back when it has to, `empty_cache()` at once. */
  readonly wholeSegmentBytes: number
  /** In segments that little else is in. */
  readonly pinnedBytes: number
  /** Between blocks in use. */
  readonly scatteredBytes: number
  readonly otherStreamBytes: number
  /** Of CUDA graphs and MemPools, or the default one where the request is of such a pool. */
  readonly otherPoolBytes: number
  /** Of the segments for small requests, or of those for large ones. */
  readonly otherSizeClassBytes: number
}

export interface Fragmentation {
  readonly request: FragmentRequest
  /** Free bytes where the request is served from: its pool, stream and size class. */
  readonly freeBytes: number
  readonly largestFreeBytes: number
  /** 0 to 1; null where nothing is free. */
  readonly unusableRatio: number | null
  /** The free pieces and what the driver has left are enough together; null where the latter is not known and the pieces are not. */
  readonly fitsIfCompacted: boolean | null
  readonly curve: readonly { readonly requestBytes: number; readonly unusableRatio: number }[]
  readonly parts: FreeParts
  readonly pins: readonly Pin[]
  readonly pinnedSegments: number
  /** What the allocator added to round requests up, all over the device. */
  readonly roundingBytes: number
  /** Bounds of what expandable segments could make usable; null where they are in use already. */
  readonly expandable: { readonly atLeastBytes: number; readonly atMostBytes: number } | null
  /** False: rebuilt from events, sizes rounded by rule. */
  readonly isExact: boolean
}

const LEAST_LIVE_SHARE = 0.1
const MOST_PINS = 20
const LARGE_PAGE_BYTES = 20 * MEBIBYTE

export function fragmentationOf(map: BlockMap, request: FragmentRequest, words: StackWordsTable): Fragmentation {
  const isSmall = request.bytes <= SMALL_BYTES
  const isServing = ({ pool, stream, isSmall: small }: MappedSegment) =>
    pool === request.pool && stream === request.stream && small === isSmall
  const serving = map.segments.filter(isServing)
  const pieces = serving.flatMap(({ free }) => free)
  const freeBytes = sum(pieces)
  // Where the driver had enough and the request failed all the same, a limit keeps PyTorch from it.
  const isLimited = request.deviceFreeBytes !== null && request.deviceFreeBytes >= segmentBytesFor(request.bytes)
  const device = isLimited ? 0 : request.deviceFreeBytes
  const pinned = serving.filter((segment) => isPinned(segment, request.bytes))
  const fixed = serving.filter(({ isExpandable }) => !isExpandable)
  const page = isSmall ? SMALL_SEGMENT_BYTES : LARGE_PAGE_BYTES
  const fixedPieces = fixed.flatMap(({ free }) => free)
  const isExpandable = serving.length > 0 && fixed.length === 0
  return {
    request,
    freeBytes,
    largestFreeBytes: pieces.reduce((most, bytes) => Math.max(most, bytes), 0),
    unusableRatio: freeBytes > 0 ? unusable(pieces, freeBytes, request.bytes) : null,
    fitsIfCompacted: freeBytes + (device ?? 0) >= request.bytes ? true : device === null ? null : false,
    curve: freeBytes > 0 ? curveOf(pieces, freeBytes, request.bytes) : [],
    parts: partsOf(map, request, isSmall),
    pins: pinsOf(pinned, words),
    pinnedSegments: pinned.length,
    roundingBytes: sum(map.segments.flatMap(({ blocks }) => blocks.map(({ bytes, requestedBytes }) => bytes - requestedBytes))),
    expandable: isExpandable
      ? null
      : { atLeastBytes: sum(fixedPieces.map((bytes) => Math.floor(bytes / page) * page)), atMostBytes: sum(fixedPieces) },
    isExact: map.isExact,
  }
}

/** Little is in use in it, and without that the request would fit. */
export function isPinned(segment: MappedSegment, request: number): boolean {
  const live = sum(segment.blocks.map(({ bytes }) => bytes))
  return live > 0 && !segment.isExpandable && live < LEAST_LIVE_SHARE * segment.bytes && sum(segment.free) >= request
}

function unusable(pieces: readonly number[], free: number, request: number): number {
  return 1 - sum(pieces.filter((bytes) => bytes >= request)) / free
}

/** At powers of two, until nothing that large is free. */
function curveOf(pieces: readonly number[], free: number, request: number): { requestBytes: number; unusableRatio: number }[] {
  const curve: { requestBytes: number; unusableRatio: number }[] = []
  for (let bytes = request <= SMALL_BYTES ? 512 : 2 * MEBIBYTE; ; bytes *= 2) {
    const unusableRatio = unusable(pieces, free, bytes)
    curve.push({ requestBytes: bytes, unusableRatio })
    if (unusableRatio === 1 && bytes >= request) return curve
  }
}

function partsOf(map: BlockMap, request: FragmentRequest, isSmall: boolean): FreeParts {
  const parts = {
    usableBytes: 0,
    wholeSegmentBytes: 0,
    pinnedBytes: 0,
    scatteredBytes: 0,
    otherStreamBytes: 0,
    otherPoolBytes: 0,
    otherSizeClassBytes: 0,
  }
  for (const segment of map.segments)
    for (const bytes of segment.free) {
      if (segment.pool !== request.pool) parts.otherPoolBytes += bytes
      else if (segment.isSmall !== isSmall) parts.otherSizeClassBytes += bytes
      else if (segment.stream !== request.stream) parts.otherStreamBytes += bytes
      else if (bytes >= request.bytes) parts.usableBytes += bytes
      else if (segment.blocks.length === 0) parts.wholeSegmentBytes += bytes
      else parts[isPinned(segment, request.bytes) ? 'pinnedBytes' : 'scatteredBytes'] += bytes
    }
  return parts
}

/** By line; a segment that several lines pin is whole again only without all of them, and counts for each. */
function pinsOf(segments: readonly MappedSegment[], words: StackWordsTable): Pin[] {
  const pins = new Map<string, { line: string; blocks: number; bytes: number; segments: number; freesBytes: number }>()
  for (const segment of segments) {
    const seen = new Set<string>()
    for (const { stack, bytes } of segment.blocks) {
      const line = words.of(stack).label
      const pin = pins.get(line) ?? { line, blocks: 0, bytes: 0, segments: 0, freesBytes: 0 }
      pins.set(line, pin)
      pin.blocks++
      pin.bytes += bytes
      if (seen.has(line)) continue
      seen.add(line)
      pin.segments++
      pin.freesBytes += segment.bytes
    }
  }
  return [...pins.values()].sort((a, b) => b.freesBytes - a.freesBytes).slice(0, MOST_PINS)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
