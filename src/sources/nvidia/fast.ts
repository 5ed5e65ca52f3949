import type { GpuField, Reading } from '../../core/model.ts'
import type { Device, Readings } from './device.ts'
import { ALL_LINKS, FieldBatch } from './fields.ts'
import { readUint32 } from './layouts.ts'
import type { MemoryReader } from './memory.ts'
import { percentToRatio } from './process-layout.ts'
import { question, scaled, uint32Reading, uint64Reading } from './question.ts'
import type { SymbolName } from './symbols.ts'

/** Counters in KiB become bytes. */
const PER_KIBIBYTE = 1 / 1024
const MEGAHERTZ = 1e6
const PER_MILLI = 1000

const CLOCKS: readonly (readonly [GpuField, number])[] = [
  ['graphicsClockHertz', 0],
  ['smClockHertz', 1],
  ['memoryClockHertz', 2],
  ['videoClockHertz', 3],
]

const scratch = Buffer.alloc(8)
const samplingPeriod = Buffer.alloc(8)

export type TierReader = (out: Readings, monotonicMs: number) => void

export interface FastOptions {
  /** With MIG the parent has no utilization of its own: it is not asked. */
  readonly mig: boolean
  /** Whether the traffic counters are needed: where GPM runs it gives the same for nothing (they take 225 µs on an H200). */
  readonly countsTraffic: () => boolean
}

export function fastReader(device: Device, memory: MemoryReader, { mig, countsTraffic }: FastOptions): TierReader {
  const utilization = mig ? null : utilizationReader(device)
  const temperature = uint32Reading(device, { symbols: ['nvmlDeviceGetTemperature'], fields: ['temperatureCelsius'], selector: 0 })
  const clocks = CLOCKS.map(([field, selector]) => ({
    field,
    read: uint32Reading(device, { symbols: ['nvmlDeviceGetClockInfo'], fields: [field], selector }),
  }))
  const reasons = uint64Reading(device, {
    symbols: ['nvmlDeviceGetCurrentClocksEventReasons', 'nvmlDeviceGetCurrentClocksThrottleReasons'],
    fields: ['clockEventReasons'],
  })
  const state = uint32Reading(device, { symbols: ['nvmlDeviceGetPerformanceState'], fields: ['performanceState'] })
  const encoder = codec(device, 'nvmlDeviceGetEncoderUtilization', 'encoderRatio')
  const decoder = codec(device, 'nvmlDeviceGetDecoderUtilization', 'decoderRatio')
  const fields = new FieldBatch(device, [
    {
      id: 186,
      field: 'powerWatts',
      divisor: PER_MILLI,
      fallback: uint32Reading(device, { symbols: ['nvmlDeviceGetPowerUsage'], fields: ['powerWatts'] }),
    },
    { id: 82, field: 'memoryTemperatureCelsius', divisor: 1 },
  ])
  const traffic = new FieldBatch(device, [
    // TX is what the GPU sends to the host, RX what it receives from it: both seen from the GPU.
    { id: 197, field: 'pcieTxBytesPerSecond', divisor: 1, rate: true },
    { id: 198, field: 'pcieRxBytesPerSecond', divisor: 1, rate: true },
    { id: 138, field: 'nvlinkTxBytesPerSecond', divisor: PER_KIBIBYTE, rate: true, scope: ALL_LINKS },
    { id: 139, field: 'nvlinkRxBytesPerSecond', divisor: PER_KIBIBYTE, rate: true, scope: ALL_LINKS },
  ])

  return (out, monotonicMs) => {
    readMemory(memory, out)
    utilization?.(out)
    fields.read(out, monotonicMs)
    if (countsTraffic()) traffic.read(out, monotonicMs)
    out.temperatureCelsius = temperature()
    for (const { field, read } of clocks) out[field] = scaled(read(), MEGAHERTZ)
    out.clockEventReasons = reasons()
    const performance = state()
    // 32 is NVML's "unknown".
    out.performanceState = performance !== null && performance <= 15 ? performance : null
    out.encoderRatio = encoder()
    out.decoderRatio = decoder()
  }
}

export function readMemory(memory: MemoryReader, out: Readings): void {
  const figures = memory.read()
  out.memoryTotalBytes = figures?.totalBytes ?? null
  out.memoryUsedBytes = figures?.usedBytes ?? null
  out.memoryFreeBytes = figures?.freeBytes ?? null
  out.memoryReservedBytes = figures?.reservedBytes ?? null
}

function utilizationReader(device: Device): (out: Readings) => void {
  const ask = question(device, { symbols: ['nvmlDeviceGetUtilizationRates'], fields: ['utilizationRatio', 'memoryUtilizationRatio'] })
  return (out) => {
    const answered = ask(scratch)
    out.utilizationRatio = answered ? percentToRatio(readUint32(scratch, 0)) : null
    out.memoryUtilizationRatio = answered ? percentToRatio(readUint32(scratch, 4)) : null
  }
}

export function codec(device: Device, symbol: SymbolName, field: GpuField): () => Reading {
  const read = uint32Reading(device, { symbols: [symbol], fields: [field], last: samplingPeriod })
  return () => percentToRatio(read())
}
