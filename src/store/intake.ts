import type { HubEvent, Tick } from '../core/kinds.ts'
import type { GpuInfo } from '../core/model.ts'
import { deviceRecord, eventRecord, gpuRecord, hostRecord, type JsonRecord, stepRecord } from '../core/record.ts'
import type { StreamName } from './file-name.ts'
import { findingRecord } from './lines.ts'

/** Ticks that wait to become lines; few, so that bytes bound what waits for a disk. */
const MOST_WAITING = 64

/** Turns what the hub publishes into lines: several ticks at a time, which costs a fraction of one by one. */
export class Intake {
  readonly #push: (stream: StreamName, record: JsonRecord, at: number) => void
  readonly #now: () => number
  readonly #devices = new Map<string, GpuInfo>()
  /** What the current file says of each device. */
  readonly #said = new Map<string, string>()
  readonly #waiting: Tick[] = []
  #fault: unknown = null
  #gpuTicks = 0

  constructor(push: (stream: StreamName, record: JsonRecord, at: number) => void, now: () => number) {
    this.#push = push
    this.#now = now
  }

  /** Ticks with GPU samples since resetGpuTicks. */
  get gpuTicks(): number {
    return this.#gpuTicks
  }

  resetGpuTicks(): void {
    this.#gpuTicks = 0
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0
  }

  /** Turns all that waits into lines. */
  settle(): void {
    for (const tick of this.#waiting.splice(0)) {
      try {
        this.#acceptTick(tick)
      } catch (error) {
        this.#fault ??= error
      }
    }
  }

  /** Throws when any accepted input could not become a line; the hub counts and logs that. */
  accept(event: HubEvent): void {
    this.#accept(event)
    const fault = this.#fault
    this.#fault = null
    if (fault !== null) throw fault
  }

  #accept(event: HubEvent): void {
    switch (event.type) {
      case 'tick':
        if (event.tick.gpus.length > 0) this.#gpuTicks += 1
        this.#waiting.push(event.tick)
        if (this.#waiting.length >= MOST_WAITING) this.settle()
        break
      case 'devices':
        // A line says what was known of its GPU at the time.
        this.settle()
        this.#devices.clear()
        for (const device of event.devices) this.#devices.set(device.id, device)
        this.#sayDevices()
        break
      case 'steps':
        for (const step of event.steps) this.#push('training_metrics', stepRecord(step, event.provenance), step.at)
        break
      case 'finding':
        this.#push('findings', findingRecord(event.finding), event.finding.at)
        break
      default:
    }
  }

  /** For a new file: all devices, whether they changed or not. */
  restateDevices(): void {
    this.#said.clear()
    this.#sayDevices()
  }

  #acceptTick({ gpus, processes, host, events, provenance }: Tick): void {
    for (const sample of gpus) {
      const own = gpus.length === 1 || processes.length === 0 ? processes : processes.filter((process) => process.gpu === sample.gpu)
      this.#push('gpu_metrics', gpuRecord(sample, this.#devices.get(sample.gpu), own), sample.at)
    }
    if (host) this.#push('host_metrics', hostRecord(host, provenance), host.at)
    for (const event of events) this.#push('gpu_events', eventRecord(event, provenance), event.at)
  }

  #sayDevices(): void {
    for (const device of this.#devices.values()) {
      const text = JSON.stringify(device)
      if (this.#said.get(device.id) === text) continue
      this.#said.set(device.id, text)
      const at = this.#now()
      this.#push('gpu_devices', deviceRecord(device, at), at)
    }
  }
}
