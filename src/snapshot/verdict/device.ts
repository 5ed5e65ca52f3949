/** One device of a snapshot: its events, and what the dump says is there at the end. */
import { EXIT, Failure } from '../../core/failure.ts'
import { INACTIVE } from '../read/keys.ts'
import type { Snapshot } from '../read/read-snapshot.ts'
import type { Segment, SnapshotTables } from '../read/snapshot-tables.ts'
import { Trace } from './trace.ts'

export interface Device {
  readonly index: number
  readonly tables: SnapshotTables
  readonly trace: Trace
  /** The file ends before its last event: segments and blocks are of a later moment than the events. */
  readonly isCut: boolean
  /** By address, as they were when the file was written. */
  readonly segments: readonly Segment[]
}

const MOST_DEVICES = 256

/** Those that have segments or events, in their order. */
export function devicesOf({ tables, layout, cut }: Snapshot): readonly Device[] {
  const all = tables.segments.slice(layout.segments.first, layout.segments.first + layout.segments.count)
  const indexes = new Set(all.map(({ device }) => device))
  for (const [index, { count }] of layout.traces.entries()) if (count > 0) indexes.add(index)
  if (indexes.size > MOST_DEVICES)
    throw new Failure(`${indexes.size} devices in one snapshot; expected ${MOST_DEVICES} at most`, { exitCode: EXIT.noSource })
  return [...indexes]
    .sort((a, b) => a - b)
    .map((index) => ({
      index,
      tables,
      isCut: cut !== null,
      trace: new Trace(tables, layout.traces[index] ?? { first: 0, count: 0 }),
      segments: all.filter(({ device }) => device === index).sort((a, b) => a.address - b.address),
    }))
}

/** Calls back for each block of the final state that is in use: its row in the table of blocks, and its segment. */
export function eachActiveBlock({ tables, segments }: Device, visit: (block: number, segment: Segment) => void): void {
  for (const segment of segments) {
    const { first, count } = segment.blocks
    for (let block = first; block < first + count; block++) if (tables.blocks.states[block] !== INACTIVE) visit(block, segment)
  }
}
