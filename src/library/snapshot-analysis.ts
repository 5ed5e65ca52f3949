/** The analysis of `gpuwarden snapshot`, for the memory classes: peak, lines, leak, fragmentation and out-of-memory of a PyTorch memory snapshot. */
import { EXIT, Failure } from '../core/failure.ts'
import { readSnapshot } from '../snapshot/read/read-snapshot.ts'
import type { Level } from '../snapshot/verdict/curve.ts'
import { devicesOf } from '../snapshot/verdict/device.ts'
import { type AnalysisOptions, DeviceAnalysis, type Identity } from '../snapshot/verdict/device-analysis.ts'
import type { Fragmentation } from '../snapshot/verdict/fragmentation.ts'
import type { LeakVerdict } from '../snapshot/verdict/leak.ts'
import { byCategory, byLine, type Share } from '../snapshot/verdict/live-set.ts'
import type { OutOfMemory } from '../snapshot/verdict/out-of-memory.ts'

export type SnapshotLeak = Pick<LeakVerdict, 'answer' | 'marks' | 'candidates'>
export type SnapshotFragmentation = Fragmentation
export type SnapshotOutOfMemory = OutOfMemory

export interface SnapshotDevice {
  /** CUDA's index in the program that wrote the file. */
  readonly device: number
  readonly events: number
  readonly peak: Level
  readonly end: Level
  /** Live at the peak, largest first. */
  readonly byLine: readonly Share[]
  readonly byCategory: readonly Share[]
  readonly leak: SnapshotLeak
  /** null: nothing was ever asked for. */
  readonly fragmentation: SnapshotFragmentation | null
  /** The last one; null: none. */
  readonly outOfMemory: SnapshotOutOfMemory | null
  /** What the file lost, if anything. */
  readonly identity: Identity
}

export interface SnapshotReport {
  readonly path: string
  readonly bytes: number
  /** Why it was read only in part; null: it was read whole. */
  readonly cut: string | null
  readonly devices: readonly SnapshotDevice[]
}

export interface SnapshotAnalysisOptions extends Pick<AnalysisOptions, 'deviceBytes'> {
  /** All by default. */
  readonly devices?: readonly number[]
}

const MOST_LINES = 50

/** Rejects with a Failure that says what is wrong with the file. */
export async function analyzeSnapshot(path: string, { devices, ...options }: SnapshotAnalysisOptions = {}): Promise<SnapshotReport> {
  const snapshot = await readSnapshot(path, () => undefined)
  const found = devicesOf(snapshot).filter(({ index }) => devices === undefined || devices.includes(index))
  if (found.length === 0) throw new Failure(`${path} holds nothing of the GPUs that were asked for`, { exitCode: EXIT.noSource })
  const judged = found.map((device) => judge(new DeviceAnalysis(snapshot, device, options)))
  return { path, bytes: snapshot.bytes, cut: snapshot.cut, devices: judged }
}

function judge(analysis: DeviceAnalysis): SnapshotDevice {
  const { device, curve, leak, fragmentation, identity, words } = analysis
  const [last] = analysis.outOfMemoryEvents.slice(-1)
  const holdings = analysis.liveAt(curve.peak.index)
  return {
    device: device.index,
    events: device.trace.count,
    peak: curve.peak,
    end: curve.end,
    byLine: byLine(holdings, words).slice(0, MOST_LINES),
    byCategory: byCategory(holdings),
    leak: { answer: leak.answer, marks: leak.marks, candidates: leak.candidates },
    fragmentation,
    outOfMemory: last === undefined ? null : analysis.outOfMemory(last),
    identity,
  }
}
