/** What the figures of a card mean for the person who looks, on every screen. */
import type { GpuInfo, MigInstance, Reading } from './model.ts'

/** Color and sign follow from it. */
export type Tone = 'plain' | 'good' | 'warning' | 'critical' | 'muted'

/** What the card says of its own limit counts; a common figure only where it says nothing. */
export function temperatureTone(celsius: Reading, info: GpuInfo): Tone {
  return heatTone(celsius, info.temperatureSlowdownCelsius ?? info.temperatureMaxCelsius ?? 90)
}

/** Of a part that has a limit of its own. */
export function heatTone(celsius: Reading, limit: Reading): Tone {
  if (celsius === null || limit === null) return 'muted'
  return celsius >= limit - 2 ? 'critical' : celsius >= limit - 10 ? 'warning' : 'plain'
}

export function memoryTone(ratio: Reading): Tone {
  if (ratio === null) return 'muted'
  return ratio >= 0.97 ? 'critical' : ratio >= 0.9 ? 'warning' : 'plain'
}

/** What holds at this moment, where the card tells it apart from what was set. */
export function powerCap(info: GpuInfo): Reading {
  return info.powerLimitEnforcedWatts ?? info.powerLimitWatts
}

/** Above its cap for real is news; at it is what a cap is for. */
export function powerTone(watts: Reading, info: GpuInfo): Tone {
  const cap = powerCap(info)
  if (watts === null) return 'muted'
  return cap !== null && watts > cap * 1.05 ? 'warning' : 'plain'
}

/**
 * Of a MIG instance: `0:1` where a compute instance has all of GPU instance 1, `0:1:2` where it is a part of it and others may share it.
 * It depends on the instance alone, so that it does not change when a neighbor is made or removed.
 */
export function migLabel(index: number, { gpuInstanceId, computeInstanceId, profile }: MigInstance): string {
  const isWhole = computeInstanceId === null || (profile !== null && !/^\d+c\./.test(profile))
  return isWhole ? `${index}:${gpuInstanceId}` : `${index}:${gpuInstanceId}:${computeInstanceId}`
}

/** NVML's clock event reasons, bit by bit (nvml.h, nvmlClocksEventReason*). */
export const CLOCK_REASON = {
  gpuIdle: 0x1,
  applicationClocks: 0x2,
  softwarePowerCap: 0x4,
  hardwareSlowdown: 0x8,
  syncBoost: 0x10,
  softwareThermal: 0x20,
  hardwareThermal: 0x40,
  hardwarePowerBrake: 0x80,
  displayClocks: 0x100,
} as const

export interface ClockReason {
  readonly bit: number
  readonly words: string
  /** Where there is little room. */
  readonly short: string
  readonly tone: Tone
}

const REASONS: readonly ClockReason[] = [
  { bit: CLOCK_REASON.hardwareThermal, words: 'too hot (hardware slowdown)', short: 'too hot (hw)', tone: 'critical' },
  { bit: CLOCK_REASON.hardwarePowerBrake, words: 'power brake', short: 'power brake', tone: 'critical' },
  { bit: CLOCK_REASON.hardwareSlowdown, words: 'hardware slowdown', short: 'hw slowdown', tone: 'critical' },
  { bit: CLOCK_REASON.softwareThermal, words: 'too hot', short: 'too hot', tone: 'warning' },
  { bit: CLOCK_REASON.softwarePowerCap, words: 'power cap', short: 'power cap', tone: 'muted' },
  { bit: CLOCK_REASON.syncBoost, words: 'sync boost', short: 'sync boost', tone: 'muted' },
  { bit: CLOCK_REASON.applicationClocks, words: 'application clocks', short: 'app clocks', tone: 'muted' },
  { bit: CLOCK_REASON.displayClocks, words: 'display clock', short: 'display', tone: 'muted' },
  { bit: CLOCK_REASON.gpuIdle, words: 'idle', short: 'idle', tone: 'muted' },
]

/** Slowed down by heat, or by the card's own protection; a power cap is what it was set to. */
export function isThrottled(mask: number): boolean {
  return (
    (mask &
      (CLOCK_REASON.hardwareThermal | CLOCK_REASON.softwareThermal | CLOCK_REASON.hardwareSlowdown | CLOCK_REASON.hardwarePowerBrake)) !==
    0
  )
}

/** Why clocks are where they are, worst first. */
export function clockReasons(mask: Reading): readonly ClockReason[] {
  return mask === null ? [] : REASONS.filter(({ bit }) => (mask & bit) !== 0)
}
