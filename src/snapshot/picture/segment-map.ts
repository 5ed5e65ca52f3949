/** The segments at a moment, with what is in them, small enough to be sent and drawn. */
import type { MomentPicture, SegmentPicture } from '../../core/memory/snapshot-picture.ts'
import { blockMapAt, type MappedSegment } from '../verdict/block-map.ts'
import type { DeviceAnalysis } from '../verdict/device-analysis.ts'
import { isPinned } from '../verdict/fragmentation.ts'
import { originOfEarly } from '../verdict/live-set.ts'
import type { LineGrouping } from './grouping.ts'

const MOST_SEGMENTS = 500
const MOST_PIECES = 300
/** Of a segment: gaps and blocks smaller than this are not seen. */
const FINEST = 1 / 2048

/** `requestBytes`: what segments are pinned for; null where nothing was ever asked for. */
export function momentOf(
  analysis: DeviceAnalysis,
  lines: LineGrouping,
  requestBytes: number | null,
  allocatedBytes: number,
  index: number,
): MomentPicture {
  const { device, lifetimes } = analysis
  const { segments, isExact } = blockMapAt(device, lifetimes, index)
  const named = new NamedLines(lines)
  const freedLater = new Set<number>()
  for (const [block, address] of lifetimes.early.addresses.entries())
    if (originOfEarly(lifetimes, block) === 'freed' && (lifetimes.early.freedAt[block] as number) > index) freedLater.add(address)
  const lineAt = (address: number, stack: number) => named.position(lines.of(stack, freedLater.has(address) ? 'freed' : 'before'))
  const largest = [...segments].sort((a, b) => b.bytes - a.bytes || a.address - b.address)
  const rest = largest.slice(MOST_SEGMENTS)
  const shown = largest.slice(0, MOST_SEGMENTS).map(
    (segment): SegmentPicture => ({
      address: `0x${segment.address.toString(16)}`,
      bytes: segment.bytes,
      liveBytes: segment.blocks.reduce((sum, { bytes }) => sum + bytes, 0),
      blocks: segment.blocks.length,
      pool: segment.pool,
      stream: segment.stream,
      isSmall: segment.isSmall,
      isExpandable: segment.isExpandable,
      isPinned: requestBytes !== null && isPinned(segment, requestBytes),
      pieces: piecesOf(segment, lineAt),
    }),
  )
  return {
    index,
    timeUs: device.trace.time(index),
    allocatedBytes,
    reservedBytes: segments.reduce((sum, { bytes }) => sum + bytes, 0),
    isExact,
    lines: named.names,
    segments: shown,
    leftOut: { segments: rest.length, bytes: rest.reduce((sum, { bytes }) => sum + bytes, 0) },
  }
}

/** Those that occur, in the order in which they do. */
class NamedLines {
  readonly names: string[] = []
  readonly #lines: LineGrouping
  readonly #positions = new Map<number, number>()

  constructor(lines: LineGrouping) {
    this.#lines = lines
  }

  position(line: number): number {
    const known = this.#positions.get(line)
    if (known !== undefined) return known
    const position = this.names.push(this.#lines.names[line] as string) - 1
    this.#positions.set(line, position)
    return position
  }
}

function piecesOf(segment: MappedSegment, lineAt: (address: number, stack: number) => number): number[] {
  const finest = segment.bytes * FINEST
  const pieces: { offset: number; bytes: number; line: number }[] = []
  for (const { address, bytes, stack } of [...segment.blocks].sort((a, b) => a.address - b.address)) {
    const [offset, line, last] = [address - segment.address, lineAt(address, stack), pieces.at(-1)]
    if (last && last.line === line && offset - (last.offset + last.bytes) < finest) last.bytes = offset + bytes - last.offset
    else pieces.push({ offset, bytes, line })
  }
  const kept = pieces.length <= MOST_PIECES ? pieces : [...pieces].sort((a, b) => b.bytes - a.bytes).slice(0, MOST_PIECES)
  return kept.sort((a, b) => a.offset - b.offset).flatMap(({ offset, bytes, line }) => [offset, bytes, line])
}
