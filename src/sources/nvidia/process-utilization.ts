/** What each process does on the GPU's engines: an expensive call, made rarely, its answer kept until the next. */
import { CODE, isFinal, reasonInWords, SYMBOL_MISSING } from './codes.ts'
import type { Device } from './device.ts'
import { decodeUtilizationSample, UTILIZATION_SAMPLE_BYTES, type UtilizationSample } from './process-layout.ts'

export type ProcessShares = Pick<UtilizationSample, 'smRatio' | 'memoryRatio' | 'encoderRatio' | 'decoderRatio'>

const IDLE: ProcessShares = { smRatio: 0, memoryRatio: 0, encoderRatio: 0, decoderRatio: 0 }
export const UNKNOWN_SHARES: ProcessShares = { smRatio: null, memoryRatio: null, encoderRatio: null, decoderRatio: null }

const FIELD = 'processes.smRatio'
const LEAST_INTERVAL_MS = 2000
/** Samples older than this at the first call are history, not the present. */
const FIRST_LOOK_BACK_MS = 5000
const MAX_SAMPLES = 16384

const count = Buffer.alloc(4)

export class ProcessUtilization {
  readonly #device: Device
  #over: boolean
  #since: bigint
  #readMs = Number.NEGATIVE_INFINITY
  #buffer = Buffer.alloc(64 * UTILIZATION_SAMPLE_BYTES)
  #shares = new Map<number, ProcessShares>()

  constructor(device: Device, nowMs: number) {
    this.#device = device
    this.#since = BigInt(Math.max(0, Math.floor(nowMs - FIRST_LOOK_BACK_MS))) * 1000n
    this.#over = device.nvml.functions.nvmlDeviceGetProcessUtilization === null
    if (this.#over) device.explain(FIELD, SYMBOL_MISSING)
  }

  /** Shares of a process as of the last refresh; unknown for one that came after it. */
  of(pid: number): ProcessShares {
    return this.#shares.get(pid) ?? UNKNOWN_SHARES
  }

  /** Asks again unless it was asked just now. `pids` are those on the GPU: whoever is not in the answer was idle. */
  refresh(pids: Iterable<number>, monotonicMs: number): void {
    if (this.#over || this.#device.fault !== null || monotonicMs - this.#readMs < LEAST_INTERVAL_MS) return
    this.#readMs = monotonicMs
    this.#shares = new Map()
    const present = this.#ask()
    if (present === null) return
    for (const pid of pids) this.#shares.set(pid, IDLE)
    const since = this.#since
    const newest = new Map<number, bigint>()
    for (let i = 0; i < present; i++) {
      const sample = decodeUtilizationSample(this.#buffer, i)
      const { pid, timestampMicros, smRatio, memoryRatio, encoderRatio, decoderRatio } = sample
      if (timestampMicros <= (newest.get(pid) ?? since)) continue
      newest.set(pid, timestampMicros)
      this.#shares.set(pid, { smRatio, memoryRatio, encoderRatio, decoderRatio })
      if (timestampMicros > this.#since) this.#since = timestampMicros
    }
  }

  /** How many samples are in the buffer; null when they could not be read. */
  #ask(): number | null {
    const call = this.#device.nvml.functions.nvmlDeviceGetProcessUtilization
    for (let attempt = 0; call !== null && attempt < 3; attempt++) {
      const room = this.#buffer.length / UTILIZATION_SAMPLE_BYTES
      count.writeUInt32LE(room, 0)
      const code = call(this.#device.handle, this.#buffer, count, this.#since)
      const present = count.readUInt32LE(0)
      if (code === CODE.notFound) return 0
      if (code === CODE.insufficientSize && present <= MAX_SAMPLES) {
        this.#buffer = Buffer.alloc((2 * Math.max(present, room) + 5) * UTILIZATION_SAMPLE_BYTES)
        continue
      }
      if (isFinal(code)) {
        this.#over = true
        this.#device.explain(FIELD, reasonInWords(code))
        return null
      }
      return this.#device.judge(code, []) === 'answered' && present <= room ? present : null
    }
    return null
  }
}
