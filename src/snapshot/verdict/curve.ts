/** Bytes over the events: what the program held, what the allocator had reserved, and what waited for a stream. */
import { ACTION } from '../read/keys.ts'
import type { Device } from './device.ts'
import type { Lifetimes } from './lifetimes.ts'
import type { Selection } from './selection.ts'

export interface Level {
  /** The level after this event; -1: before the first. */
  readonly index: number
  /** Requested bytes of what was in use. */
  readonly allocatedBytes: number
  /** Segments. */
  readonly reservedBytes: number
  /** Of the allocated ones: freed by the program, still awaited by a stream. */
  readonly pendingBytes: number
}

export interface Curve {
  readonly peak: Level
  readonly reservedPeak: Level
  readonly start: Level
  readonly end: Level
  /** Levels at the highest moment of each stretch: enough to draw it. */
  readonly points: readonly Level[]
}

const POINTS = 500

/** One pass over the events. `stops`: levels at these indexes are kept too, in their order. */
export function curveOf(
  device: Device,
  lifetimes: Lifetimes,
  selection: Selection,
  stops: readonly number[] = [],
): Curve & { readonly stops: readonly Level[] } {
  const { trace } = lifetimes
  const { count } = trace
  let reserved = reservedAtStart(device)
  let allocated = selection.bytesBefore(lifetimes)
  let pending = 0
  const isPending = new Uint8Array(device.tables.addresses.count)
  const level = (index: number): Level => ({ index, allocatedBytes: allocated, reservedBytes: reserved, pendingBytes: pending })
  const start = level(-1)
  let peak = start
  let reservedPeak = start
  let highest = start
  const points: Level[] = [start]
  const kept: Level[] = []
  const wanted = [...new Set(stops)].sort((a, b) => a - b)
  while (wanted[0] !== undefined && wanted[0] < 0) {
    kept.push(start)
    wanted.shift()
  }
  for (let i = 0; i < count; i++) {
    switch (trace.action(i)) {
      case ACTION.alloc: {
        const before = lifetimes.replaced.size === 0 ? undefined : lifetimes.replaced.get(i)
        if (before !== undefined && selection.hasAlloc(before)) allocated -= trace.size(before)
        if (trace.address(i) >= 0 && selection.hasAlloc(i)) allocated += trace.size(i)
        break
      }
      case ACTION.free_requested:
        if (lifetimes.endAction === ACTION.free_requested) allocated -= selection.freedBytes(lifetimes, i)
        else if (trace.address(i) >= 0 && isPending[trace.address(i)] === 0) {
          isPending[trace.address(i)] = 1
          pending += trace.size(i)
        }
        break
      case ACTION.free_completed:
        allocated -= selection.freedBytes(lifetimes, i)
        if (trace.address(i) >= 0 && isPending[trace.address(i)] === 1) {
          isPending[trace.address(i)] = 0
          pending -= trace.size(i)
        }
        break
      case ACTION.segment_alloc:
      case ACTION.segment_map:
        reserved += trace.size(i)
        break
      case ACTION.segment_free:
      case ACTION.segment_unmap:
        reserved -= trace.size(i)
        break
      default:
    }
    if (allocated > peak.allocatedBytes) peak = level(i)
    if (reserved > reservedPeak.reservedBytes) reservedPeak = level(i)
    if (allocated > highest.allocatedBytes || highest.index < 0) highest = level(i)
    if (i === wanted[0]) {
      kept.push(level(i))
      wanted.shift()
    }
    if (Math.floor(((i + 1) * POINTS) / count) > Math.floor((i * POINTS) / count)) {
      points.push(highest)
      highest = level(i)
    }
  }
  const end = level(count - 1)
  return { peak, reservedPeak, start, end, points, stops: kept }
}

/** What the segments at the end are, less what the events added. */
export function reservedAtStart({ trace, segments }: Device): number {
  let bytes = segments.reduce((sum, { totalBytes }) => sum + totalBytes, 0)
  for (let i = 0; i < trace.count; i++) {
    const action = trace.action(i)
    if (action === ACTION.segment_alloc || action === ACTION.segment_map) bytes -= trace.size(i)
    else if (action === ACTION.segment_free || action === ACTION.segment_unmap) bytes += trace.size(i)
  }
  return bytes
}
