import type { HubEvent, Tick } from '../kinds.ts'
import type { GpuInfo } from '../model.ts'
import { deviceRecord, eventRecord, gpuRecord, hostRecord, type JsonRecord, stepRecord } from '../record.ts'
import type { StreamName } from './file-name.ts'
import { findingRecord } from './lines.ts'

/** Turns what the hub publishes into lines. */
export class Intake {
  readonly #push: (stream: StreamName, record: JsonRecord, at: number) => void
  readonly #now: () => number
  readonly #devices = new Map<string, GpuInfo>()
  /** What the current file says of each device. */
  readonly #said = new Map<string, string>()
  #gpuTicks = 0

  constructor(push: (stream: StreamName, record: JsonRecord, at: number) => void, now: () => number) {
    this.#push = push
    this.#now = now
  }

  /** Ticks with GPU samples since the last call of resetGpuTicks. */
  get gpuTicks(): number {
    return this.#gpuTicks
  }

  resetGpuTicks(): void {
    this.#gpuTicks = 0
  }

  accept(event: HubEvent): void {
    switch (event.type) {
      case 'tick':
        this.#acceptTick(event.tick)
        break
      case 'devices':
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
    if (gpus.length > 0) this.#gpuTicks += 1
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
