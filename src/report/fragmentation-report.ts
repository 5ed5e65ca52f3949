/** Where the memory of each GPU is, and how much of it is fragmented in the allocators of runs. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { HubEvent } from '../core/kinds.ts'
import { allocatorBytes, type Fragmentation, fragmentationOf } from '../core/memory/fragmentation.ts'
import { type Ledger, ledgerOf } from '../core/memory/ledger.ts'
import { RunMap, rankKey } from '../core/memory/run-map.ts'
import type { GpuInfo, GpuSample, Reading, TrainingStep } from '../core/model.ts'

export interface RunFragmentation extends Fragmentation {
  readonly run: string
  readonly rank: number
  /** null: its GPU is unknown. */
  readonly deviceId: number | null
  readonly step: number
  readonly at: number
  readonly steps: number
  readonly allocatedBytes: Reading
  readonly reservedBytes: Reading
  readonly highestRatio: Reading
  readonly highestAt: Reading
  readonly allocRetries: Reading
}

export interface DeviceLedger {
  readonly deviceId: number
  readonly label: string
  readonly name: string | null
  readonly at: number
  /** null: the total is unknown. */
  readonly ledger: Ledger | null
  readonly runs: readonly string[]
  readonly simulated: boolean
}

export interface FragmentationFigures {
  readonly runs: readonly RunFragmentation[]
  readonly devices: readonly DeviceLedger[]
}

const MOST_RUNS = 64
/** Steps this far apart are not of the same moment. */
const TOGETHER_MS = 60_000

interface Followed {
  step: TrainingStep
  gpu: string | null
  steps: number
  highestRatio: Reading
  highestAt: Reading
}

interface FollowedGpu {
  readonly info: GpuInfo
  latest: GpuSample | null
  /** At the newest step of a run on it: after the run has ended nothing of it is left to see. */
  atStep: GpuSample | null
}

export class FragmentationBook {
  readonly #devices: ReadonlySet<number> | null
  readonly #gpus = new Map<string, FollowedGpu>()
  readonly #runs = new BoundedMap<string, Followed>(MOST_RUNS, { isRenewed: true })
  readonly #map = new RunMap()

  /** `devices` by index; null for all. */
  constructor(devices: ReadonlySet<number> | null = null) {
    this.#devices = devices
  }

  accept(event: HubEvent): void {
    if (event.type === 'devices')
      for (const info of event.devices) {
        this.#map.noteDevice(info)
        const known = this.#gpus.get(info.id)
        this.#gpus.set(info.id, { info, latest: known?.latest ?? null, atStep: known?.atStep ?? null })
      }
    else if (event.type === 'run') this.#map.noteRun(event.run)
    else if (event.type === 'steps') for (const step of event.steps) this.#step(step)
    else if (event.type === 'tick')
      for (const sample of event.tick.gpus) {
        this.#map.noteSample(sample)
        const known = this.#gpus.get(sample.gpu)
        if (known !== undefined) known.latest = sample
      }
  }

  figures(): FragmentationFigures {
    const shown = [...this.#gpus.values()]
      .filter(({ info }) => this.#devices === null || this.#devices.has(info.index))
      .sort((a, b) => a.info.index - b.info.index)
    return {
      runs: [...this.#runs.values()].map((one) => this.#figuresOf(one)).filter(({ deviceId }) => this.#isShown(deviceId)),
      devices: shown.flatMap((gpu) => this.#ledgerOf(gpu) ?? []),
    }
  }

  #isShown(deviceId: number | null): boolean {
    return this.#devices === null || deviceId === null || this.#devices.has(deviceId)
  }

  #step(step: TrainingStep): void {
    if (step.memoryReservedBytes === null && step.memoryAllocatedBytes === null) return
    const gpu = this.#map.noteStep(step)
    const key = rankKey(step.run, step.rank)
    const known = this.#runs.get(key) ?? { step, gpu, steps: 0, highestRatio: null, highestAt: null }
    known.step = step
    known.gpu = gpu
    known.steps++
    const { ratio } = fragmentationOf(allocatorBytes(step))
    if (ratio !== null && (known.highestRatio === null || ratio > known.highestRatio)) {
      known.highestRatio = ratio
      known.highestAt = step.at
    }
    this.#runs.set(key, known)
    const device = gpu === null ? undefined : this.#gpus.get(gpu)
    if (device !== undefined) device.atStep = device.latest
  }

  #figuresOf({ step, gpu, steps, highestRatio, highestAt }: Followed): RunFragmentation {
    return {
      run: step.run,
      rank: step.rank,
      deviceId: gpu === null ? null : (this.#gpus.get(gpu)?.info.index ?? null),
      step: step.step,
      at: step.at,
      steps,
      allocatedBytes: step.memoryAllocatedBytes,
      reservedBytes: step.memoryReservedBytes,
      ...fragmentationOf(allocatorBytes(step)),
      highestRatio,
      highestAt,
      allocRetries: step.allocRetries,
    }
  }

  #ledgerOf({ info, latest, atStep }: FollowedGpu): DeviceLedger | null {
    const sample = atStep ?? latest
    if (sample === null) return null
    const runs = [...this.#runs.values()].filter((one) => one.gpu === info.id && Math.abs(one.step.at - sample.at) <= TOGETHER_MS)
    const allocators = runs.map(({ step }) => allocatorBytes(step))
    return {
      deviceId: info.index,
      label: info.label,
      name: info.name,
      at: sample.at,
      ledger: ledgerOf({
        totalBytes: sample.memoryTotalBytes ?? info.memoryTotalBytes,
        usedBytes: sample.memoryUsedBytes,
        driverReservedBytes: sample.memoryReservedBytes,
        processes: sample.processes,
        allocators: withPids(allocators, sample),
      }),
      runs: runs.map(({ step }) => step.run),
      simulated: info.provenance === 'simulated',
    }
  }
}

/** A step does not say which process it ran in: the largest processes are assumed to belong to the largest allocators. */
function withPids<T extends { readonly reservedBytes: Reading }>(allocators: readonly T[], sample: GpuSample): (T & { pid: Reading })[] {
  const processes = (sample.processes ?? []).toSorted((a, b) => (b.memoryUsedBytes ?? 0) - (a.memoryUsedBytes ?? 0))
  return allocators
    .toSorted((a, b) => (b.reservedBytes ?? 0) - (a.reservedBytes ?? 0))
    .map((one, index) => ({ ...one, pid: processes[index]?.pid ?? null }))
}
