/**
 * Who has how much of a card that several processes share. Time and cost follow the memory that each holds, because that is what it keeps
 * from others; utilization and energy follow activity, where the driver tells it per process, else memory too.
 */
import type { GpuSample, ProcessView, Reading } from '../core/model.ts'

export interface Share {
  readonly process: ProcessView
  /** Of the time the card is held. */
  held: number
  /** Of what the card did. */
  activity: number
  memoryBytes: number
  /** How busy it is; null: not known. */
  work: Reading
}

/** A desktop draws on every workstation: that alone does not hold the card. */
const DESKTOP_BYTES = 1024 ** 3

/** Processes that hold the card. */
export function holders(processes: readonly ProcessView[]): readonly ProcessView[] {
  for (const process of processes) if (isDesktop(process)) return processes.filter((one) => !isDesktop(one))
  return processes
}

function isDesktop({ type, memoryUsedBytes }: ProcessView): boolean {
  return type === 'graphics' && (memoryUsedBytes ?? 0) < DESKTOP_BYTES
}

/** `busy`: of the card; null: not known. The shares of time and of activity add up to 1, and memory to at most what the card has in use. */
export function sharesOf(processes: readonly ProcessView[], sample: GpuSample, busy: Reading): readonly Share[] {
  const used = sample.memoryUsedBytes
  const [only] = processes
  if (only && processes.length === 1) {
    const memoryBytes = only.memoryUsedBytes === null ? (used ?? 0) : Math.min(only.memoryUsedBytes, used ?? only.memoryUsedBytes)
    return [{ process: only, held: 1, activity: 1, memoryBytes, work: busy ?? only.smRatio }]
  }
  let known = 0
  let unknown = 0
  let activity = 0
  let isActivityKnown = true
  for (const { memoryUsedBytes, smRatio } of processes) {
    if (memoryUsedBytes === null) unknown++
    else known += memoryUsedBytes
    if (smRatio === null) isActivityKnown = false
    else activity += smRatio
  }
  // Who does not tell is taken for an average one.
  const guess = known > 0 ? known / Math.max(1, processes.length - unknown) : 1
  const weight = known + unknown * guess
  const scale = used !== null && known > used ? used / known : 1
  const rest = used === null || unknown === 0 ? 0 : Math.max(0, used - known) / unknown
  const byActivity = isActivityKnown && activity > 0
  return processes.map((process) => {
    const { memoryUsedBytes, smRatio } = process
    const held = weight > 0 ? (memoryUsedBytes ?? guess) / weight : 1 / processes.length
    return {
      process,
      held,
      activity: byActivity ? (smRatio ?? 0) / activity : held,
      memoryBytes: memoryUsedBytes === null ? rest : memoryUsedBytes * scale,
      work: busy === 0 ? 0 : smRatio,
    }
  })
}
