/** The MIG instances of one GPU: each is a device of its own, with its own memory and processes. */
import { migLabel } from '../../core/gpu-words.ts'
import type { GpuInfo, Sample } from '../../core/model.ts'
import { GPU_FIELDS } from '../../core/record.ts'
import { CODE, codeInWords } from './codes.ts'
import { Device, type Readings } from './device.ts'
import { readMemory } from './fast.ts'
import { GPM_RATIO_FIELDS, type Gpm, openGpm } from './gpm.ts'
import { readMigInstance, unknownGpu } from './info.ts'
import { MemoryReader } from './memory.ts'
import { Processes } from './processes.ts'
import { textOf } from './question.ts'
import { emptyReadings, sampleOf, silentSample } from './sample.ts'

/** Of an instance only these are its own, and what GPM counts; the rest is read at the parent. */
const OWN_FIELDS = new Set(['memoryTotalBytes', 'memoryUsedBytes', 'memoryFreeBytes', 'memoryReservedBytes'])
/** No GPU has more than seven, whatever a driver says. */
const MAX_INSTANCES = 16

const pointer = Buffer.alloc(8)

function uuidOf(device: Device): string | null {
  return textOf(device, 'nvmlDeviceGetUUID', 'id')
}

class Instance {
  readonly device: Device
  readonly info: GpuInfo
  readonly #memory: MemoryReader
  readonly #gpm: Gpm | null
  readonly #processes: Processes
  readonly #readings: Readings = emptyReadings()

  constructor(parent: Device, parentInfo: GpuInfo, handle: bigint, root: string) {
    const device = new Device(parent.nvml, handle)
    for (const field of GPU_FIELDS)
      if (!OWN_FIELDS.has(field) && !GPM_RATIO_FIELDS.has(field)) device.explain(field, 'belongs to the whole GPU, not to a MIG instance')
    const name = textOf(device, 'nvmlDeviceGetName', 'name')
    const mig = readMigInstance(device, parentInfo.id, name)
    const id = uuidOf(device) ?? `${parentInfo.id}/${mig.gpuInstanceId}/${mig.computeInstanceId ?? 0}`
    this.#memory = new MemoryReader(device, root)
    const take = parent.nvml.functions.nvmlGpmMigSampleGet
    this.#gpm = openGpm(device, parent, take === null ? null : (sample) => take(parent.handle, mig.gpuInstanceId, sample))
    if (this.#gpm === null) device.explain('utilizationRatio', 'a MIG instance tells it from Hopper on')
    else device.unexplain('utilizationRatio')
    this.#processes = new Processes(device, null)
    device.explain('processes.smRatio', 'not supported on a MIG instance')
    const { pciBusId, minor, serial, driverVersion, cudaVersion, libraryVersion, architecture, confidentialComputing } = parentInfo
    this.info = {
      ...unknownGpu({ id, name, pciBusId }, parentInfo.index, { driverVersion, cudaVersion, libraryVersion, confidentialComputing }),
      label: migLabel(parentInfo.index, mig),
      minor,
      serial,
      architecture,
      memoryTotalBytes: this.#memory.read()?.totalBytes ?? null,
      mig,
    }
    this.device = device
  }

  read(at: number, monotonicMs: number, slow: boolean): Sample {
    const { device, info } = this
    device.beginTick()
    readMemory(this.#memory, this.#readings)
    this.#gpm?.read(this.#readings, slow)
    // Counted over the whole GPU instance: compute instances that share one show the same.
    this.#readings.utilizationRatio = this.#readings.graphicsActiveRatio
    const processes = this.#processes.read(slow, monotonicMs)
    const failure = device.fault ?? device.totalFailure()
    // A handle dies with its instance; whether the GPU itself is lost is for the parent to say.
    device.fault = null
    return failure === null
      ? sampleOf(at, info.id, this.#readings, null, processes)
      : silentSample(at, info.id, 'error', codeInWords(failure))
  }

  close(): void {
    this.#gpm?.close()
    this.#memory.close()
  }
}

export class MigInstances {
  readonly #parent: Device
  readonly #root: string
  #instances: readonly Instance[] = []

  constructor(parent: Device, root: string) {
    this.#parent = parent
    this.#root = root
  }

  /** Changes with every reason that an instance learns. */
  get revision(): number {
    let sum = 0
    for (const { device } of this.#instances) sum += device.revision
    return sum
  }

  infos(): GpuInfo[] {
    return this.#instances.map(({ info, device }) => ({ ...info, unavailable: device.reasons() }))
  }

  /** Looks how the GPU is partitioned; true when that changed. */
  refresh(parentInfo: GpuInfo): boolean {
    const handles = parentInfo.migMode === 'enabled' ? this.#handles() : []
    const ids = handles.map((handle) => uuidOf(new Device(this.#parent.nvml, handle)))
    if (ids.length === this.#instances.length && ids.every((id, position) => this.#instances[position]?.info.id === id)) return false
    this.close()
    this.#instances = handles.map((handle) => new Instance(this.#parent, parentInfo, handle, this.#root))
    return true
  }

  read(at: number, monotonicMs: number, slow: boolean, samples: Sample[]): void {
    for (const instance of this.#instances) samples.push(instance.read(at, monotonicMs, slow))
  }

  /** The parent could not be read, so neither can they be. */
  silence(make: (id: string) => Sample, samples: Sample[]): void {
    for (const { info } of this.#instances) samples.push(make(info.id))
  }

  close(): void {
    for (const instance of this.#instances) instance.close()
  }

  #handles(): bigint[] {
    const { nvmlDeviceGetMaxMigDeviceCount: most, nvmlDeviceGetMigDeviceHandleByIndex: byIndex } = this.#parent.nvml.functions
    if (most === null || byIndex === null || this.#parent.fault !== null) return []
    if (this.#parent.judge(most(this.#parent.handle, pointer), []) !== 'answered') return []
    const slots = Math.min(pointer.readUInt32LE(0), MAX_INSTANCES)
    const handles: bigint[] = []
    for (let slot = 0; slot < slots; slot++) {
      // An empty slot answers "not found".
      if (byIndex(this.#parent.handle, slot, pointer) === CODE.ok) handles.push(pointer.readBigUInt64LE(0))
    }
    return handles
  }
}
