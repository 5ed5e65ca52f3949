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

/** Fills while a bit is set and drains while it is not: reasons flicker, and a lasting one must not be missed. */
export interface Bucket {
  lastMs: number
  filledMs: number
}

export function bucket(): Bucket {
  return { lastMs: -1, filledMs: 0 }
}

/** Returns how full it is, in ms; at most twice `holdMs`. */
export function pour(state: Bucket, set: boolean, nowMs: number, holdMs: number): number {
  const passed = state.lastMs < 0 ? 0 : nowMs - state.lastMs
  state.lastMs = nowMs
  state.filledMs = Math.max(0, Math.min(2 * holdMs, state.filledMs + (set ? passed : -passed)))
  return state.filledMs
}
