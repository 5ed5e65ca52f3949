import { join } from 'node:path'
import type { GpuInfo, Reading } from '../../core/model.ts'
import { NO_FACTS } from '../../core/record.ts'
import { tryReadSmallFile } from '../small-file.ts'
import type { CardLimits } from './card-files.ts'
import type { CardPlace } from './discover.ts'
import type { KfdGpu } from './kfd.ts'
import { modelOf } from './names.ts'
import { parseHex, parseInteger, parseName, parsePcieGeneration, parsePcieWidth, parseUniqueId, pciBusId } from './parse.ts'

/** From files that the driver answers out of its own memory: reading them does not wake a card that sleeps. */
export interface Identity {
  readonly id: string
  readonly name: string
  readonly serial: string | null
  readonly vbiosVersion: string | null
  readonly apuModel: boolean
  readonly vramTotalBytes: Reading
}

export function readIdentity(place: CardPlace): Identity {
  const read = (name: string) => tryReadSmallFile(join(place.devicePath, name)) ?? ''
  const device = parseHex(read('device'))
  const model = device === null ? null : modelOf(device)
  const unnamed = device === null ? 'AMD GPU' : `AMD GPU 0x${device.toString(16).padStart(4, '0')}`
  const product = parseName(read('product_name'))
  return {
    id: parseUniqueId(read('unique_id')) ?? fallbackId(place),
    name: product === null ? (model?.name ?? unnamed) : product,
    serial: parseName(read('serial_number')),
    vbiosVersion: parseName(read('vbios_version')),
    apuModel: model?.apu === true,
    vramTotalBytes: parseInteger(read('mem_info_vram_total')),
  }
}

/** Where a board has no number of its own, its slot is its identity. */
export function fallbackId(place: CardPlace): string {
  return place.address === null ? `card${place.minor}` : pciBusId(place.address)
}

export function readDriverVersion(root: string): string | null {
  const version = tryReadSmallFile(join(root, 'sys/module/amdgpu/version')) ?? tryReadSmallFile(join(root, 'proc/sys/kernel/osrelease'))
  return version === null ? null : parseName(version)
}

/** Facts that need the card awake; null until it was. */
export interface AwakeFacts {
  readonly limits: CardLimits
  readonly apu: boolean
  readonly memoryTotalBytes: Reading
  readonly powerLimitWatts: Reading
  readonly graphicsClockMaxHertz: Reading
  readonly memoryClockMaxHertz: Reading
  /** gpu_metrics says why clocks are held down. */
  readonly tellsThrottling: boolean
  readonly pcieGenerationMax: Reading
  readonly pcieWidthMax: Reading
}

export function readLinkMaximum(place: CardPlace): Pick<AwakeFacts, 'pcieGenerationMax' | 'pcieWidthMax'> {
  return {
    pcieGenerationMax: parsePcieGeneration(tryReadSmallFile(join(place.devicePath, 'max_link_speed')) ?? ''),
    pcieWidthMax: parsePcieWidth(tryReadSmallFile(join(place.devicePath, 'max_link_width')) ?? ''),
  }
}

export interface InfoParts {
  readonly place: CardPlace
  readonly index: number
  readonly identity: Identity
  readonly driverVersion: string | null
  readonly kfd: KfdGpu | null
  readonly facts: AwakeFacts | null
  readonly unavailable: Readonly<Record<string, string>>
}

export function gpuInfo({ place, index, identity, driverVersion, kfd, facts, unavailable }: InfoParts): GpuInfo {
  const scaled = (value: Reading | undefined, divisor: number) => (value === null || value === undefined ? null : value / divisor)
  const limits = facts?.limits
  return {
    id: identity.id,
    index,
    label: String(index),
    vendor: 'amd',
    provenance: 'live',
    ...NO_FACTS,
    name: identity.name,
    pciBusId: place.address === null ? null : pciBusId(place.address),
    minor: place.minor,
    serial: identity.serial,
    driverVersion,
    architecture: kfd?.target ?? null,
    vbiosVersion: identity.vbiosVersion,
    memoryTotalBytes: facts === null ? identity.vramTotalBytes : facts.memoryTotalBytes,
    powerLimitWatts: facts?.powerLimitWatts ?? null,
    powerLimitDefaultWatts: scaled(limits?.powerCapDefault, 1e6),
    powerLimitMinWatts: scaled(limits?.powerCapMin, 1e6),
    powerLimitMaxWatts: scaled(limits?.powerCapMax, 1e6),
    smClockMaxHertz: facts?.graphicsClockMaxHertz ?? null,
    memoryClockMaxHertz: facts?.memoryClockMaxHertz ?? null,
    temperatureSlowdownCelsius: scaled(limits?.temperatureCritical, 1000),
    temperatureShutdownCelsius: scaled(limits?.temperatureEmergency, 1000),
    memoryTemperatureMaxCelsius: scaled(limits?.memoryTemperatureCritical, 1000),
    pcieGenerationMax: facts?.pcieGenerationMax ?? null,
    pcieWidthMax: facts?.pcieWidthMax ?? null,
    unifiedMemory: facts?.apu ?? identity.apuModel,
    unavailable,
  }
}
