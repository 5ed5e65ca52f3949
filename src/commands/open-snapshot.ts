/** Reads a snapshot file with its progress on the terminal, and gives an analysis of each GPU that is asked for. */
import { basename } from 'node:path'
import { EXIT, Failure } from '../core/failure.ts'
import { formatPercent, printable } from '../core/format.ts'
import { notesOf } from '../snapshot/output/notes.ts'
import { readSnapshot, type Snapshot } from '../snapshot/read/read-snapshot.ts'
import { devicesOf } from '../snapshot/verdict/device.ts'
import { DeviceAnalysis } from '../snapshot/verdict/device-analysis.ts'
import { ProgressLine } from './progress-line.ts'
import type { SnapshotRequest } from './snapshot-options.ts'

export interface OpenedSnapshot {
  readonly path: string
  readonly snapshot: Snapshot
  readonly analyses: readonly DeviceAnalysis[]
  /** What a reader has to know before the figures. */
  readonly notes: readonly string[]
}

export async function openSnapshot(path: string, { devices, analysis }: SnapshotRequest): Promise<OpenedSnapshot> {
  let share = 0
  const progress = new ProgressLine(() => `reading ${printable(basename(path))} ${formatPercent(share)}  (Ctrl-C ends)`)
  progress.draw()
  let snapshot: Snapshot
  try {
    snapshot = await readSnapshot(path, (now) => {
      share = Math.min(1, now)
    })
  } finally {
    progress.stop()
  }
  const found = devicesOf(snapshot)
  const chosen = found.filter(({ index }) => devices === null || devices.has(index))
  if (chosen.length === 0)
    throw new Failure(
      found.length === 0 ? `${path} holds no segments and no events` : `${path} has nothing of the GPUs that were asked for`,
      {
        exitCode: EXIT.noSource,
        hint: found.length === 0 ? null : `GPUs in it: ${found.map(({ index }) => index).join(', ')}`,
      },
    )
  const analyses = chosen.map((device) => new DeviceAnalysis(snapshot, device, analysis))
  return { path, snapshot, analyses, notes: notesOf(basename(path), snapshot) }
}
