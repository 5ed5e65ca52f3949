/** The GPUs of a recording: from their own lines, or made up from what the first metrics line tells. */
import type { GpuInfo, Vendor } from '../model.ts'
import { NO_FACTS } from '../record.ts'
import type { GpuLine } from './gpu.ts'

export class DeviceRoster {
  readonly #byId = new Map<string, GpuInfo>()
  #list: readonly GpuInfo[] = []

  /** In the order of their index; a new array object after a change. */
  devices(): readonly GpuInfo[] {
    return this.#list
  }

  set(device: GpuInfo): void {
    // What was simulated when it was recorded does not become a measurement by being played back.
    const shown: GpuInfo = { ...device, provenance: device.provenance === 'simulated' ? 'simulated' : 'replay' }
    const known = this.#byId.get(device.id)
    if (known !== undefined && JSON.stringify(known) === JSON.stringify(shown)) return
    this.#byId.set(device.id, shown)
    this.#list = [...this.#byId.values()].sort((a, b) => a.index - b.index)
  }

  see(line: GpuLine): void {
    if (!this.#byId.has(line.sample.gpu)) this.set(deviceOf(line, this.#byId.size))
  }
}

function deviceOf(line: GpuLine, position: number): GpuInfo {
  const index = line.index ?? position
  return {
    ...NO_FACTS,
    id: line.sample.gpu,
    index,
    label: line.label ?? String(index),
    vendor: vendorOf(line.name),
    provenance: line.isSimulated ? 'simulated' : 'replay',
    name: line.name,
    memoryTotalBytes: line.sample.memoryTotalBytes,
  }
}

function vendorOf(name: string | null): Vendor {
  return name !== null && /\b(AMD|Radeon|Instinct)\b/i.test(name) ? 'amd' : 'nvidia'
}
