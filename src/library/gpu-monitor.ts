/** The same sampling as the program, as an object to start, iterate over and stop. */
import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { loadConfig } from '../agent/config.ts'
import { SILENT_LOG } from '../agent/one-look.ts'
import { noGpuFailure, Sampling } from '../agent/sampling.ts'
import type { HubEvent } from '../core/kinds.ts'
import type { GpuEvent, GpuInfo, GpuSample, HostSample, ProcessView, SourceHealth } from '../core/model.ts'

export interface GPUMonitorOptions {
  /** GPU indexes; all by default. */
  readonly gpuIndex?: number | readonly number[]
  /** Seconds between samples, from 0.1. */
  readonly sampleInterval?: number
  /** auto (default), nvidia, amd, intel, demo or replay:PATH. */
  readonly source?: string
  /** How many samples history() and a slow iteration keep. */
  readonly historySize?: number
}

/** A sample with the name of its GPU and the owners of its processes. */
export interface MonitorSample extends GpuSample {
  readonly index: number
  readonly name: string | null
  readonly simulated: boolean
  readonly owners: readonly ProcessView[]
}

export interface GPUMonitorEvents {
  sample: [sample: MonitorSample]
  host: [sample: HostSample]
  event: [event: GpuEvent]
  devices: [devices: readonly GpuInfo[]]
  health: [health: readonly SourceHealth[]]
  /** stop() was called, or a recording is over. */
  end: []
}

const DEFAULT_HISTORY = 300

export class GPUMonitor extends EventEmitter<GPUMonitorEvents> implements AsyncIterable<MonitorSample> {
  readonly #options: GPUMonitorOptions
  readonly #kept: MonitorSample[] = []
  readonly #infos = new Map<string, GpuInfo>()
  #sampling: Sampling | null = null

  constructor(options: GPUMonitorOptions = {}) {
    super()
    this.#options = options
  }

  /** Resolves when the GPUs are open. Rejects with a Failure that says what to do. */
  async start(): Promise<void> {
    if (this.#sampling) return
    const { gpuIndex, sampleInterval, source } = this.#options
    const { values } = loadConfig({
      flags: {
        ...(gpuIndex === undefined ? {} : { devices: typeof gpuIndex === 'number' ? [gpuIndex] : [...gpuIndex] }),
        ...(sampleInterval === undefined ? {} : { interval: sampleInterval }),
        ...(source === undefined ? {} : { source }),
      },
    })
    const sampling = new Sampling({ values, log: SILENT_LOG, runId: randomBytes(16).toString('hex'), onEnded: () => void this.stop() })
    this.#sampling = sampling
    sampling.hub.addSink({
      name: 'library',
      accept: (event) => this.#hear(event),
    })
    try {
      const { openings } = await sampling.open()
      if (openings.every(({ result }) => result === 'absent')) throw noGpuFailure(openings)
    } catch (error) {
      this.#sampling = null
      await sampling.stop()
      throw error
    }
  }

  async stop(): Promise<void> {
    const sampling = this.#sampling
    if (!sampling) return
    this.#sampling = null
    await sampling.stop()
    this.emit('end')
  }

  /** The GPUs, once started. */
  devices(): readonly GpuInfo[] {
    return [...this.#infos.values()]
  }

  /** Health of the sources; empty before start() and after stop(). */
  health(): readonly SourceHealth[] {
    return this.#sampling?.supervisor.health() ?? []
  }

  /** The latest samples, oldest first. */
  history(): readonly MonitorSample[] {
    return this.#kept
  }

  /** Samples as they come; ends with stop(). A slow reader loses the oldest. Starts the monitor if needed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<MonitorSample, void, undefined> {
    const queue: MonitorSample[] = []
    let isOver = false
    let wake: () => void = () => undefined
    const onSample = (sample: MonitorSample) => {
      queue.push(sample)
      if (queue.length > this.#limit) queue.shift()
      wake()
    }
    const onEnd = () => {
      isOver = true
      wake()
    }
    this.on('sample', onSample).on('end', onEnd)
    try {
      await this.start()
      while (true) {
        const next = queue.shift()
        if (next) yield next
        else if (isOver) return
        else
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }
    } finally {
      this.off('sample', onSample).off('end', onEnd)
    }
  }

  get #limit(): number {
    return this.#options.historySize ?? DEFAULT_HISTORY
  }

  #hear(event: HubEvent): void {
    if (event.type === 'devices') {
      this.#infos.clear()
      for (const device of event.devices) this.#infos.set(device.id, device)
      this.emit('devices', event.devices)
    } else if (event.type === 'health') this.emit('health', event.health)
    else if (event.type === 'tick') {
      const { gpus, processes, host, events } = event.tick
      for (const sample of gpus) this.#keep(sample, processes)
      if (host) this.emit('host', host)
      for (const one of events) this.emit('event', one)
    }
  }

  #keep(sample: GpuSample, processes: readonly ProcessView[]): void {
    const info = this.#infos.get(sample.gpu)
    const full: MonitorSample = {
      ...sample,
      index: info?.index ?? -1,
      name: info?.name ?? null,
      simulated: info?.provenance === 'simulated',
      owners: processes.filter((process) => process.gpu === sample.gpu),
    }
    this.#kept.push(full)
    if (this.#kept.length > this.#limit) this.#kept.shift()
    this.emit('sample', full)
  }
}
