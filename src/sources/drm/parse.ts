/** Pure readers of what graphics drivers write into sysfs. Text that is not what was promised gives null, never a guess. */
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
