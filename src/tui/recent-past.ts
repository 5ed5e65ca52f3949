/** The recent past of GPUs, processes and the host, for graphs: from ticks as they come, and from what an agent kept before. */
import type { Tick } from '../core/kinds.ts'
import type { GpuInfo, Reading } from '../core/model.ts'
import { processKey } from './screen-data.ts'
import { Series } from './series.ts'

export interface GpuPast {
  readonly utilization: Series
  readonly memory: Series
}

const MOST_PROCESSES = 1024

export class RecentPast {
  readonly stepMs: number
  readonly hostCpu: Series
  readonly hostMemory: Series
  readonly #gpus = new Map<string, GpuPast>()
  /** The one that was heard of longest ago is first. */
  readonly #processes = new Map<string, Series>()

  constructor(stepMs: number) {
    this.stepMs = stepMs
    this.hostCpu = new Series(stepMs)
    this.hostMemory = new Series(stepMs)
  }

  gpu(id: string): GpuPast {
    const past = this.#gpus.get(id) ?? { utilization: new Series(this.stepMs), memory: new Series(this.stepMs) }
    this.#gpus.set(id, past)
    return past
  }

  /** GPU memory of a process, by processKey. */
  process(key: string): Series | undefined {
    return this.#processes.get(key)
  }

  accept({ at, gpus, processes, host }: Tick): void {
    for (const sample of gpus) {
      const { utilization, memory } = this.gpu(sample.gpu)
      utilization.push(sample.at, sample.utilizationRatio)
      memory.push(sample.at, ratio(sample.memoryUsedBytes, sample.memoryTotalBytes))
    }
    for (const process of processes) {
      const key = processKey(process)
      const series = this.#processes.get(key) ?? new Series(this.stepMs)
      series.push(at, process.memoryUsedBytes)
      this.#processes.delete(key)
      this.#processes.set(key, series)
    }
    for (const oldest of this.#processes.keys()) {
      if (this.#processes.size <= Math.max(MOST_PROCESSES, processes.length)) break
      this.#processes.delete(oldest)
    }
    if (!host) return
    this.hostCpu.push(at, host.cpuRatio)
    this.hostMemory.push(at, ratio(host.memoryUsedBytes, host.memoryTotalBytes))
  }

  /** As the history of an agent answers: columns of time, utilization, bytes in use, bytes in all. */
  backfill(gpu: string, [at = [], utilization = [], used = [], total = []]: readonly (readonly Reading[])[]): void {
    const past = this.gpu(gpu)
    at.forEach((time, index) => {
      if (time === null) return
      past.utilization.push(time, utilization[index] ?? null)
      past.memory.push(time, ratio(used[index] ?? null, total[index] ?? null))
    })
  }

  keepOnly(devices: readonly GpuInfo[]): void {
    const listed = new Set(devices.map(({ id }) => id))
    for (const id of this.#gpus.keys()) if (!listed.has(id)) this.#gpus.delete(id)
  }

  clear(): void {
    this.#gpus.clear()
    this.#processes.clear()
    this.hostCpu.clear()
    this.hostMemory.clear()
  }
}

function ratio(used: Reading, total: Reading): Reading {
  return used === null || total === null || total <= 0 ? null : used / total
}
