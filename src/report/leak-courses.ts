/** The memory of GPUs, processes and runs over time, to judge whether it leaks. Bounded. */
import type { HubEvent, Tick } from '../core/kinds.ts'
import type { MemoryCourse } from '../core/memory/leak-course.ts'
import { RunMap } from '../core/memory/run-map.ts'
import type { GpuInfo, GpuSample, TrainingStep } from '../core/model.ts'
import { BoundedSeries } from './bounded-series.ts'
import { MemoryTrend } from './memory-trend.ts'

const MOST_FOLLOWED = 128
/** Processes with a smaller share of the GPU are not listed. */
const NOTABLE_RATIO = 0.005

export class Course implements MemoryCourse {
  readonly trend = new MemoryTrend()
  readonly #series = new BoundedSeries()

  get count(): number {
    return this.trend.count
  }

  get spanMs(): number {
    return this.trend.spanMs
  }

  push(at: number, bytes: number): void {
    this.trend.push(at, bytes)
    this.#series.push(at, bytes)
  }

  columns() {
    return this.#series.columns()
  }
}

export interface FollowedGpu {
  readonly info: GpuInfo
  sample: GpuSample | null
  readonly course: Course
}

export interface FollowedProcess {
  readonly gpu: string
  readonly pid: number
  user: string | null
  readonly course: Course
}

export interface FollowedRun {
  readonly course: Course
  gpu: string | null
}

export class LeakCourses {
  readonly gpus = new Map<string, FollowedGpu>()
  readonly runs = new Map<string, FollowedRun>()
  readonly #processes = new Map<string, FollowedProcess>()
  readonly #map = new RunMap()

  accept(event: HubEvent): void {
    if (event.type === 'run') this.#map.noteRun(event.run)
    else if (event.type === 'devices') for (const info of event.devices) this.#device(info)
    else if (event.type === 'steps') for (const step of event.steps) this.#step(step)
    else if (event.type === 'tick') this.#tick(event.tick)
  }

  /** Those on a GPU that hold a notable share of it, the largest first. */
  processesOn({ info, sample }: FollowedGpu): FollowedProcess[] {
    const least = NOTABLE_RATIO * (sample?.memoryTotalBytes ?? info.memoryTotalBytes ?? 0)
    return [...this.#processes.values()]
      .filter((one) => one.gpu === info.id && one.course.trend.maxBytes >= least)
      .sort((a, b) => b.course.trend.maxBytes - a.course.trend.maxBytes)
  }

  #device(info: GpuInfo): void {
    this.#map.noteDevice(info)
    const known = this.gpus.get(info.id)
    this.gpus.set(info.id, { info, sample: known?.sample ?? null, course: known?.course ?? new Course() })
  }

  #step(step: TrainingStep): void {
    const { run, at, memoryAllocatedBytes: bytes } = step
    if (bytes === null || !Number.isFinite(bytes)) return
    const known = this.runs.get(run) ?? { course: new Course(), gpu: null }
    known.gpu = this.#map.noteStep(step)
    known.course.push(at, bytes)
    this.runs.set(run, known)
    if (this.runs.size > MOST_FOLLOWED) this.runs.delete(this.runs.keys().next().value ?? run)
  }

  #tick({ at, gpus, processes }: Tick): void {
    for (const sample of gpus) {
      this.#map.noteSample(sample)
      const known = this.gpus.get(sample.gpu)
      if (known === undefined) continue
      known.sample = sample
      if (sample.memoryUsedBytes !== null) known.course.push(sample.at, sample.memoryUsedBytes)
    }
    for (const { gpu, pid, memoryUsedBytes, info } of processes) {
      if (memoryUsedBytes === null) continue
      const key = `${gpu} ${pid}`
      const known = this.#processes.get(key) ?? { gpu, pid, user: null, course: new Course() }
      if (!this.#processes.has(key) && this.#processes.size >= MOST_FOLLOWED) this.#dropSmallest()
      known.user = info?.user ?? known.user
      known.course.push(at, memoryUsedBytes)
      this.#processes.set(key, known)
    }
  }

  #dropSmallest(): void {
    const sizes = [...this.#processes].map(([key, { course }]) => [key, course.trend.maxBytes] as const)
    const [smallest] = sizes.reduce((least, one) => (one[1] < least[1] ? one : least))
    this.#processes.delete(smallest)
  }
}
