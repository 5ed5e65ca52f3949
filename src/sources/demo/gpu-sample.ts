/** The readings of a simulated GPU, as coarse as a driver gives them. */
import type { GpuInfo, GpuSample } from '../../core/model.ts'
import { NO_READINGS } from '../../core/record.ts'
import { type Activity, activityAt } from './activity.ts'
import { type Card, cardOf } from './cards.ts'
import { type Heat, type HeatModel, isThrottled, powerWatts } from './heat.ts'
import { type GpuPlan, isStraggler, isWrong, STRAGGLER_FACTOR } from './jobs.ts'
import { clamp, roundTo } from './noise.ts'

const MEBIBYTE = 1024 * 1024
/** Memory in use that belongs to no process. */
const SHARED_BYTES = 9 * MEBIBYTE
/** NVML's bits: idle; hardware slowdown, software and hardware thermal slowdown. */
const REASON_IDLE = 0x1
const REASON_THERMAL = 0x8 | 0x20 | 0x40

export function isLost(plan: GpuPlan, seconds: number): boolean {
  return plan.trouble === 'lost' && plan.episode !== null && seconds >= plan.episode.from
}

export function gpuSample(info: GpuInfo, plan: GpuPlan, heat: HeatModel, at: number, seconds: number): GpuSample {
  if (isLost(plan, seconds))
    return {
      kind: 'gpu',
      at,
      gpu: info.id,
      state: 'lost',
      stateReason: 'GPU has fallen off the bus (simulated XID 79): restart the machine',
      slowAt: null,
      processes: null,
      ...NO_READINGS,
    }
  const activity = activityAt(plan, seconds)
  const card = cardOf(plan.gpu)
  const warmth = heat.at(seconds)
  // Somebody has locked the clocks of the slow rank's card.
  const isLocked = isStraggler(plan) && activity.job !== null && isWrong(activity.job, seconds)
  return {
    kind: 'gpu',
    at,
    gpu: info.id,
    state: 'ok',
    stateReason: null,
    slowAt: at,
    processes: activity.tenants.map((tenant) => ({
      pid: tenant.pid,
      type: 'compute',
      memoryUsedBytes: tenant.memoryBytes,
      smRatio: percent(tenant.smRatio),
      memoryRatio: percent(tenant.smRatio * activity.dram),
      encoderRatio: 0,
      decoderRatio: 0,
    })),
    ...NO_READINGS,
    ...loadReadings(card, activity),
    ...memoryReadings(card, activity),
    ...physicalReadings(plan, card, activity, warmth, isLocked ? 1 / STRAGGLER_FACTOR : 1),
    ...HEALTHY_COUNTERS,
    pcieGeneration: card.pcieGeneration,
    pcieWidth: 16,
    energyJoules: roundTo(warmth.joules, 0.01),
    thermalViolationSeconds: roundTo(warmth.throttledSeconds, 0.001),
    powerViolationSeconds: 0,
  }
}

const HEALTHY_COUNTERS = {
  pcieReplayCount: 0,
  eccCorrectedVolatileCount: 0,
  eccUncorrectedVolatileCount: 0,
  eccCorrectedAggregateCount: 0,
  eccUncorrectedAggregateCount: 0,
  remappedCorrectableRows: 0,
  remappedUncorrectableRows: 0,
  remapPending: 0,
  remapFailure: 0,
  recoveryAction: 0,
}

function loadReadings(card: Card, { utilization, tensor, dram, pcieRxBytesPerSecond, pcieTxBytesPerSecond }: Activity) {
  const sm = utilization * 0.86
  return {
    utilizationRatio: percent(utilization),
    memoryUtilizationRatio: percent(dram * 0.8),
    encoderRatio: 0,
    decoderRatio: 0,
    graphicsActiveRatio: permille(utilization),
    smActiveRatio: permille(sm),
    smOccupancyRatio: permille(sm * 0.42),
    tensorActiveRatio: permille(tensor),
    dramActiveRatio: permille(dram),
    fp16ActiveRatio: permille(tensor * 0.08),
    fp32ActiveRatio: permille(sm * 0.13),
    fp64ActiveRatio: 0,
    pcieRxBytesPerSecond: Math.round(pcieRxBytesPerSecond),
    pcieTxBytesPerSecond: Math.round(pcieTxBytesPerSecond),
    nvlinkRxBytesPerSecond: card.hasNvlink ? 0 : null,
    nvlinkTxBytesPerSecond: card.hasNvlink ? 0 : null,
  }
}

function memoryReadings(card: Card, { tenants }: Activity) {
  const held = tenants.reduce((sum, tenant) => sum + tenant.memoryBytes, 0)
  const used = Math.min(held === 0 ? 0 : held + SHARED_BYTES, card.memoryBytes - card.driverBytes)
  return {
    memoryTotalBytes: card.memoryBytes,
    memoryReservedBytes: card.driverBytes,
    memoryUsedBytes: used,
    memoryFreeBytes: card.memoryBytes - card.driverBytes - used,
  }
}

function physicalReadings(plan: GpuPlan, card: Card, { phase, power }: Activity, { celsius, throttle }: Heat, capped: number) {
  const idle = phase === 'idle'
  const megahertz = idle ? card.idleMegahertz : Math.round((card.maxMegahertz * (1 - 0.55 * throttle) * capped) / 15) * 15
  return {
    temperatureCelsius: Math.round(celsius),
    memoryTemperatureCelsius: card.hasFan ? null : Math.round(celsius * 0.82 + 8),
    powerWatts: roundTo(powerWatts(plan, power, throttle), 0.1),
    fanRatio: card.hasFan ? percent(0.3 + (celsius - 40) / 60) : null,
    graphicsClockHertz: megahertz * 1e6,
    smClockHertz: megahertz * 1e6,
    videoClockHertz: Math.round(megahertz * 0.9) * 1e6,
    memoryClockHertz: card.memoryMegahertz * 1e6,
    performanceState: idle && card.hasFan ? 8 : 0,
    clockEventReasons: isThrottled(throttle) ? REASON_THERMAL : idle ? REASON_IDLE : 0,
  }
}

function percent(ratio: number): number {
  return roundTo(clamp(ratio, 0, 1), 0.01)
}

function permille(ratio: number): number {
  return roundTo(clamp(ratio, 0, 1), 0.001)
}
