/** Pure decoders of process lists. The entry size differs between drivers (535.43–535.86 wrote 32 bytes for 24): a sentinel shows it. */
import { readUint64 } from './layouts.ts'

export const MAX_STRIDE = 32
const STRIDES: readonly number[] = [16, 24, 32]
const SENTINEL_BYTE = 0xa5
const SENTINEL_WORD = 0xa5a5a5a5

export interface DriverProcess {
  readonly pid: number
  readonly memoryUsedBytes: number | null
}

export function fillSentinel(bytes: Buffer, length: number): void {
  bytes.fill(SENTINEL_BYTE, 0, length)
}

/** Bytes per entry of `count` entries in a buffer with room for `room`, or null when what was written fits no known layout. */
export function inferStride(bytes: Buffer, room: number, count: number): number | null {
  if (count <= 0 || room * MAX_STRIDE > bytes.length) return null
  let end = room * MAX_STRIDE
  while (end > 0 && bytes.readUInt32LE(end - 4) === SENTINEL_WORD) end -= 4
  end = (end + 7) & ~7
  // A driver that zeroes all of the room it was given, before it fills in what there is.
  if (count < room && STRIDES.includes(end / room) && isZero(bytes, (end / room) * count, end)) return end / room
  return STRIDES.includes(end / count) ? end / count : null
}

function isZero(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 4) if (bytes.readUInt32LE(at) !== 0) return false
  return true
}

/** null when the stride is unknown: unreadable is not the same as nobody. */
export function decodeProcesses(bytes: Buffer, room: number, count: number): DriverProcess[] | null {
  if (count === 0) return []
  const stride = inferStride(bytes, room, count)
  if (stride === null) return null
  const processes: DriverProcess[] = []
  for (let i = 0; i < count; i++) {
    const offset = i * stride
    const pid = bytes.readUInt32LE(offset)
    // The idle process cannot use a GPU: 0 is what a sandbox shows in place of a PID it hides.
    if (pid !== 0) processes.push({ pid, memoryUsedBytes: readUint64(bytes, offset + 8) })
  }
  return processes
}

export const UTILIZATION_SAMPLE_BYTES = 32

export interface UtilizationSample {
  readonly pid: number
  readonly timestampMicros: bigint
  readonly smRatio: number | null
  readonly memoryRatio: number | null
  readonly encoderRatio: number | null
  readonly decoderRatio: number | null
}

export function decodeUtilizationSample(bytes: Buffer, position: number): UtilizationSample {
  const offset = position * UTILIZATION_SAMPLE_BYTES
  return {
    pid: bytes.readUInt32LE(offset),
    timestampMicros: bytes.readBigUInt64LE(offset + 8),
    smRatio: percentToRatio(bytes.readUInt32LE(offset + 16)),
    memoryRatio: percentToRatio(bytes.readUInt32LE(offset + 20)),
    encoderRatio: percentToRatio(bytes.readUInt32LE(offset + 24)),
    decoderRatio: percentToRatio(bytes.readUInt32LE(offset + 28)),
  }
}

/** Drivers do give more than 100 now and then: that is no reading. */
export function percentToRatio(percent: number | null): number | null {
  return percent === null || percent > 100 ? null : percent / 100
}
