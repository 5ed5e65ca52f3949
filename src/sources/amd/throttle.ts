/** The binary `gpu_metrics` table: only what no other file tells. Layouts are in the kernel's kgd_pp_interface.h. */
import { CLOCK_REASON } from '../../core/gpu-words.ts'
import type { Reading } from '../../core/model.ts'

/** Throttler bits of the table, in two halves of 32: power 0–15, current 16–31, then temperature, then hot signals of regulators and CPU. */
const POWER_BITS = 0x0000ffff
const CURRENT_BITS = 0xffff0000
const TEMPERATURE_BITS = 0x00000fff
const HOT_SIGNAL_BITS = 0x0000f000

/** Version 1.3 (Radeon RX 6000 and 7000, Instinct MI200): 120 bytes, the throttlers of every chip in the same bits at 112. */
const THROTTLERS_OFFSET = 112
const SIZE = 120

export interface MetricsHeader {
  readonly format: number
  readonly content: number
}

export function parseMetricsHeader(table: Buffer): MetricsHeader | null {
  if (table.length < 4 || table.readUInt16LE(0) < 4) return null
  return { format: table.readUInt8(2), content: table.readUInt8(3) }
}

/** The driver gives tables of format 2 and 3 for processors with graphics inside only. */
export function isApuTable(header: MetricsHeader): boolean {
  return header.format === 2 || header.format === 3
}

/** Why clocks are limited, as NVML's mask; null in a table without chip-independent bits. */
export function parseClockEventReasons(table: Buffer): Reading {
  const header = parseMetricsHeader(table)
  if (header?.format !== 1 || header.content !== 3 || table.length < SIZE || table.readUInt16LE(0) !== SIZE) return null
  const low = table.readUInt32LE(THROTTLERS_OFFSET)
  const high = table.readUInt32LE(THROTTLERS_OFFSET + 4)
  // All ones is the driver's filler for "unknown".
  if (low === 0xffffffff && high === 0xffffffff) return null
  let reasons = 0
  if (low & POWER_BITS) reasons |= CLOCK_REASON.softwarePowerCap
  if (low & CURRENT_BITS) reasons |= CLOCK_REASON.hardwareSlowdown
  if (high & TEMPERATURE_BITS) reasons |= CLOCK_REASON.softwareThermal
  if (high & HOT_SIGNAL_BITS) reasons |= CLOCK_REASON.hardwareSlowdown | CLOCK_REASON.hardwareThermal
  return reasons
}
