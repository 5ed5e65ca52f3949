/** The memory of one GPU, by the best call that the driver has; the host's where the GPU has none of its own. */

import { type HostMemory, openHostMemory } from '../host-memory.ts'
import { CODE } from './codes.ts'
import type { Device } from './device.ts'
import { decodeMemoryV1, decodeMemoryV2, MEMORY_V2_BYTES, MEMORY_V2_VERSION, type Memory } from './layouts.ts'

const FIELDS = ['memoryTotalBytes', 'memoryUsedBytes', 'memoryFreeBytes', 'memoryReservedBytes']

const buffer = Buffer.alloc(MEMORY_V2_BYTES)

export class MemoryReader {
  readonly #device: Device
  readonly #root: string
  #layout: 'v2' | 'v1' | 'unified' | 'none' = 'v2'
  #host: HostMemory | null = null

  constructor(device: Device, root: string) {
    this.#device = device
    this.#root = root
  }

  get unified(): boolean {
    return this.#layout === 'unified'
  }

  read(): Memory | null {
    if (this.#device.fault !== null) return null
    if (this.#layout === 'v2') return this.#readV2()
    if (this.#layout === 'v1') return this.#readV1()
    return this.#host?.read() ?? null
  }

  close(): void {
    this.#host?.close()
  }

  #readV2(): Memory | null {
    const device = this.#device
    buffer.writeUInt32LE(MEMORY_V2_VERSION, 0)
    const code = device.nvml.functions.nvmlDeviceGetMemoryInfo_v2?.(device.handle, buffer) ?? CODE.functionNotFound
    if (code === CODE.noPermission) return this.#refuse(code)
    const verdict = device.judge(code, [])
    if (verdict === 'answered') return this.#accept(decodeMemoryV2(buffer))
    if (verdict === 'not-now') return null
    this.#layout = 'v1'
    device.explain('memoryReservedBytes', 'driver too old to report its reserve: memory used includes it')
    return this.#readV1()
  }

  #readV1(): Memory | null {
    const device = this.#device
    const code = device.nvml.functions.nvmlDeviceGetMemoryInfo?.(device.handle, buffer) ?? CODE.functionNotFound
    if (code === CODE.noPermission) return this.#refuse(code)
    const verdict = device.judge(code, [])
    if (verdict === 'answered') return this.#accept(decodeMemoryV1(buffer))
    return verdict === 'never' ? this.#share() : null
  }

  /** Total 0 is how some integrated GPUs say that they have no memory of their own. */
  #accept(memory: Memory | null): Memory | null {
    return memory?.totalBytes === 0 ? this.#share() : memory
  }

  #share(): Memory | null {
    this.#layout = 'unified'
    this.#device.explain('memoryReservedBytes', 'this GPU shares the memory of the host')
    this.#host = openHostMemory(this.#root)
    if (this.#host === null)
      for (const field of FIELDS) this.#device.explain(field, 'this GPU shares the memory of the host, and /proc/meminfo cannot be read')
    return this.#host?.read() ?? null
  }

  #refuse(code: number): null {
    this.#layout = 'none'
    this.#device.judge(code, FIELDS)
    return null
  }
}
