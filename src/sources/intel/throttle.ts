/** Why clocks are held down, as NVML's mask. */
import { CLOCK_REASON } from '../../core/gpu-words.ts'

/** By the driver's name for it; what is not here and has no rule below says only that something does. */
const REASONS: Readonly<Record<string, number>> = {
  pl1: CLOCK_REASON.softwarePowerCap,
  pl2: CLOCK_REASON.softwarePowerCap,
  // Limits of current.
  pl4: CLOCK_REASON.hardwareSlowdown,
  vr_tdc: CLOCK_REASON.hardwareSlowdown,
  prochot: CLOCK_REASON.hardwareSlowdown | CLOCK_REASON.hardwareThermal,
  vr_thermalert: CLOCK_REASON.hardwareSlowdown | CLOCK_REASON.hardwareThermal,
  // A limit that follows the average temperature.
  ratl: CLOCK_REASON.softwareThermal,
}

export function reasonOf(name: string): number {
  const known = REASONS[name]
  if (known !== undefined) return known
  if (name.includes('thermal')) return CLOCK_REASON.softwareThermal
  return /pl\d|power/.test(name) ? CLOCK_REASON.softwarePowerCap : CLOCK_REASON.hardwareSlowdown
}
