/** Hopper's performance counters: an average between two samples, so that the second tick gives the first figures. */
import type { GpuField, Reading } from '../../core/model.ts'
import { CODE, isFinal, SYMBOL_MISSING } from './codes.ts'
import type { Device, Readings } from './device.ts'
import { GPM_HEADER_BYTES, GPM_METRIC_BYTES, gpmReturn, gpmValue } from './layouts.ts'

const MEBIBYTE = 1024 * 1024
/** The structure's declared length in API 13: a driver may look at all of it. */
const MAX_METRICS = 333

interface Metric {
  readonly id: number
  readonly field: GpuField
  readonly unit: 'percent' | 'mebibytes'
  /** Expensive: computed with the slow tier only. */
  readonly slow?: true
}

const METRICS: readonly Metric[] = [
  // Measured on an H200: this one takes the driver 1,040 µs, every other 3 µs.
  { id: 1, field: 'graphicsActiveRatio', unit: 'percent', slow: true },
  { id: 2, field: 'smActiveRatio', unit: 'percent' },
  { id: 3, field: 'smOccupancyRatio', unit: 'percent' },
  { id: 5, field: 'tensorActiveRatio', unit: 'percent' },
  { id: 10, field: 'dramActiveRatio', unit: 'percent' },
  { id: 11, field: 'fp64ActiveRatio', unit: 'percent' },
  { id: 12, field: 'fp32ActiveRatio', unit: 'percent' },
  { id: 13, field: 'fp16ActiveRatio', unit: 'percent' },
  // 20 is traffic from this GPU, 21 is traffic to it.
  { id: 20, field: 'pcieTxBytesPerSecond', unit: 'mebibytes' },
  { id: 21, field: 'pcieRxBytesPerSecond', unit: 'mebibytes' },
  // For NVLink it is the other way round: 60 is what the GPU receives, 61 what it sends.
  { id: 60, field: 'nvlinkRxBytesPerSecond', unit: 'mebibytes' },
  { id: 61, field: 'nvlinkTxBytesPerSecond', unit: 'mebibytes' },
]

/** Fields that only these counters give. */
export const GPM_RATIO_FIELDS: ReadonlySet<string> = new Set(
  METRICS.filter((metric) => metric.unit === 'percent').map((metric) => metric.field),
)

const RATIOS = METRICS.filter((metric) => metric.unit === 'percent')
const FAST = METRICS.filter((metric) => !metric.slow)

const request = Buffer.alloc(GPM_HEADER_BYTES + MAX_METRICS * GPM_METRIC_BYTES)
const pointer = Buffer.alloc(8)

/** Takes a sample of the whole GPU, or of one MIG instance of it. */
export type TakeSample = (sample: bigint) => number

export class Gpm {
  readonly #device: Device
  readonly #take: TakeSample
  #metrics: readonly Metric[] = METRICS
  #fast: readonly Metric[] = FAST
  #newest: bigint
  #oldest: bigint
  #primed = false
  /** Every metric was computed once: from then on the expensive ones wait for the slow tier. */
  #complete = false
  #over = false

  constructor(device: Device, take: TakeSample, samples: readonly [bigint, bigint]) {
    this.#device = device
    this.#take = take
    ;[this.#oldest, this.#newest] = samples
  }

  /** Whether this field comes from here, so that nobody else need ask for it. */
  gives(field: GpuField): boolean {
    return !this.#over && this.#metrics.some((metric) => metric.field === field)
  }

  read(out: Readings, slow: boolean): void {
    const metrics = slow || !this.#complete ? this.#metrics : this.#fast
    for (const { field } of metrics) out[field] = null
    const device = this.#device
    if (this.#over || device.fault !== null) return
    const code = this.#take(this.#oldest)
    if (code !== CODE.ok) {
      this.#primed = false
      this.#over =
        device.judge(
          code,
          RATIOS.map((metric) => metric.field),
        ) === 'never'
      return
    }
    const before = this.#newest
    this.#newest = this.#oldest
    this.#oldest = before
    if (this.#primed) this.#evaluate(metrics, out)
    this.#primed = true
  }

  close(): void {
    for (const sample of [this.#newest, this.#oldest]) if (sample !== 0n) this.#device.nvml.functions.nvmlGpmSampleFree?.(sample)
    this.#newest = this.#oldest = 0n
    this.#over = true
  }

  #evaluate(metrics: readonly Metric[], out: Readings): void {
    const device = this.#device
    request.writeUInt32LE(1, 0)
    request.writeUInt32LE(metrics.length, 4)
    request.writeBigUInt64LE(this.#oldest, 8)
    request.writeBigUInt64LE(this.#newest, 16)
    for (let i = 0; i < metrics.length; i++) {
      const offset = GPM_HEADER_BYTES + i * GPM_METRIC_BYTES
      request.writeUInt32LE((metrics[i] as Metric).id, offset)
      request.writeInt32LE(CODE.noData, offset + 4)
    }
    const code = device.nvml.functions.nvmlGpmMetricsGet?.(request) ?? CODE.functionNotFound
    // Invalid argument here only says that the two samples lie too close together.
    if (code === CODE.invalidArgument) return
    if (device.judge(code, []) !== 'answered') return
    this.#complete = true
    let lacking = false
    for (let i = 0; i < metrics.length; i++) {
      const metric = metrics[i] as Metric
      const own = gpmReturn(request, i)
      if (own === CODE.ok) this.#put(metric, gpmValue(request, i), out)
      else if (isFinal(own)) lacking = true
    }
    if (lacking) this.#drop(metrics)
  }

  #put({ field, unit }: Metric, value: Reading, out: Readings): void {
    if (value === null) return
    out[field] = unit === 'percent' ? Math.round(Math.min(value, 100) * 100) / 1e4 : Math.round(value * MEBIBYTE)
  }

  /** A metric that this GPU does not have is not asked for again. */
  #drop(metrics: readonly Metric[]): void {
    const gone = new Set(metrics.filter((_, position) => isFinal(gpmReturn(request, position))))
    for (const { field } of gone) this.#device.explain(field, 'not supported by this GPU')
    this.#metrics = this.#metrics.filter((metric) => !gone.has(metric))
    this.#fast = this.#fast.filter((metric) => !gone.has(metric))
    this.#over = this.#metrics.length === 0
  }
}

/** null, with the reason noted at `device`, where the GPU (asked as `whole`) or the driver has no GPM. */
export function openGpm(device: Device, whole: Device, take: TakeSample | null): Gpm | null {
  const refuse = (reason: string) => {
    for (const { field } of RATIOS) device.explain(field, reason)
    return null
  }
  const { nvmlGpmQueryDeviceSupport: support, nvmlGpmSampleAlloc: alloc, nvmlGpmMetricsGet: metrics } = whole.nvml.functions
  if (support === null || alloc === null || metrics === null || take === null) return refuse(SYMBOL_MISSING)
  pointer.writeUInt32LE(1, 0)
  pointer.writeUInt32LE(0, 4)
  if (support(whole.handle, pointer) !== CODE.ok || pointer.readUInt32LE(4) !== 1)
    return refuse('not supported by this GPU: these counters came with Hopper')
  const samples: bigint[] = []
  for (let i = 0; i < 2; i++) {
    if (alloc(pointer) !== CODE.ok) return refuse('the driver could not allocate a sample')
    samples.push(pointer.readBigUInt64LE(0))
  }
  return new Gpm(device, take, samples as [bigint, bigint] & bigint[])
}
