/** Memory of each process over time, as layers of one stack, with their owners. */
import type { ProcessHistoryAnswer } from '../../../../src/core/kinds.ts'
import type { Reading } from '../../../../src/core/model.ts'

export interface ProcessLayer {
  readonly label: string
  readonly values: readonly Reading[]
}

export interface ProcessRow {
  readonly key: string
  readonly pid: number
  readonly user: string | null
  readonly name: string | null
  readonly command: string | null
  /** null: not there any more. */
  readonly nowBytes: Reading
  readonly peakBytes: number
  /** Position in the stack; null: among the others. */
  readonly color: number | null
}

export interface ProcessStack {
  readonly at: readonly number[]
  readonly layers: readonly ProcessLayer[]
  readonly rows: readonly ProcessRow[]
}

export interface DeviceReadings {
  readonly at: readonly number[]
  readonly used: readonly Reading[]
}

const MOST_LAYERS = 7

/** Where no process is known it is 0 if the device was read at that time, and a gap if not. */
export function processStack({ at, stepMs, processes }: ProcessHistoryAnswer, device: DeviceReadings): ProcessStack {
  const ranked = processes
    .map((process) => ({ ...process, peak: Math.max(0, ...process.memoryUsedBytes.map((bytes) => bytes ?? 0)) }))
    .sort((a, b) => b.peak - a.peak)
  const wasRead = readSteps(at, stepMs, device)
  const isGap = at.map((_, index) => !wasRead[index] && processes.every(({ memoryUsedBytes }) => (memoryUsedBytes[index] ?? null) === null))
  const shown = ranked.length <= MOST_LAYERS + 1 ? ranked : ranked.slice(0, MOST_LAYERS)
  const others = ranked.slice(shown.length)
  const layers = shown.map(({ memoryUsedBytes, ...process }) => ({
    label: nameOf(process),
    values: at.map((_, index) => (isGap[index] ? null : (memoryUsedBytes[index] ?? 0))),
  }))
  const rest = {
    label: `${others.length} others`,
    values: at.map((_, index) =>
      isGap[index] ? null : others.reduce((sum, { memoryUsedBytes }) => sum + (memoryUsedBytes[index] ?? 0), 0),
    ),
  }
  return {
    at,
    layers: others.length === 0 ? layers : [...layers, rest],
    rows: ranked.map((process, position) => ({
      key: `${process.pid} ${process.startedAt}`,
      pid: process.pid,
      user: process.user,
      name: process.name,
      command: process.command,
      nowBytes: process.memoryUsedBytes.at(-1) ?? null,
      peakBytes: process.peak,
      color: position < shown.length ? position : null,
    })),
  }
}

function nameOf({ pid, name, user }: { readonly pid: number; readonly name: string | null; readonly user: string | null }): string {
  return `${name ?? 'process'} ${pid}${user === null ? '' : ` (${user})`}`
}

function readSteps(at: readonly number[], stepMs: number, device: DeviceReadings): readonly boolean[] {
  let index = 0
  return at.map((begin) => {
    let isRead = false
    while (index < device.at.length && (device.at[index] ?? 0) < begin + stepMs) {
      isRead ||= (device.at[index] ?? 0) >= begin && (device.used[index] ?? null) !== null
      index++
    }
    return isRead
  })
}
