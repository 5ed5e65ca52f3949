/** `gpu_metrics` 1.9 and later: a list of attributes that describe themselves, one after the other without gaps. */
import type { Reading } from '../../core/model.ts'

/** Where the list begins: after the header and the number of attributes. */
const FIRST_AT = 8
/** Each begins with 64 bits: number of values, what it is, type of a value, and its unit. */
const ENCODING_BYTES = 8
const MOST_ATTRIBUTES = 1024

/** Numbers of the attributes that are used here (amdgpu_metrics_attr_id). */
export const ATTRIBUTE = {
  hotspot: 0,
  energy: 7,
  /** A counter of updates, then those of the throttlers: prochot, power, and the temperatures of socket, regulators and memory. */
  residency: [9, 10, 11, 12, 13, 14],
  xgmiRead: 29,
  xgmiWritten: 30,
  partitions: 38,
  dieBusy: 40,
} as const

/** By type: 8, 16, 32, 64 bits, each unsigned, then signed. */
const TYPES: readonly ((table: Buffer, at: number) => Reading)[] = [
  (table, at) => known(table.readUInt8(at), 0xff),
  (table, at) => table.readInt8(at),
  (table, at) => known(table.readUInt16LE(at), 0xffff),
  (table, at) => table.readInt16LE(at),
  (table, at) => known(table.readUInt32LE(at), 0xffffffff),
  (table, at) => table.readInt32LE(at),
  (table, at) => (table.readBigUInt64LE(at) === 0xffffffffffffffffn ? null : Number(table.readBigUInt64LE(at))),
  (table, at) => Number(table.readBigInt64LE(at)),
]

/** The values of each attribute; null: it does not add up, so nothing of it is believed. */
export function parseAttributes(table: Buffer, size: number): ReadonlyMap<number, readonly Reading[]> | null {
  if (size < FIRST_AT || table.length < size) return null
  const count = table.readUInt32LE(4)
  if (count > MOST_ATTRIBUTES) return null
  const found = new Map<number, readonly Reading[]>()
  let at = FIRST_AT
  for (let index = 0; index < count; index++) {
    if (at + ENCODING_BYTES > size) return null
    const encoding = table.readUInt32LE(at)
    const type = (encoding >>> 20) & 0xf
    const instances = encoding & 0x3ff
    const read = TYPES[type]
    const bytes = 2 ** (type >> 1)
    at += ENCODING_BYTES
    if (read === undefined || at + instances * bytes > size) return null
    const from = at
    found.set(
      (encoding >>> 10) & 0x3ff,
      Array.from({ length: instances }, (_, instance) => read(table, from + instance * bytes)),
    )
    at += instances * bytes
  }
  return found
}

function known(value: number, unknown: number): Reading {
  return value === unknown ? null : value
}
