/** Who uses this GPU: compute and graphics lists, one entry per process. */
import type { GpuProcess, GpuProcessType } from '../../core/model.ts'
import { AdaptiveTier } from './adaptive-tier.ts'
import type { Device } from './device.ts'
import type { DriverProcess } from './process-layout.ts'
import { ProcessList } from './process-list.ts'
import { type ProcessShares, type ProcessUtilization, UNKNOWN_SHARES } from './process-utilization.ts'

export class Processes {
  readonly #compute: ProcessList
  readonly #graphics: ProcessList
  readonly #graphicsTier: AdaptiveTier
  readonly #utilization: ProcessUtilization | null
  #graphicsNow: readonly DriverProcess[] = []

  /** `utilization` null: this device (a MIG instance) cannot tell shares. */
  constructor(device: Device, utilization: ProcessUtilization | null, graphicsTier = new AdaptiveTier()) {
    this.#utilization = utilization
    this.#graphicsTier = graphicsTier
    this.#compute = new ProcessList(
      device,
      ['nvmlDeviceGetComputeRunningProcesses_v3', 'nvmlDeviceGetComputeRunningProcesses_v2', 'nvmlDeviceGetComputeRunningProcesses'],
      'processes',
    )
    this.#graphics = new ProcessList(
      device,
      ['nvmlDeviceGetGraphicsRunningProcesses_v3', 'nvmlDeviceGetGraphicsRunningProcesses_v2', 'nvmlDeviceGetGraphicsRunningProcesses'],
      null,
    )
  }

  /** `seldom`: what is expensive here is due in this tick. */
  read(seldom: boolean, monotonicMs: number): GpuProcess[] | null {
    const compute = this.#compute.read()
    if (!this.#graphics.over && (seldom || !this.#graphicsTier.slow))
      this.#graphicsNow = this.#graphicsTier.measure(() => this.#graphics.read()) ?? []
    if (compute === null) return null
    if (seldom) this.#utilization?.refresh(pidsOf(compute, this.#graphicsNow), monotonicMs)
    return mergeProcesses(compute, this.#graphicsNow, (pid) => this.#utilization?.of(pid) ?? UNKNOWN_SHARES)
  }
}

function* pidsOf(...lists: readonly (readonly DriverProcess[])[]): Generator<number> {
  for (const list of lists) for (const { pid } of list) yield pid
}

/** The driver gives a process that computes and draws the same figure in both lists: the larger counts, not the sum. */
export function mergeProcesses(
  compute: readonly DriverProcess[],
  graphics: readonly DriverProcess[],
  sharesOf: (pid: number) => ProcessShares,
): GpuProcess[] {
  const merged = new Map<number, { type: GpuProcessType; memoryUsedBytes: number | null }>()
  for (const { pid, memoryUsedBytes } of compute)
    merged.set(pid, { type: 'compute', memoryUsedBytes: larger(merged.get(pid)?.memoryUsedBytes, memoryUsedBytes) })
  for (const { pid, memoryUsedBytes } of graphics) {
    const known = merged.get(pid)
    const type = known === undefined || known.type === 'graphics' ? 'graphics' : 'both'
    merged.set(pid, { type, memoryUsedBytes: larger(known?.memoryUsedBytes, memoryUsedBytes) })
  }
  const processes: GpuProcess[] = []
  for (const [pid, { type, memoryUsedBytes }] of merged) {
    const { smRatio, memoryRatio, encoderRatio, decoderRatio } = sharesOf(pid)
    processes.push({ pid, type, memoryUsedBytes, smRatio, memoryRatio, encoderRatio, decoderRatio })
  }
  return processes
}

function larger(one: number | null | undefined, other: number | null): number | null {
  if (one === null || one === undefined) return other
  return other === null ? one : Math.max(one, other)
}
