/** What a driver reports about one open device file, in proc/PID/fdinfo/N: the forms that all drivers share. */
import type { Reading } from '../../core/model.ts'

type Fields = ReadonlyMap<string, string>

const UNIT_BYTES: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['kib', 1024],
  ['kb', 1024],
  ['mib', 1024 ** 2],
  ['gib', 1024 ** 3],
])

export function parseFields(text: string): Fields {
  const fields = new Map<string, string>()
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim())
  }
  return fields
}

export function parseBytes(value: string | undefined): Reading {
  const match = value === undefined ? null : /^(\d{1,15})\s*([a-z]*)$/i.exec(value)
  const unit = match === null ? undefined : UNIT_BYTES.get((match[2] ?? '').toLowerCase())
  return match === null || unit === undefined ? null : Number(match[1]) * unit
}

export function parseCount(value: string | undefined): Reading {
  return value !== undefined && /^\d{1,18}$/.test(value) ? Number(value) : null
}

/** `drm-engine-render: 123 ns`, added up over the names that mean the same. */
export function engineNanoseconds(fields: Fields, ...engines: readonly string[]): Reading {
  let sum: Reading = null
  for (const engine of engines) {
    const match = /^(\d{1,18})\s*ns$/.exec(fields.get(`drm-engine-${engine}`) ?? '')
    if (match !== null) sum = (sum ?? 0) + Number(match[1])
  }
  return sum
}

/** What is in a memory region, of several spellings the one that is nearest to "resident". */
export function regionBytes(fields: Fields, region: string): Reading {
  return parseBytes(fields.get(`drm-resident-${region}`) ?? fields.get(`drm-memory-${region}`) ?? fields.get(`drm-total-${region}`))
}
