import type { GpuInfo } from '../../core/model.ts'
import { NO_FACTS } from '../../core/record.ts'

const MEBIBYTE = 1024 * 1024

export interface Card {
  readonly name: string
  readonly architecture: string
  readonly computeCapability: string
  readonly memoryBytes: number
  /** What the driver keeps for itself. */
  readonly driverBytes: number
  readonly idleWatts: number
  readonly limitWatts: number
  readonly idleMegahertz: number
  readonly maxMegahertz: number
  readonly memoryMegahertz: number
  readonly slowdownCelsius: number
  readonly pcieGeneration: number
  readonly hasFan: boolean
  readonly hasNvlink: boolean
}

const H100: Card = {
  name: 'Simulated H100 80GB',
  architecture: 'Hopper',
  computeCapability: '9.0',
  memoryBytes: 81_559 * MEBIBYTE,
  driverBytes: 552 * MEBIBYTE,
  idleWatts: 72,
  limitWatts: 700,
  idleMegahertz: 345,
  maxMegahertz: 1980,
  memoryMegahertz: 2619,
  slowdownCelsius: 87,
  pcieGeneration: 5,
  hasFan: false,
  hasNvlink: true,
}
const A100: Card = {
  name: 'Simulated A100 40GB',
  architecture: 'Ampere',
  computeCapability: '8.0',
  memoryBytes: 40_960 * MEBIBYTE,
  driverBytes: 423 * MEBIBYTE,
  idleWatts: 46,
  limitWatts: 400,
  idleMegahertz: 210,
  maxMegahertz: 1410,
  memoryMegahertz: 1215,
  slowdownCelsius: 89,
  pcieGeneration: 4,
  hasFan: false,
  hasNvlink: true,
}
const RTX_6000: Card = {
  name: 'Simulated RTX 6000 Ada 48GB',
  architecture: 'Ada',
  computeCapability: '8.9',
  memoryBytes: 49_140 * MEBIBYTE,
  driverBytes: 480 * MEBIBYTE,
  idleWatts: 21,
  limitWatts: 300,
  idleMegahertz: 210,
  maxMegahertz: 2505,
  memoryMegahertz: 10_001,
  slowdownCelsius: 90,
  pcieGeneration: 4,
  hasFan: true,
  hasNvlink: false,
}

const CARDS: readonly Card[] = [H100, H100, A100, A100, RTX_6000, RTX_6000, RTX_6000, RTX_6000]

export function cardOf(index: number): Card {
  return CARDS[index % CARDS.length] ?? H100
}

export function simulatedGpu(index: number): GpuInfo {
  const card = cardOf(index)
  const bus = (0x10 + index * 2).toString(16).toUpperCase().padStart(2, '0')
  return {
    id: `GPU-SIM-${String(index).padStart(4, '0')}`,
    index,
    label: String(index),
    vendor: 'nvidia',
    provenance: 'simulated',
    ...NO_FACTS,
    name: card.name,
    pciBusId: `00000000:${bus}:00.0`,
    minor: index,
    driverVersion: 'simulated',
    cudaVersion: '12.8',
    libraryVersion: 'simulated',
    architecture: card.architecture,
    computeCapability: card.computeCapability,
    vbiosVersion: 'simulated',
    computeMode: 0,
    memoryTotalBytes: card.memoryBytes,
    powerLimitWatts: card.limitWatts,
    powerLimitEnforcedWatts: card.limitWatts,
    powerLimitDefaultWatts: card.limitWatts,
    powerLimitMinWatts: Math.round(card.limitWatts * 0.3),
    powerLimitMaxWatts: card.limitWatts,
    smClockMaxHertz: card.maxMegahertz * 1e6,
    memoryClockMaxHertz: card.memoryMegahertz * 1e6,
    temperatureSlowdownCelsius: card.slowdownCelsius,
    temperatureShutdownCelsius: card.slowdownCelsius + 5,
    temperatureMaxCelsius: card.slowdownCelsius - 2,
    memoryTemperatureMaxCelsius: 95,
    pcieGenerationMax: card.pcieGeneration,
    pcieWidthMax: 16,
    migMode: card.hasNvlink ? 'disabled' : null,
    unifiedMemory: false,
    unavailable: {
      serial: 'a simulated card has none',
      fabricState: 'a simulated card is in no NVLink fabric',
      ...(card.hasFan ? {} : { fanRatio: 'no fan on the card: cooled by the chassis' }),
      ...(card.hasNvlink ? {} : { nvlinkTxBytesPerSecond: 'no NVLink on this card', nvlinkRxBytesPerSecond: 'no NVLink on this card' }),
    },
  }
}
