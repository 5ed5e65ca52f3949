/** The charts of a profile: for the page, and as one picture. */
import { type ChartMark, type ChartSpec, renderChart } from '../core/chart/chart.ts'
import type { GpuInfo } from '../core/model.ts'
import type { ReportChart, ReportSeries } from '../core/report-page.ts'
import type { SeriesColumns } from './bounded-series.ts'
import type { MemoryProfile } from './memory-profile.ts'

const MOST_MARKS = 6
const FRAME = { width: 900, timeZone: 'UTC' } as const

export function deviceCharts(profile: MemoryProfile, info: GpuInfo): ReportChart[] {
  const memory = profile.memoryOf(info.id)
  const busy = profile.utilizationOf(info.id)
  const total = info.memoryTotalBytes
  return [
    {
      title: `GPU ${info.label}: memory in use${mark(info)}`,
      unit: 'bytes',
      gpuIndex: info.index,
      times: memory.at,
      ...(total === null ? {} : { limit: { value: total, label: 'capacity' } }),
      series: [line('in use', memory)],
    },
    {
      title: `GPU ${info.label}: utilization${mark(info)}`,
      unit: 'ratio',
      gpuIndex: info.index,
      times: busy.at,
      series: [line('utilization', busy)],
    },
  ]
}

function line(name: string, { mean, min, max }: SeriesColumns): ReportSeries {
  return { name, values: mean, ...(max.some((value, index) => value !== min[index]) ? { min, max } : {}) }
}

/** One chart: bytes of a single GPU, or the share in use of each of several. */
export function profilePlot(profile: MemoryProfile, infos: readonly GpuInfo[]): string {
  const only = infos[0]
  return renderChart(only !== undefined && infos.length === 1 ? memoryOf(profile, only) : memoryOfAll(profile, infos))
}

function memoryOf(profile: MemoryProfile, info: GpuInfo): ChartSpec {
  const { at, mean, min, max } = profile.memoryOf(info.id)
  const total = info.memoryTotalBytes
  return {
    ...FRAME,
    height: 280,
    title: `GPU ${info.label}${info.name === null ? '' : ` ${info.name}`}: memory in use${mark(info)}`,
    unit: 'bytes',
    at,
    series: [{ name: 'in use', values: mean, min, max, fill: true }],
    lowest: 0,
    ...(total === null ? {} : { limits: [{ value: total, label: 'capacity' }], highest: total * 1.02 }),
    marks: marks(profile, info.index),
  }
}

function memoryOfAll(profile: MemoryProfile, infos: readonly GpuInfo[]): ChartSpec {
  // All GPUs are sampled in the same ticks, so the longest time column fits all.
  const columns = infos.map((info) => profile.memoryOf(info.id))
  const longest = columns.reduce<readonly number[]>((best, one) => (one.at.length > best.length ? one.at : best), [])
  return {
    ...FRAME,
    height: 320,
    title: `GPU memory in use${infos.some((info) => info.provenance === 'simulated') ? ' (SIMULATED)' : ''}`,
    unit: 'ratio',
    at: longest,
    series: infos.map((info, index) => ({
      name: `GPU ${info.label}`,
      values: (columns[index]?.mean ?? []).map((bytes) =>
        bytes === null || info.memoryTotalBytes === null || info.memoryTotalBytes <= 0 ? null : bytes / info.memoryTotalBytes,
      ),
    })),
    lowest: 0,
    highest: 1,
    marks: infos.flatMap((info) => marks(profile, info.index)).slice(0, MOST_MARKS),
  }
}

function mark(info: GpuInfo): string {
  return info.provenance === 'simulated' ? ' (SIMULATED)' : ''
}

function marks(profile: MemoryProfile, index: number): ChartMark[] {
  return profile.findings
    .list()
    .filter(({ said }) => said.severity !== 'info' && (said.subject.gpuIndex === index || said.subject.gpuIndex === null))
    .slice(0, MOST_MARKS)
    .map(({ firstAt, said }) => ({ at: firstAt, label: said.detector, severity: said.severity }))
}
