/** Why clocks are held down, as NVML's mask. */
import { CLOCK_REASON } from '../../core/gpu-words.ts'
import type { Reading } from '../../core/model.ts'
import type { Metrics } from './gpu-metrics.ts'

/** First and last bit of each kind in a chip's own numbering (smu*_driver_if_*.h). */
interface ChipBits {
  readonly temperature: Bits
  /** Those of the temperatures that are of the hottest spot. */
  readonly hotspot: Bits
  readonly current: Bits
  readonly power: Bits
  /** A signal of the voltage regulators. */
  readonly hot?: Bits
}

type Bits = readonly [first: number, last: number]

/** By the start of the compiler's name for the chip. */
const CHIPS: readonly (readonly [target: string, bits: ChipBits])[] = [
  ['gfx101', { temperature: [1, 11], hotspot: [2, 2], current: [12, 13], power: [14, 17] }],
  ['gfx103', { temperature: [1, 10], hotspot: [2, 2], current: [11, 12], power: [13, 16] }],
  ['gfx110', { temperature: [0, 12], hotspot: [1, 3], current: [13, 15], power: [16, 19] }],
  ['gfx120', { temperature: [0, 11], hotspot: [1, 3], current: [12, 13], power: [14, 17] }],
  ['gfx908', { temperature: [1, 6], hotspot: [2, 2], current: [7, 8], power: [9, 12], hot: [16, 17] }],
]

/** Bits that mean the same on every chip: power and current in the low half, temperatures in the high one. */
const COMMON = { power: mask([0, 15]), current: mask([16, 31]), temperature: mask([0, 11]), hotspot: mask([4, 4]), hot: mask([12, 15]) }

/**
 * How near its limit the hottest spot has to be before its throttler is believed: on RX 7000 and 9000 the firmware reports a little
 * throttling by it at all times, on a cold and idle card, too.
 */
const HOTSPOT_MARGIN_CELSIUS = 5

export type ChipThrottlers = ChipBits | null

/** The table of a chip by its name (`gfx1100`); null when it is not known. */
export function chipThrottlers(target: string | null): ChipThrottlers {
  return CHIPS.find(([start]) => target?.startsWith(start))?.[1] ?? null
}

/** Whether a table says why clocks are held down. */
export function tellsThrottling(metrics: Metrics, chip: ChipThrottlers): boolean {
  return metrics.residency !== null || metrics.commonThrottlers !== null || (chip !== null && metrics.chipThrottlers !== null)
}

/** What is active now; null in a table that only counts, or whose bits are not known for this chip. */
export function throttleReasons(metrics: Metrics, chip: ChipThrottlers, hotspotLimitCelsius: number): Reading {
  const { chipThrottlers: own, commonThrottlers: common, hotspotCelsius } = metrics
  const isHot = hotspotCelsius !== null && hotspotCelsius >= hotspotLimitCelsius - HOTSPOT_MARGIN_CELSIUS
  if (chip !== null && own !== null) {
    const temperature = mask(chip.temperature) & (isHot ? -1 : ~mask(chip.hotspot))
    return reasons(own & mask(chip.power), own & mask(chip.current), own & temperature, own & (chip.hot ? mask(chip.hot) : 0))
  }
  if (common === null) return null
  const temperature = COMMON.temperature & (isHot ? -1 : ~COMMON.hotspot)
  return reasons(common.low & COMMON.power, common.low & COMMON.current, common.high & temperature, common.high & COMMON.hot)
}

/** What was active between two tables that count the time of each throttler. */
export function residencyReasons(before: Metrics, now: Metrics): Reading {
  if (before.residency === null || now.residency === null) return null
  const grew = (wanted: string) =>
    now.residency?.some(({ throttler, count }, index) => throttler === wanted && count !== before.residency?.[index]?.count) ? 1 : 0
  return reasons(grew('power'), 0, grew('thermal'), grew('prochot'))
}

function reasons(power: number, current: number, temperature: number, hot: number): number {
  let bits = 0
  if (power !== 0) bits |= CLOCK_REASON.softwarePowerCap
  if (current !== 0) bits |= CLOCK_REASON.hardwareSlowdown
  if (temperature !== 0) bits |= CLOCK_REASON.softwareThermal
  if (hot !== 0) bits |= CLOCK_REASON.hardwareSlowdown | CLOCK_REASON.hardwareThermal
  return bits
}

function mask([first, last]: Bits): number {
  let bits = 0
  for (let bit = first; bit <= last; bit++) bits |= 1 << bit
  return bits
}
