/** What an SDK recorded of the lines that keep memory, while its run went on. */
import { formatBytes, formatCount, formatPercent, formatSeconds } from '../format.ts'
import type { Reading, RecordedLine } from '../model.ts'
import { placeText } from './oom-report.ts'

export const RECORDING_KINDS = ['gpu', 'host'] as const
export type RecordingKind = (typeof RECORDING_KINDS)[number]

/** Who asked: a leak or a forecast that the agent found, a person, the program itself. */
export const RECORDING_TRIGGERS = ['leak', 'oom', 'hand', 'program'] as const
export type RecordingTrigger = (typeof RECORDING_TRIGGERS)[number]

export interface LineRecording {
  readonly id: string
  readonly kind: RecordingKind
  readonly trigger: RecordingTrigger
  readonly rank: number
  /** When it was over. */
  readonly at: number
  /** Why nothing was recorded; null: it was. */
  readonly reason: string | null
  readonly steps: Reading
  /** Whose memory was made in these steps and stayed, largest first. */
  readonly lines: readonly RecordedLine[]
  /** Where the program records by itself: who holds memory now. */
  readonly holders: readonly RecordedLine[]
  readonly grownBytes: Reading
  /** Median, before and during the recording. */
  readonly stepSecondsBefore: Reading
  readonly stepSecondsDuring: Reading
  /** A file that the program wrote, on its own host. */
  readonly snapshotPath: string | null
}

/** `161 MiB per step from train.py:77 in remember (98% of the growth)` */
export function leakLineText(line: RecordedLine): string {
  const pace = line.bytesPerStep === null ? formatBytes(line.bytes) : `${formatBytes(line.bytesPerStep)} per step`
  return `${pace} from ${fromLine(line)}`
}

/** `train.py:77 in remember (98% of the growth)` */
export function fromLine(line: RecordedLine): string {
  return `${placeText(line)}${line.share === null ? '' : ` (${formatPercent(line.share)} of the growth)`}`
}

/** The whole answer, one sentence a line. */
export function recordingText(recording: LineRecording): readonly string[] {
  const { reason, lines, holders, steps, kind, grownBytes, stepSecondsBefore, stepSecondsDuring, snapshotPath } = recording
  if (reason !== null) return [`Nothing was recorded: ${reason}.`]
  if (snapshotPath !== null)
    return [
      `The program records its memory history itself; it was written to ${snapshotPath}.`,
      ...holders.map((line) => `held: ${formatBytes(line.bytes)} from ${fromLine(line)}`),
    ]
  const memory = kind === 'gpu' ? 'GPU memory' : 'Python objects'
  const span = steps === null ? 'the recorded steps' : formatCount(steps, 'step')
  const found =
    lines.length > 0
      ? lines.map((line) => `leak: ${leakLineText(line)}`)
      : [`No line of the program keeps ${memory} that it makes: nothing made in ${span} stayed.`]
  const grown = grownBytes === null ? '' : `; memory grew by ${formatBytes(Math.max(0, grownBytes))}`
  const cost =
    stepSecondsBefore === null || stepSecondsDuring === null
      ? ''
      : `; a step took ${formatSeconds(stepSecondsDuring)}, before ${formatSeconds(stepSecondsBefore)}`
  return [...found, `Recorded for ${span}${grown}${cost}.`]
}
