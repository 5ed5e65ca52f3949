import type { GpuInfo, MigInstance, Reading } from '../../core/model.ts'
import { NO_FACTS } from '../../core/record.ts'
import { CODE } from './codes.ts'
import type { Device } from './device.ts'
import { askFields } from './fields.ts'
import { decodePciBusId, decodePlatform, PCI_INFO_BYTES, PLATFORM_VERSION, readText, readUint32 } from './layouts.ts'
import type { Nvml } from './library.ts'
import type { MemoryReader } from './memory.ts'
import { divided, onOrOff, question, scaled, textOf, uint32Reading } from './question.ts'
import type { SymbolName } from './symbols.ts'

const MEGAHERTZ = 1e6
const PER_MILLI = 1000

const ARCHITECTURES: ReadonlyMap<number, string> = new Map([
  [2, 'Kepler'],
  [3, 'Maxwell'],
  [4, 'Pascal'],
  [5, 'Volta'],
  [6, 'Turing'],
  [7, 'Ampere'],
  [8, 'Ada Lovelace'],
  [9, 'Hopper'],
  [10, 'Blackwell'],
  [11, 'Orin'],
])

export interface SystemInfo {
  readonly driverVersion: string | null
  readonly cudaVersion: string | null
  readonly libraryVersion: string | null
  readonly confidentialComputing: GpuInfo['confidentialComputing']
}

export const UNKNOWN_SYSTEM: SystemInfo = { driverVersion: null, cudaVersion: null, libraryVersion: null, confidentialComputing: null }

const buffer = Buffer.alloc(256)

export function readSystem(nvml: Nvml): SystemInfo {
  const text = (symbol: SymbolName) => {
    buffer.fill(0)
    return nvml.functions[symbol]?.(buffer, 96) === CODE.ok ? readText(buffer, 0, 96) : null
  }
  const driverVersion = text('nvmlSystemGetDriverVersion')
  const libraryVersion = text('nvmlSystemGetNVMLVersion')
  const answered = nvml.functions.nvmlSystemGetCudaDriverVersion_v2?.(buffer) === CODE.ok
  const cudaVersion = answered ? cudaInWords(buffer.readInt32LE(0)) : null
  return { driverVersion, libraryVersion, cudaVersion, confidentialComputing: readConfidentialComputing(nvml) }
}

/** Environment, feature and debugging, a number each. */
function readConfidentialComputing(nvml: Nvml): SystemInfo['confidentialComputing'] {
  if (nvml.functions.nvmlSystemGetConfComputeState?.(buffer) !== CODE.ok) return null
  if (buffer.readUInt32LE(4) !== 1) return 'off'
  return buffer.readUInt32LE(8) === 1 ? 'devtools' : 'on'
}

/** 580 of `580.159.04`; 0 when unknown. */
export function driverBranch({ driverVersion }: GpuInfo): number {
  return Number.parseInt(driverVersion ?? '', 10) || 0
}

/** 13000 → `13.0` */
export function cudaInWords(version: number): string | null {
  return version >= 1000 ? `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}` : null
}

export interface Identity {
  readonly id: string
  readonly name: string | null
  readonly pciBusId: string | null
}

/** The least that is needed to know which card a handle is. */
export function readIdentity(device: Device, index: number): Identity {
  const pciBusId = question(device, { symbols: ['nvmlDeviceGetPciInfo_v3'], fields: ['pciBusId'] })(buffer)
    ? decodePciBusId(buffer.subarray(0, PCI_INFO_BYTES))
    : null
  const uuid = textOf(device, 'nvmlDeviceGetUUID', 'id')
  return { id: uuid ?? pciBusId ?? `nvidia-${index}`, name: textOf(device, 'nvmlDeviceGetName', 'name'), pciBusId }
}

/** A GPU of which nothing is known but where it is. */
export function unknownGpu(identity: Identity, index: number, system: SystemInfo): GpuInfo {
  return {
    ...NO_FACTS,
    ...identity,
    ...system,
    index,
    label: String(index),
    vendor: 'nvidia',
    provenance: 'live',
  }
}

export function readInfo(device: Device, base: GpuInfo, memory: MemoryReader): GpuInfo {
  const once = (symbol: SymbolName, field: string, selector?: number) =>
    uint32Reading(device, { symbols: [symbol], fields: [field], ...(selector === undefined ? {} : { selector }) })()
  const threshold = (field: string, selector: number) => once('nvmlDeviceGetTemperatureThreshold', field, selector)
  const memoryTotalBytes = memory.read()?.totalBytes ?? null
  const info: GpuInfo = {
    ...base,
    minor: once('nvmlDeviceGetMinorNumber', 'minor'),
    serial: textOf(device, 'nvmlDeviceGetSerial', 'serial'),
    architecture: architectureOf(device, once('nvmlDeviceGetArchitecture', 'architecture')),
    computeCapability: computeCapabilityOf(device),
    vbiosVersion: textOf(device, 'nvmlDeviceGetVbiosVersion', 'vbiosVersion'),
    partNumber: textOf(device, 'nvmlDeviceGetBoardPartNumber', 'partNumber'),
    gspFirmwareVersion: textOf(device, 'nvmlDeviceGetGspFirmwareVersion', 'gspFirmwareVersion', null),
    platform: readPlatform(device),
    powerSmoothing: readPowerSmoothing(device, base),
    computeMode: once('nvmlDeviceGetComputeMode', 'computeMode'),
    memoryTotalBytes,
    unifiedMemory: memory.unified,
    powerLimitWatts: divided(once('nvmlDeviceGetPowerManagementLimit', 'powerLimitWatts'), PER_MILLI),
    powerLimitEnforcedWatts: divided(once('nvmlDeviceGetEnforcedPowerLimit', 'powerLimitEnforcedWatts'), PER_MILLI),
    powerLimitDefaultWatts: divided(once('nvmlDeviceGetPowerManagementDefaultLimit', 'powerLimitDefaultWatts'), PER_MILLI),
    ...powerRange(device),
    smClockMaxHertz: scaled(once('nvmlDeviceGetMaxClockInfo', 'smClockMaxHertz', 1), MEGAHERTZ),
    memoryClockMaxHertz: scaled(once('nvmlDeviceGetMaxClockInfo', 'memoryClockMaxHertz', 2), MEGAHERTZ),
    temperatureShutdownCelsius: threshold('temperatureShutdownCelsius', 0),
    temperatureSlowdownCelsius: threshold('temperatureSlowdownCelsius', 1),
    memoryTemperatureMaxCelsius: threshold('memoryTemperatureMaxCelsius', 2),
    temperatureMaxCelsius: threshold('temperatureMaxCelsius', 3),
    pcieGenerationMax: once('nvmlDeviceGetMaxPcieLinkGeneration', 'pcieGenerationMax'),
    pcieWidthMax: once('nvmlDeviceGetMaxPcieLinkWidth', 'pcieWidthMax'),
    migMode: readMigMode(device),
  }
  explainMargins(device, info)
  return info
}

function architectureOf(device: Device, number: Reading): string | null {
  if (number === null) return null
  const name = ARCHITECTURES.get(number)
  if (name === undefined) device.explain('architecture', `architecture ${number} is newer than gpuwarden`)
  return name ?? null
}

function computeCapabilityOf(device: Device): string | null {
  const minor = Buffer.alloc(4)
  const terms = { symbols: ['nvmlDeviceGetCudaComputeCapability'], fields: ['computeCapability'], last: minor } as const
  return question(device, terms)(buffer) ? `${buffer.readInt32LE(0)}.${minor.readInt32LE(0)}` : null
}

function powerRange(device: Device): { powerLimitMinWatts: Reading; powerLimitMaxWatts: Reading } {
  const most = Buffer.alloc(4)
  const fields = ['powerLimitMinWatts', 'powerLimitMaxWatts']
  const answered = question(device, { symbols: ['nvmlDeviceGetPowerManagementLimitConstraints'], fields, last: most })(buffer)
  return {
    powerLimitMinWatts: answered ? divided(readUint32(buffer, 0), PER_MILLI) : null,
    powerLimitMaxWatts: answered ? divided(readUint32(most, 0), PER_MILLI) : null,
  }
}

export function readMigMode(device: Device): 'enabled' | 'disabled' | null {
  const pending = Buffer.alloc(4)
  if (!question(device, { symbols: ['nvmlDeviceGetMigMode'], fields: ['migMode'], last: pending })(buffer)) return null
  return onOrOff(buffer)
}

function readPlatform(device: Device): GpuInfo['platform'] {
  buffer.fill(0)
  buffer.writeUInt32LE(PLATFORM_VERSION, 0)
  if (!question(device, { symbols: ['nvmlDeviceGetPlatformInfo'], fields: ['platform'] })(buffer)) return null
  const platform = decodePlatform(buffer)
  if (platform === null) device.explain('platform', 'this GPU is in no rack that it knows of')
  return platform
}

const POWER_SMOOTHING = 251

/** The field had another number in driver 575. */
function readPowerSmoothing(device: Device, info: GpuInfo): GpuInfo['powerSmoothing'] {
  const [answer] = driverBranch(info) < 580 ? [] : (askFields(device, [{ id: POWER_SMOOTHING, scope: 0 }]) ?? [])
  if (answer !== undefined) device.judge(answer.code, ['powerSmoothing'])
  else device.explain('powerSmoothing', 'driver too old: it came with 580')
  if (answer === undefined || answer.value === null) return null
  return answer.value === 1 ? 'enabled' : 'disabled'
}

const MARGINS: readonly (readonly [number, 'temperatureShutdownCelsius' | 'temperatureSlowdownCelsius' | 'temperatureMaxCelsius'])[] = [
  [193, 'temperatureShutdownCelsius'],
  [194, 'temperatureSlowdownCelsius'],
  [196, 'temperatureMaxCelsius'],
]

/** Newer cards give no thresholds but signed distances to a limit that they keep to themselves. */
function explainMargins(device: Device, info: GpuInfo): void {
  const asked = MARGINS.filter(([, field]) => info[field] === null)
  const answers = askFields(
    device,
    asked.map(([id]) => ({ id, scope: 0 })),
  )
  for (const [position, [, field]] of asked.entries()) {
    const margin = answers?.[position]?.value ?? null
    if (margin !== null) device.explain(field, `this GPU reports only the margin to its limit (T.Limit ${margin} °C), not a temperature`)
  }
}

export function readMigInstance(device: Device, parentId: string, name: string | null): MigInstance {
  const gpuInstanceId = uint32Reading(device, { symbols: ['nvmlDeviceGetGpuInstanceId'], fields: [] })()
  const computeInstanceId = uint32Reading(device, { symbols: ['nvmlDeviceGetComputeInstanceId'], fields: [] })()
  return { parentId, gpuInstanceId: gpuInstanceId ?? -1, computeInstanceId, profile: profileOf(device, name) }
}

/** `NVIDIA H200 MIG 1g.18gb` says it; else slices and memory do. */
function profileOf(device: Device, name: string | null): string | null {
  const named = /\bMIG\s+(\S+)$/.exec(name ?? '')?.[1]
  if (named !== undefined) return named
  if (!question(device, { symbols: ['nvmlDeviceGetAttributes_v2'], fields: [] })(buffer)) return null
  const gpuSlices = buffer.readUInt32LE(24)
  const computeSlices = buffer.readUInt32LE(28)
  const gigabytes = Math.ceil(Number(buffer.readBigUInt64LE(32)) / 1024)
  return computeSlices < gpuSlices ? `${computeSlices}c.${gpuSlices}g.${gigabytes}gb` : `${gpuSlices}g.${gigabytes}gb`
}
