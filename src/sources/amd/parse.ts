/** Pure readers of what amdgpu writes into its sysfs files. Text that is not what was promised gives null, never a guess. */
import type { Reading } from '../../core/model.ts'

/** `unique_id` is 16 hex digits; all zeros means that the board has none. */
export function parseUniqueId(text: string): string | null {
  const id = text.trim().toLowerCase()
  return /^[0-9a-f]{8,32}$/.test(id) && !/^0+$/.test(id) ? id : null
}

export interface ClockLevels {
  readonly currentHertz: Reading
  readonly maxHertz: Reading
}

/**
 * `pp_dpm_sclk`: one level a line, `1: 2304Mhz *`; the star marks the current one. Cards that choose any clock between two levels
 * write it as a level of its own between them: it is no maximum, and neither is 0.
 */
export function parseClockLevels(text: string): ClockLevels {
  let currentHertz: Reading = null
  const levels: { hertz: number; current: boolean }[] = []
  for (const line of text.split('\n')) {
    const match = /^\s*\w+:\s*(\d{1,6})\s*mhz\s*(\*?)\s*$/i.exec(line)
    if (match === null) continue
    const level = { hertz: Number(match[1]) * 1e6, current: match[2] === '*' }
    levels.push(level)
    if (level.current) currentHertz = level.hertz
  }
  const real = levels.filter(({ hertz, current }, index) => hertz > 0 && !(current && index > 0 && index < levels.length - 1))
  return { currentHertz, maxHertz: real.length === 0 ? null : Math.max(...real.map(({ hertz }) => hertz)) }
}

/** `pp_od_clk_voltage`: the highest clock of one section (`OD_SCLK`), as it is set now; offsets and what could be set are other sections. */
export function parseOverdriveMax(text: string, section: 'OD_SCLK' | 'OD_MCLK'): Reading {
  let inside = false
  let maxHertz: Reading = null
  for (const line of text.split('\n')) {
    const header = /^\W*(OD_\w+):/.exec(line)
    if (header !== null) inside = header[1] === section
    const level = inside ? /^\s*\d+:\s*(\d{1,6})\s*mhz/i.exec(line) : null
    if (level !== null) maxHertz = Math.max(maxHertz ?? 0, Number(level[1]) * 1e6)
  }
  return maxHertz === 0 ? null : maxHertz
}

export interface ErrorCounts {
  readonly uncorrected: Reading
  readonly corrected: Reading
}

/** `ue: 0` and `ce: 3`, a line each. */
export function parseErrorCounts(text: string): ErrorCounts {
  const uncorrected = /^\s*ue:\s*(\d{1,15})\s*$/m.exec(text)
  const corrected = /^\s*ce:\s*(\d{1,15})\s*$/m.exec(text)
  return {
    uncorrected: uncorrected === null ? null : Number(uncorrected[1]),
    corrected: corrected === null ? null : Number(corrected[1]),
  }
}

/** kfd's `domain` and `location_id` (bus, device and function packed into 16 bits) in the kernel's spelling. */
export function addressOfLocation(domain: number, location: number): string {
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0')
  return `${hex(domain, 4)}:${hex((location >> 8) & 0xff, 2)}:${hex((location >> 3) & 0x1f, 2)}.${location & 7}`
}

/** kfd's `gfx_target_version` 90010 → `gfx90a`. */
export function parseTarget(version: number): string | null {
  if (version <= 0) return null
  const minor = Math.floor(version / 100) % 100
  return `gfx${Math.floor(version / 10_000)}${minor.toString(16)}${(version % 100).toString(16)}`
}
