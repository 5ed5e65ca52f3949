/** The pictures of a whole file, and of the difference of two. */
import type { DiffPicture, SnapshotPicture } from '../../core/memory/snapshot-picture.ts'
import { diffWarnings } from '../output/diff-text.ts'
import { notesOf } from '../output/notes.ts'
import type { Snapshot } from '../read/read-snapshot.ts'
import type { DeviceAnalysis } from '../verdict/device-analysis.ts'
import { diffOf } from '../verdict/diff.ts'
import { indexOf, type Moment, nameOf } from '../verdict/moment.ts'
import { pairsOf } from '../verdict/pairs.ts'
import type { DevicePictures } from './device-pictures.ts'

const MOST_ROWS = 200

/** `name`: of the file, without its folder. */
export function snapshotPicture(name: string, snapshot: Snapshot, devices: readonly DevicePictures[]): SnapshotPicture {
  return { name, bytes: snapshot.bytes, notes: notesOf(name, snapshot), devices: devices.map((device) => device.picture()) }
}

export function diffPictures(
  before: readonly DeviceAnalysis[],
  after: readonly DeviceAnalysis[],
  moment: Moment,
  minBytes = 0,
): DiffPicture[] {
  const at = ({ device, curve }: DeviceAnalysis) => indexOf(moment, device.trace, curve.peak.index)
  return pairsOf(before, after).map(([old, young]) => {
    const { stacks, beforeBytes, afterBytes, categories } = diffOf(old, at(old), young, at(young))
    const rows = stacks.filter(({ deltaBytes }) => Math.abs(deltaBytes) >= minBytes).slice(0, MOST_ROWS)
    const rest = stacks.filter((row) => !rows.includes(row))
    return {
      device: young.device.index,
      at: nameOf(moment),
      beforeBytes,
      afterBytes,
      warnings: diffWarnings(old, young),
      rows,
      leftOut: { rows: rest.length, bytes: rest.reduce((sum, { deltaBytes }) => sum + deltaBytes, 0) },
      categories,
    }
  })
}
