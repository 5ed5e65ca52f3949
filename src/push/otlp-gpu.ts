/** GPUs under OpenTelemetry's names for hardware (semantic conventions, status: development). */
import { countedOnce } from '../core/gpu-totals.ts'
import type { AgentState, GpuView, HubEvent } from '../core/kinds.ts'
import type { GpuInfo, GpuSample, Reading } from '../core/model.ts'
import { type Attribute, double, type NumberPoint, type OtlpMetric, type PointTime, text } from './otlp-data.ts'

/** How a metric is put: a level, a level that adds up over devices, or a count that only grows. */
type Form = 'gauge' | 'updown' | 'counter'

interface Value {
  readonly extra?: readonly Attribute[]
  readonly of: (sample: GpuSample, info: GpuInfo, io: GpuIo) => Reading
}

interface Row {
  readonly name: string
  readonly unit: string
  readonly form: Form
  readonly description: string
  /** The names that all hardware shares say which kind it is. */
  readonly generic?: true
  readonly values: readonly Value[]
}

const task = (name: string) => [text('hw.gpu.task', name)]
const direction = (name: string) => [text('network.io.direction', name)]
const error = (type: string) => [text('error.type', type)]

const ROWS: readonly Row[] = [
  {
    name: 'hw.gpu.memory.limit',
    unit: 'By',
    form: 'updown',
    description: 'Size of the GPU memory.',
    values: [{ of: (sample, info) => sample.memoryTotalBytes ?? info.memoryTotalBytes }],
  },
  {
    name: 'hw.gpu.memory.usage',
    unit: 'By',
    form: 'updown',
    description: 'GPU memory used.',
    values: [{ of: (sample) => sample.memoryUsedBytes }],
  },
  {
    name: 'hw.gpu.memory.utilization',
    unit: '1',
    form: 'gauge',
    description: 'Fraction of GPU memory used.',
    values: [{ of: ({ memoryUsedBytes: used, memoryTotalBytes: total }) => (used === null || !total ? null : used / total) }],
  },
  {
    name: 'hw.gpu.utilization',
    unit: '1',
    form: 'gauge',
    description: 'Fraction of time spent in a specific task.',
    values: [
      { extra: task('general'), of: (sample) => sample.utilizationRatio },
      { extra: task('encoder'), of: (sample) => sample.encoderRatio },
      { extra: task('decoder'), of: (sample) => sample.decoderRatio },
    ],
  },
  {
    name: 'hw.gpu.io',
    unit: 'By',
    form: 'counter',
    description: 'Bytes received and transmitted by the GPU over PCIe, integrated from the rates it reports.',
    values: [
      { extra: direction('transmit'), of: (sample, _info, io) => io.bytes(sample.gpu, 'transmit') },
      { extra: direction('receive'), of: (sample, _info, io) => io.bytes(sample.gpu, 'receive') },
    ],
  },
  {
    name: 'hw.errors',
    unit: '{error}',
    form: 'counter',
    description: 'Memory errors.',
    generic: true,
    values: [
      { extra: error('corrected'), of: (sample) => sample.eccCorrectedVolatileCount },
      { extra: error('uncorrected'), of: (sample) => sample.eccUncorrectedVolatileCount },
    ],
  },
  {
    name: 'hw.energy',
    unit: 'J',
    form: 'counter',
    description: 'Energy consumed.',
    generic: true,
    values: [{ of: (sample) => sample.energyJoules }],
  },
  {
    name: 'hw.power',
    unit: 'W',
    form: 'gauge',
    description: 'Power drawn now.',
    generic: true,
    values: [{ of: (sample) => sample.powerWatts }],
  },
  {
    name: 'hw.temperature',
    unit: 'Cel',
    form: 'gauge',
    description: 'Temperature.',
    generic: true,
    values: [
      { extra: [text('hw.sensor_location', 'gpu')], of: (sample) => sample.temperatureCelsius },
      { extra: [text('hw.sensor_location', 'junction')], of: (sample) => sample.junctionTemperatureCelsius },
      { extra: [text('hw.sensor_location', 'memory')], of: (sample) => sample.memoryTemperatureCelsius },
    ],
  },
  {
    name: 'hw.fan.speed_ratio',
    unit: '1',
    form: 'gauge',
    description: 'Fan speed as a fraction of the maximum.',
    values: [{ of: (sample) => sample.fanRatio }],
  },
]

function identity(info: GpuInfo): Attribute[] {
  const all: [string, string | null][] = [
    ['hw.id', info.id],
    ['hw.parent', info.mig?.parentId ?? null],
    ['hw.name', `gpu${info.label}`],
    ['hw.model', info.name],
    ['hw.vendor', info.vendor],
    ['hw.serial_number', info.serial],
    ['hw.driver_version', info.driverVersion],
    ['gpuwarden.provenance', info.provenance === 'live' ? null : info.provenance],
  ]
  return all.flatMap(([key, value]) => (value === null ? [] : [text(key, value)]))
}

/** Only GPUs with fresh readings; an unknown value is no point. */
export function gpuMetrics(state: AgentState, io: GpuIo, time: PointTime): OtlpMetric[] {
  const gpus = state.gpus().filter(({ live, sample }: GpuView) => live && sample !== null && sample.state !== 'lost')
  const known = gpus.map(({ info, sample }) => ({ info, sample, attributes: identity(info) }))
  return ROWS.flatMap((row): OtlpMetric[] => {
    const dataPoints: NumberPoint[] = []
    // What adds up must not hold a MIG instance beside its card.
    for (const { info, sample, attributes } of row.form === 'updown' ? countedOnce(known) : known)
      for (const { extra = [], of } of row.values) {
        const value = sample === null ? null : of(sample, info, io)
        if (value === null) continue
        const kind = row.generic ? [text('hw.type', 'gpu')] : []
        const start = row.form === 'gauge' ? {} : { startTimeUnixNano: time.startTimeUnixNano }
        dataPoints.push({
          attributes: [...attributes, ...kind, ...extra],
          ...start,
          timeUnixNano: time.timeUnixNano,
          asDouble: double(value),
        })
      }
    if (dataPoints.length === 0) return []
    const { name, unit, description, form } = row
    if (form === 'gauge') return [{ name, unit, description, gauge: { dataPoints } }]
    return [{ name, unit, description, sum: { dataPoints, aggregationTemporality: 2 as const, isMonotonic: form === 'counter' } }]
  })
}

type Direction = 'transmit' | 'receive'

interface Traffic {
  atMs: number
  transmit: number | null
  receive: number | null
}

/** A rate holds until the next sample, but not over a gap. */
const LONGEST_GAP_MS = 10_000
const MOST_GPUS = 256

/** Bytes from rates: the driver reports only rates. */
export class GpuIo {
  readonly #traffic = new Map<string, Traffic>()

  accept(event: HubEvent): void {
    if (event.type !== 'tick') return
    for (const sample of event.tick.gpus) this.#count(sample)
  }

  bytes(gpu: string, way: Direction): Reading {
    const bytes = this.#traffic.get(gpu)?.[way] ?? null
    return bytes === null ? null : Math.round(bytes)
  }

  #count({ gpu, at, pcieTxBytesPerSecond, pcieRxBytesPerSecond }: GpuSample): void {
    const known = this.#traffic.get(gpu)
    if (known === undefined) {
      if (this.#traffic.size < MOST_GPUS)
        this.#traffic.set(gpu, {
          atMs: at,
          transmit: pcieTxBytesPerSecond === null ? null : 0,
          receive: pcieRxBytesPerSecond === null ? null : 0,
        })
      return
    }
    const seconds = Math.max(0, Math.min(at - known.atMs, LONGEST_GAP_MS)) / 1000
    known.atMs = at
    if (pcieTxBytesPerSecond !== null) known.transmit = (known.transmit ?? 0) + pcieTxBytesPerSecond * seconds
    if (pcieRxBytesPerSecond !== null) known.receive = (known.receive ?? 0) + pcieRxBytesPerSecond * seconds
  }
}
