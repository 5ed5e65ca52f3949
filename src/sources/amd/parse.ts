/** Pure readers of what amdgpu writes into its sysfs files. Text that is not what was promised gives null, never a guess. */
import type { Reading } from '../../core/model.ts'

const INTEGER = /^\s*-?\d{1,18}\s*$/

export function parseInteger(text: string): Reading {
  return INTEGER.test(text) ? Number(text) : null
}

/** `0x744c` → 0x744c */
export function parseHex(text: string): Reading {
  return /^\s*0x[0-9a-f]{1,8}\s*$/i.test(text) ? Number.parseInt(text, 16) : null
}

/** A line of text, without padding and control characters; null when nothing is left. */
export function parseName(text: string): string | null {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: some firmware pads names with NULs.
  const name = text.replace(/[\u0000-\u001f\u007f]+/g, ' ').trim()
  return name === '' ? null : name
}

/** `unique_id` is 16 hex digits; all zeros means that the board has none. */
export function parseUniqueId(text: string): string | null {
  const id = text.trim().toLowerCase()
  return /^[0-9a-f]{8,32}$/.test(id) && !/^0+$/.test(id) ? id : null
}

export interface ClockLevels {
  readonly currentHertz: Reading
  readonly maxHertz: Reading
}

/** `pp_dpm_sclk`: one level a line, `1: 2304Mhz *`; the star marks the current one. */
export function parseClockLevels(text: string): ClockLevels {
  let currentHertz: Reading = null
  let maxHertz: Reading = null
  for (const line of text.split('\n')) {
    const match = /^\s*\w+:\s*(\d{1,6})\s*mhz\s*(\*?)\s*$/i.exec(line)
    if (match === null) continue
    const hertz = Number(match[1]) * 1e6
    if (maxHertz === null || hertz > maxHertz) maxHertz = hertz
    if (match[2] === '*') currentHertz = hertz
  }
  return { currentHertz, maxHertz }
}

const GENERATION_BY_GIGATRANSFERS = new Map([
  [2.5, 1],
  [5, 2],
  [8, 3],
  [16, 4],
  [32, 5],
  [64, 6],
])

/** `16.0 GT/s PCIe` → 4 */
export function parsePcieGeneration(text: string): Reading {
  const match = /^\s*(\d+(?:\.\d+)?)\s*GT\/s/.exec(text)
  return match === null ? null : (GENERATION_BY_GIGATRANSFERS.get(Number(match[1])) ?? null)
}

/** Lanes; the kernel writes 0 or 255 when the link does not answer. */
export function parsePcieWidth(text: string): Reading {
  const width = parseInteger(text)
  return width !== null && width >= 1 && width <= 32 ? width : null
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

const PCI_ADDRESS = /^([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$/

/** The kernel's spelling, lower case: `0000:03:00.0`; null when it is no PCI address. */
export function parsePciAddress(text: string): string | null {
  const address = text.trim().toLowerCase()
  return PCI_ADDRESS.test(address) ? address : null
}

/** `0000:03:00.0` → `00000000:03:00.0`, as GpuInfo spells it. */
export function pciBusId(address: string): string {
  const [domain = '', ...rest] = address.split(':')
  return [domain.padStart(8, '0'), ...rest].join(':').toUpperCase()
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
