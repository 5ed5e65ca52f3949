/** The GPUs of a recording: from device lines, or derived from the first metrics line. */
import type { GpuInfo } from '../model.ts'
import { NO_FACTS } from '../record.ts'
import type { GpuLine } from './gpu.ts'
import { UNKNOWN_VENDOR } from './line.ts'

export type VendorOfModel = (model: string | null) => string

export class DeviceRoster {
  readonly #vendorOf: VendorOfModel
  readonly #byId = new Map<string, GpuInfo>()
  #list: readonly GpuInfo[] = []

  constructor(vendorOf: VendorOfModel) {
    this.#vendorOf = vendorOf
  }

  /** By index; a new array object after a change. */
  devices(): readonly GpuInfo[] {
    return this.#list
  }

  set(device: GpuInfo): void {
    // Simulated data stays simulated when it is replayed.
    const provenance = device.provenance === 'simulated' ? 'simulated' : 'replay'
    const vendor = device.vendor === UNKNOWN_VENDOR ? this.#vendorOf(device.name) : device.vendor
    const shown: GpuInfo = { ...device, vendor, provenance }
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
    vendor: UNKNOWN_VENDOR,
    provenance: line.isSimulated ? 'simulated' : 'replay',
    name: line.name,
    memoryTotalBytes: line.sample.memoryTotalBytes,
  }
}
