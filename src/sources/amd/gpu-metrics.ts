/** The binary `gpu_metrics` table: only what no other file tells. Layouts are in the kernel's kgd_pp_interface.h. */
import type { Reading } from '../../core/model.ts'
import { ATTRIBUTE, parseAttributes } from './attribute-table.ts'

export interface MetricsHeader {
  readonly format: number
  readonly content: number
}

/** Where things are in a table of one version. */
interface Layout {
  readonly size: number
  /** Throttlers that are active, in bits that differ between chips (32 bits). */
  readonly chipThrottlers?: number
  /** The same in bits that mean the same on every chip (64 bits). */
  readonly commonThrottlers?: number
  readonly hotspot?: number
  /** Counters of time (32 bits each), one after the other, for these throttlers. */
  readonly residency?: { readonly at: number; readonly of: readonly Throttler[] }
  /** 2^-16 J, 64 bits. */
  readonly energy?: number
  /** Eight counters of KiB read, then eight of KiB written. */
  readonly xgmi?: number
  /** Number of partitions, then what is known of each. */
  readonly partitions?: { readonly count: number; readonly at: number; readonly stride: number }
}

export type Throttler = 'power' | 'thermal' | 'prochot' | null

/** Instinct MI300 and later: a counter of the table's updates, then five throttlers. */
const INSTINCT: readonly Throttler[] = [null, 'prochot', 'power', 'thermal', 'thermal', 'thermal']
/** Processors with graphics: prochot, three power limits, then temperatures of cores, graphics and the rest. */
const PROCESSOR: readonly Throttler[] = ['prochot', 'power', 'power', 'power', 'thermal', 'thermal', 'thermal']

const LAYOUTS: Readonly<Record<string, Layout>> = {
  '1.0': { size: 80, chipThrottlers: 68, hotspot: 18 },
  '1.1': { size: 96, chipThrottlers: 68, hotspot: 6 },
  '1.2': { size: 104, chipThrottlers: 68, hotspot: 6 },
  '1.3': { size: 120, chipThrottlers: 68, commonThrottlers: 112, hotspot: 6 },
  // These two have room for throttlers, but the driver leaves it empty.
  '1.4': { size: 288, energy: 24, xgmi: 104 },
  '1.5': { size: 360, energy: 88, xgmi: 176 },
  '1.6': { size: 1664, energy: 16, residency: { at: 32, of: INSTINCT }, xgmi: 128, partitions: { count: 306, at: 312, stride: 168 } },
  '1.7': { size: 2208, energy: 24, residency: { at: 40, of: INSTINCT }, xgmi: 136, partitions: { count: 338, at: 344, stride: 232 } },
  '1.8': { size: 3872, energy: 24, residency: { at: 40, of: INSTINCT }, xgmi: 136, partitions: { count: 338, at: 344, stride: 440 } },
  // Graphics inside processors: the tables of cards with the same graphics core do not fit their own bits (at 108).
  '2.1': { size: 120 },
  '2.2': { size: 128, commonThrottlers: 120 },
  '2.3': { size: 152, commonThrottlers: 120 },
  '2.4': { size: 168, commonThrottlers: 120 },
  '3.0': { size: 264, residency: { at: 228, of: PROCESSOR } },
}

/** What a driver writes where it knows nothing: all ones, as wide as the field is. */
const UNKNOWN_16 = 0xffff
const UNKNOWN_32 = 0xffffffff
const XGMI_LINKS = 8
const MAX_XCDS = 8

export interface Metrics {
  readonly chipThrottlers: Reading
  /** Low and high half of 64 bits. */
  readonly commonThrottlers: { readonly low: number; readonly high: number } | null
  readonly hotspotCelsius: Reading
  readonly residency: readonly { readonly throttler: Throttler; readonly count: number }[] | null
  readonly energyJoules: Reading
  readonly xgmiReadBytes: Reading
  readonly xgmiWrittenBytes: Reading
  /** How busy each compute die (XCD) is, by partition. */
  readonly partitions: readonly (readonly number[])[] | null
}

export function parseMetricsHeader(table: Buffer): MetricsHeader | null {
  if (table.length < 4 || table.readUInt16LE(0) < 4) return null
  return { format: table.readUInt8(2), content: table.readUInt8(3) }
}

/** The driver gives tables of format 2 and 3 for processors with graphics inside only. */
export function isApuTable(header: MetricsHeader): boolean {
  return header.format === 2 || header.format === 3
}

/** null: a version whose layout is not known, or not all of it. */
export function parseMetrics(table: Buffer): Metrics | null {
  const header = parseMetricsHeader(table)
  if (header?.format === 1 && header.content === 9) return fromAttributes(table)
  const layout = header === null ? undefined : LAYOUTS[`${header.format}.${header.content}`]
  if (layout === undefined || table.length < layout.size || table.readUInt16LE(0) !== layout.size) return null
  const { chipThrottlers, commonThrottlers, hotspot, residency, energy, xgmi, partitions } = layout
  return {
    chipThrottlers: chipThrottlers === undefined ? null : known(table.readUInt32LE(chipThrottlers), UNKNOWN_32),
    commonThrottlers: commonThrottlers === undefined ? null : wide(table, commonThrottlers),
    hotspotCelsius: hotspot === undefined ? null : known(table.readUInt16LE(hotspot), UNKNOWN_16),
    residency: residency?.of.map((throttler, index) => ({ throttler, count: table.readUInt32LE(residency.at + index * 4) })) ?? null,
    energyJoules: energy === undefined ? null : scaled(counter(table, energy), 1 / 65_536),
    xgmiReadBytes: xgmi === undefined ? null : scaled(links(table, xgmi), 1024),
    xgmiWrittenBytes: xgmi === undefined ? null : scaled(links(table, xgmi + XGMI_LINKS * 8), 1024),
    partitions: partitions === undefined ? null : readPartitions(table, partitions),
  }
}

function fromAttributes(table: Buffer): Metrics | null {
  const attributes = parseAttributes(table, table.readUInt16LE(0))
  if (attributes === null) return null
  const one = (id: number) => attributes.get(id)?.[0] ?? null
  const counts = ATTRIBUTE.residency.map(one)
  const total = (id: number) => sum(attributes.get(id) ?? [])
  const busy = (attributes.get(ATTRIBUTE.dieBusy) ?? []).filter((percent) => percent !== null)
  return {
    chipThrottlers: null,
    commonThrottlers: null,
    hotspotCelsius: one(ATTRIBUTE.hotspot),
    residency: counts.includes(null) ? null : INSTINCT.map((throttler, index) => ({ throttler, count: counts[index] ?? 0 })),
    energyJoules: scaled(one(ATTRIBUTE.energy), 1 / 65_536),
    xgmiReadBytes: scaled(total(ATTRIBUTE.xgmiRead), 1024),
    xgmiWrittenBytes: scaled(total(ATTRIBUTE.xgmiWritten), 1024),
    // It does not say which die belongs to which of several partitions.
    partitions: busy.length === 0 || one(ATTRIBUTE.partitions) !== 1 ? null : [busy.map((percent) => Math.min(1, percent / 100))],
  }
}

function readPartitions(table: Buffer, { count, at, stride }: NonNullable<Layout['partitions']>): readonly (readonly number[])[] {
  return Array.from({ length: Math.min(table.readUInt16LE(count), MAX_XCDS) }, (_, partition) => {
    const busy = Array.from({ length: MAX_XCDS }, (_, die) => table.readUInt32LE(at + partition * stride + die * 4))
    return busy.filter((percent) => percent !== UNKNOWN_32).map((percent) => Math.min(1, percent / 100))
  })
}

function known(value: number, unknown: number): Reading {
  return value === unknown ? null : value
}

function wide(table: Buffer, at: number): Metrics['commonThrottlers'] {
  const [low, high] = [table.readUInt32LE(at), table.readUInt32LE(at + 4)]
  return low === UNKNOWN_32 && high === UNKNOWN_32 ? null : { low, high }
}

function counter(table: Buffer, at: number): Reading {
  const value = wide(table, at)
  return value === null ? null : value.high * 2 ** 32 + value.low
}

/** Links that are not there are unknown; a card without any has no sum. */
function links(table: Buffer, at: number): Reading {
  return sum(Array.from({ length: XGMI_LINKS }, (_, link) => counter(table, at + link * 8)))
}

function sum(readings: readonly Reading[]): Reading {
  const values = readings.filter((value) => value !== null)
  return values.length === 0 ? null : values.reduce((all, value) => all + value, 0)
}

function scaled(value: Reading, factor: number): Reading {
  return value === null ? null : value * factor
}
