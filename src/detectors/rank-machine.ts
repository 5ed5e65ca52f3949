/** Where the ranks of runs are, and what is wrong there: the likely reason why one of them is slow. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { DetectorInput } from '../core/detector-contract.ts'
import { formatPercent, formatWhole } from '../core/format.ts'
import { clockReasons, isThrottled } from '../core/gpu-words.ts'
import { isGpuOfRun } from '../core/known/about-gpu.ts'
import type { GpuInfo, GpuSample, ProcessView, RankPlace, Reading, Run } from '../core/model.ts'

interface GpuNow {
  id: string
  index: number
  label: string
  /** When heat or protection slowed it down last, and how the card says it. */
  throttledAt: number
  throttledBy: string
  throttledCelsius: Reading
  linkErrors: Reading
  linkErrorsAt: number
  /** Cores in use by process. */
  cpu: (readonly [pid: number, cores: number])[]
}

interface Saved {
  readonly gpus: readonly GpuNow[]
  readonly places: readonly (readonly [run: string, places: readonly RankPlace[]])[]
  readonly host: { readonly name: string; readonly cpuRatio: Reading }
}

/** A rank as it is named: `node7, GPU 3`. */
export interface NamedPlace {
  readonly host: string | null
  readonly gpuIndex: number | null
  readonly words: string
}

const MOST_RUNS = 256
const MOST_GPUS = 128
const RECENT_MS = 60_000
const BUSY_RATIO = 0.95
/** Of one process: threads that fight for one core. */
const PINNED = 0.95

export class RankMachines {
  readonly #gpus = new BoundedMap<string, GpuNow>(MOST_GPUS)
  readonly #places = new BoundedMap<string, readonly RankPlace[]>(MOST_RUNS)
  #host: Saved['host'] = { name: '', cpuRatio: null }

  note(input: DetectorInput): void {
    if (input.type === 'device') this.#gpuOf(input.device.id, input.device)
    else if (input.type === 'gpu') this.#noteSample(input.sample, input.processes)
    else if (input.type === 'host') this.#host = { name: input.sample.hostname, cpuRatio: input.sample.cpuRatio }
    else if (input.type === 'run') this.#noteRun(input.run)
  }

  placeOf(run: string, rank: number): NamedPlace | null {
    const place = this.#find(run, rank)
    if (!place) return null
    const gpu = this.#gpuAt(place)
    const parts = [place.host, gpu ? `GPU ${gpu.label}` : place.gpu === null ? null : `GPU ${place.gpu}`].filter((part) => part !== null)
    return parts.length === 0 ? null : { host: place.host, gpuIndex: gpu?.index ?? null, words: parts.join(', ') }
  }

  /** `its GPU is throttled (too hot, 91 °C)`; null: nothing is known to be wrong there. */
  reasonOf(run: string, rank: number, at: number): string | null {
    const place = this.#find(run, rank)
    const gpu = place && this.#gpuAt(place)
    if (!place) return null
    if (gpu && at - gpu.throttledAt <= RECENT_MS) {
      const heat = gpu.throttledCelsius === null ? '' : `, ${formatWhole(gpu.throttledCelsius, '°C')}`
      return `its GPU is throttled (${gpu.throttledBy}${heat})`
    }
    if (gpu && at - gpu.linkErrorsAt <= RECENT_MS) return 'the link of its GPU has errors'
    if (this.#isHere(place)) {
      const { cpuRatio } = this.#host
      if (cpuRatio !== null && cpuRatio >= BUSY_RATIO) return `the CPU of its host is busy (${formatPercent(cpuRatio)})`
      const cores = gpu?.cpu.find(([pid]) => pid === place.pid)?.[1]
      if (cores !== undefined && cores >= PINNED && cores <= 2 - PINNED) return 'its process uses one whole CPU core'
    }
    return null
  }

  snapshot(): Saved {
    return structuredClone({ gpus: [...this.#gpus.values()], places: [...this.#places], host: this.#host })
  }

  restore(saved: Saved | undefined): void {
    for (const gpu of structuredClone(saved?.gpus ?? [])) this.#gpus.set(gpu.id, gpu)
    for (const [run, places] of saved?.places ?? []) this.#places.set(run, places)
    this.#host = saved?.host ?? this.#host
  }

  #find(run: string, rank: number): RankPlace | undefined {
    return this.#places.get(run)?.find((place) => place.rank === rank)
  }

  #isHere({ host }: RankPlace): boolean {
    return host === null || host === this.#host.name
  }

  #gpuAt(place: RankPlace): GpuNow | undefined {
    if (place.gpu === null || !this.#isHere(place)) return undefined
    const { gpu } = place
    for (const [, one] of this.#gpus) if (isGpuOfRun(one, gpu)) return one
    return undefined
  }

  #noteRun({ id, places, endedAt }: Run): void {
    if (endedAt !== null) this.#places.delete(id)
    else if (places && places.length > 0) this.#places.set(id, places)
  }

  #gpuOf(id: string, info: Pick<GpuInfo, 'index' | 'label'> | null): GpuNow {
    const known = this.#gpus.get(id)
    if (known) return info ? Object.assign(known, { index: info.index, label: info.label }) : known
    const { index, label } = info ?? { index: -1, label: id }
    return this.#gpus.keep(id, {
      id,
      index,
      label,
      throttledAt: Number.MIN_SAFE_INTEGER,
      throttledBy: '',
      throttledCelsius: null,
      linkErrors: null,
      linkErrorsAt: Number.MIN_SAFE_INTEGER,
      cpu: [],
    })
  }

  #noteSample(sample: GpuSample, processes: readonly ProcessView[]): void {
    const gpu = this.#gpuOf(sample.gpu, null)
    const { clockEventReasons: reasons } = sample
    if (reasons !== null && isThrottled(reasons)) {
      gpu.throttledAt = sample.at
      gpu.throttledCelsius = sample.temperatureCelsius
      gpu.throttledBy = clockReasons(reasons)[0]?.words ?? 'slowed down'
    }
    const errors = sum([sample.pcieReplayCount, sample.nvlinkReplayCount, sample.nvlinkRecoveryCount, sample.nvlinkCrcErrorCount])
    if (errors !== null && gpu.linkErrors !== null && errors > gpu.linkErrors) gpu.linkErrorsAt = sample.at
    gpu.linkErrors = errors ?? gpu.linkErrors
    gpu.cpu = processes.flatMap(({ pid, info }) => (info?.cpuRatio == null ? [] : [[pid, info.cpuRatio] as const]))
  }
}

function sum(values: readonly Reading[]): Reading {
  return values.reduce<Reading>((total, value) => (value === null ? total : (total ?? 0) + value), null)
}
