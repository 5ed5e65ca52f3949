/** All GPUs of the host together. What is not current is not counted as if it were. */
import { cardUtilization, countedOnce } from '../../../../src/core/gpu-totals.ts'
import { powerCap } from '../../../../src/core/gpu-words.ts'
import type { GpuInfo, GpuSample, ProcessView, Reading } from '../../../../src/core/model.ts'

export interface TotalsInput {
  readonly info: GpuInfo
  readonly sample: GpuSample | null
  readonly processes: readonly ProcessView[]
  readonly isCurrent: boolean
}

export interface Totals {
  readonly gpus: number
  /** MIG instances, not counted as GPUs. */
  readonly migInstances: number
  readonly notCurrent: number
  readonly utilizationRatio: Reading
  readonly memoryUsedBytes: Reading
  readonly memoryTotalBytes: Reading
  readonly powerWatts: Reading
  /** Sum of the caps; null when one card does not report its own. */
  readonly powerCapWatts: Reading
  readonly processes: Reading
  readonly users: number
}

export function totalsOf(list: readonly TotalsInput[]): Totals {
  const cards = countedOnce(list)
  const current = cards.flatMap(({ info, sample, isCurrent }) => (isCurrent && sample ? [{ info, sample }] : []))
  const utilization = current.map((card) => cardUtilization(card, list)).filter((value) => value !== null)
  const processes = list.filter(({ isCurrent, sample }) => isCurrent && sample !== null && sample.processes !== null)
  const people = processes.flatMap((one) => one.processes)
  return {
    gpus: cards.length,
    migInstances: list.length - cards.length,
    notCurrent: cards.length - current.length,
    utilizationRatio: utilization.length === 0 ? null : utilization.reduce((sum, value) => sum + value, 0) / utilization.length,
    memoryUsedBytes: sum(current.map(({ sample }) => sample.memoryUsedBytes)),
    memoryTotalBytes: sum(current.map(({ sample }) => sample.memoryTotalBytes)),
    powerWatts: sum(current.map(({ sample }) => sample.powerWatts)),
    powerCapWatts: wholeSum(current.map(({ info }) => powerCap(info))),
    processes: processes.length === 0 ? null : new Set(people.map(({ pid }) => pid)).size,
    users: new Set(people.flatMap(({ info }) => info?.user ?? [])).size,
  }
}

/** Of what is known; null when nothing is. */
function sum(values: readonly Reading[]): Reading {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : known.reduce((total, value) => total + value, 0)
}

function wholeSum(values: readonly Reading[]): Reading {
  return values.includes(null) ? null : sum(values)
}
