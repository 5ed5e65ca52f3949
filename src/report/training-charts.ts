/** The charts of a report: columns over one time axis. */
import { ledgerLabel } from '../core/memory/oom-report.ts'
import type { Reading } from '../core/model.ts'
import type { ChartUnit, ReportChart, ReportSeries } from '../core/report-page.ts'
import { NOT_ATTRIBUTED, placeOf } from '../core/step-phases.ts'
import { LEDGER_ORDER, ledgerColor } from './ledger-color.ts'
import type { BucketSeries } from './training-buckets.ts'
import type { GpuSeriesName, Recorded, RecordedGpu, RecordedRank, StepSeriesName } from './training-recorded.ts'

export interface LedgerPart {
  readonly name: string
  readonly bytes: number
}

/** Where the memory of a GPU is, from readings of one moment. */
export type LedgerOf = (input: {
  totalBytes: Reading
  usedBytes: Reading
  driverReservedBytes: Reading
  processes: readonly { pid: number; memoryUsedBytes: Reading }[] | null
  allocators: readonly {
    pid: Reading
    allocatedBytes: Reading
    reservedBytes: Reading
    activeBytes: Reading
    inactiveSplitBytes: Reading
  }[]
}) => { readonly entries: readonly LedgerPart[] } | null

export type PidOf = (run: string, rank: number) => number | null

const MOST_LEDGERS = 16
const MOST_PHASE_CHARTS = 4

export function reportCharts(recorded: Recorded, ledgerOf: LedgerOf, pidOf: PidOf): ReportChart[] {
  const { ranks, gpus } = recorded
  const used = recorded.buckets.used
  const training = (title: string, unit: ChartUnit, name: StepSeriesName, log = false): ReportChart => ({
    title,
    unit,
    ...(log ? { log: true as const } : {}),
    series: ranks.flatMap((rank) => column(rankName(rank, ranks), rank.series[name], used) ?? []),
  })
  const device = (title: string, unit: ChartUnit, name: GpuSeriesName): ReportChart => ({
    title,
    unit,
    series: gpus.flatMap((gpu) => column(`GPU ${gpu.label}`, gpu.series[name], used) ?? []),
  })
  const charts = [
    training('Loss', 'number', 'loss', true),
    training('Learning rate', 'number', 'learningRate'),
    training('Gradient norm', 'number', 'gradientNorm', true),
    training('Step time', 'seconds', 'stepSeconds', true),
    ...ranks
      .filter(({ phaseSeries }) => phaseSeries.size > 0)
      .slice(0, MOST_PHASE_CHARTS)
      .map((rank) => phaseChart(rank, ranks, used)),
    training('Throughput (samples per second)', 'number', 'throughputPerSecond'),
    device('GPU utilization', 'ratio', 'utilizationRatio'),
    device('Tensor core activity', 'ratio', 'tensorActiveRatio'),
    device('GPU memory', 'bytes', 'memoryUsedBytes'),
    ...gpus.slice(0, MOST_LEDGERS).map((gpu) => ledgerChart(gpu, recorded, ledgerOf, pidOf)),
    device('Temperature', 'celsius', 'temperatureCelsius'),
    device('Power', 'watts', 'powerWatts'),
  ]
  return charts.filter(({ series }) => series.length > 0)
}

/** What a step was spent on. */
function phaseChart(rank: RecordedRank, all: readonly RecordedRank[], used: number): ReportChart {
  const names = [...rank.phaseSeries.keys()].sort((a, b) => placeOf(a) - placeOf(b))
  const columns = names.map((name) => Array.from({ length: used }, (_, index) => rank.phaseSeries.get(name)?.mean(index) ?? null))
  const isKnown = (index: number) => columns.some((values) => values[index] !== null)
  const parts = columns.map((values) => values.map((value, index) => value ?? (isKnown(index) ? 0 : null)))
  const rest = Array.from({ length: used }, (_, index): Reading => {
    const whole = rank.series.stepSeconds.mean(index)
    return whole === null || !isKnown(index) ? null : Math.max(0, whole - parts.reduce((sum, values) => sum + (values[index] ?? 0), 0))
  })
  const isOneRun = all.every((other) => other.run === rank.run)
  return {
    title: isOneRun ? 'Step time by phase' : `Step time by phase, ${rank.run}`,
    unit: 'seconds',
    stacked: true,
    series: [
      ...names.map((name, index) => ({ name, values: parts[index] ?? [] })),
      { name: NOT_ATTRIBUTED, color: 'pale' as const, values: rest },
    ],
  }
}

function rankName({ run, rank }: RecordedRank, all: readonly RecordedRank[]): string {
  const isOneRun = all.every((other) => other.run === run)
  const isOneRank = all.every((other) => other.rank === rank)
  return isOneRun ? `rank ${rank}` : isOneRank ? run : `${run} rank ${rank}`
}

/** null: there is nothing to draw. */
function column(name: string, series: BucketSeries, used: number): ReportSeries | null {
  const values: Reading[] = []
  const min: Reading[] = []
  const max: Reading[] = []
  const odd: number[] = []
  let isBanded = false
  let isEmpty = true
  for (let index = 0; index < used; index++) {
    const mean = series.mean(index)
    if (series.odd[index]) odd.push(index)
    if (mean !== null || series.odd[index]) isEmpty = false
    if ((series.count[index] ?? 0) > 1) isBanded = true
    values.push(mean)
    min.push(mean === null ? null : (series.min[index] ?? 0))
    max.push(mean === null ? null : (series.max[index] ?? 0))
  }
  if (isEmpty) return null
  return { name, values, ...(isBanded ? { min, max } : {}), ...(odd.length > 0 ? { odd } : {}) }
}

/** Readings of a rank hold from one step to the next. */
class Held {
  readonly #rank: RecordedRank
  readonly #last: Record<string, Reading> = {}

  constructor(rank: RecordedRank) {
    this.#rank = rank
  }

  at(index: number, name: StepSeriesName): Reading {
    const value = this.#rank.series[name].mean(index) ?? this.#last[name] ?? null
    this.#last[name] = value
    return value
  }
}

function ledgerChart(gpu: RecordedGpu, { buckets, ranks, gpus }: Recorded, ledgerOf: LedgerOf, pidOf: PidOf): ReportChart {
  const own = ranks.filter((rank) => isOn(rank, gpu, gpus, pidOf)).map((rank) => ({ rank, held: new Held(rank) }))
  const columns = new Map<string, Reading[]>()
  const times = buckets.times()
  for (let index = 0; index < buckets.used; index++) {
    const used = gpu.series.memoryUsedBytes.mean(index)
    const middle = times[index] ?? 0
    const allocators = own.map(({ rank, held }) => ({
      pid: pidOf(rank.run, rank.rank),
      isThere: middle >= rank.firstAt - buckets.widthMs && middle <= rank.lastAt + buckets.widthMs,
      allocatedBytes: held.at(index, 'memoryAllocatedBytes'),
      reservedBytes: held.at(index, 'memoryReservedBytes'),
      activeBytes: held.at(index, 'memoryActiveBytes'),
      inactiveSplitBytes: held.at(index, 'memoryInactiveSplitBytes'),
    }))
    if (used === null) continue
    // Before its first step and after its last a process belongs to the run, but its parts are unknown.
    const untold = allocators.flatMap(({ pid, isThere }) => (isThere || pid === null ? [] : [pid]))
    const ledger = ledgerOf({
      totalBytes: gpu.totalBytes,
      usedBytes: used,
      driverReservedBytes: gpu.series.memoryReservedBytes.mean(index),
      processes: Array.from(gpu.pids, ([pid, series]) => ({ pid, memoryUsedBytes: series.mean(index) })).filter(
        ({ pid, memoryUsedBytes }) => memoryUsedBytes !== null && !untold.includes(pid),
      ),
      allocators: allocators.filter(({ isThere, reservedBytes, allocatedBytes }) => isThere && (reservedBytes ?? allocatedBytes) !== null),
    })
    for (const { name, bytes } of ledger?.entries ?? []) {
      const values = columns.get(name) ?? new Array<Reading>(buckets.used).fill(null)
      values[index] = bytes
      columns.set(name, values)
    }
  }
  const drawn = [...columns].filter(([name]) => name !== 'free').sort(([a], [b]) => LEDGER_ORDER.indexOf(a) - LEDGER_ORDER.indexOf(b))
  // A part that is missing where others exist is 0, not unknown.
  const isKnown = (index: number) => drawn.some(([, values]) => values[index] !== null)
  return {
    title: `Where the memory of GPU ${gpu.label} is`,
    unit: 'bytes',
    stacked: true,
    gpuIndex: gpu.index,
    ...(gpu.totalBytes === null ? {} : { limit: { value: gpu.totalBytes, label: 'capacity' } }),
    series: drawn.map(([name, values]) => ({
      name: ledgerLabel(name),
      color: ledgerColor(name),
      values: values.map((value, index) => value ?? (isKnown(index) ? 0 : null)),
    })),
  }
}

/** By its process where known; else the only GPU, or the one with the same index. */
function isOn(rank: RecordedRank, gpu: RecordedGpu, gpus: readonly RecordedGpu[], pidOf: PidOf): boolean {
  const pid = pidOf(rank.run, rank.rank)
  const holder = pid === null ? undefined : gpus.find(({ pids }) => pids.has(pid))
  return holder ? holder === gpu : gpus.length === 1 || gpu.index === rank.rank
}
