/** NVML's clock event reasons, which other vendors are mapped onto. */
import type { Reading } from '../core/model.ts'

export interface ThrottleReason {
  readonly bit: number
  readonly name: string
  /** As nvidia-smi spells it; null where it has no such field. */
  readonly smiName: string | null
}

export const THROTTLE_REASONS: readonly ThrottleReason[] = [
  { bit: 0x1, name: 'idle', smiName: 'gpu_idle' },
  { bit: 0x2, name: 'application_clocks', smiName: 'applications_clocks_setting' },
  { bit: 0x4, name: 'sw_power_cap', smiName: 'sw_power_cap' },
  { bit: 0x8, name: 'hw_slowdown', smiName: 'hw_slowdown' },
  { bit: 0x10, name: 'sync_boost', smiName: 'sync_boost' },
  { bit: 0x20, name: 'sw_thermal', smiName: 'sw_thermal_slowdown' },
  { bit: 0x40, name: 'hw_thermal', smiName: 'hw_thermal_slowdown' },
  { bit: 0x80, name: 'hw_power_brake', smiName: 'hw_power_brake_slowdown' },
  { bit: 0x100, name: 'display', smiName: null },
]

export function reasonActive(mask: Reading, bit: number): Reading {
  return mask === null ? null : (mask & bit) === 0 ? 0 : 1
}
