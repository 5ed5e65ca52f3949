/** The pictures of a profile. */
import { type ChartMark, type ChartSpec, renderChart } from '../core/chart/chart.ts'
import type { Theme } from '../core/chart/palette.ts'
import type { GpuInfo } from '../core/model.ts'
import type { MemoryProfile } from './memory-profile.ts'

const WIDTH = 900
const HEIGHT = 280
const MOST_MARKS = 6

export function memoryChart(profile: MemoryProfile, info: GpuInfo, theme: Theme): string {
  const { at, mean, min, max } = profile.memoryOf(info.id)
  const total = info.memoryTotalBytes
  return renderChart({
    ...frame(theme),
    title: `GPU ${info.label}${info.name === null ? '' : ` ${info.name}`}: memory in use${mark(info)}`,
    unit: 'bytes',
    at,
    series: [{ name: 'in use', values: mean, min, max, fill: true }],
    lowest: 0,
    ...(total === null ? {} : { limits: [{ value: total, label: 'capacity' }], highest: total * 1.02 }),
    marks: marks(profile, info.index),
  })
}

export function utilizationChart(profile: MemoryProfile, info: GpuInfo, theme: Theme): string {
  const { at, mean, min, max } = profile.utilizationOf(info.id)
  return renderChart({
    ...frame(theme),
    height: 180,
    title: `GPU ${info.label}: busy${mark(info)}`,
    unit: 'ratio',
    at,
    series: [{ name: 'busy', values: mean, min, max }],
    lowest: 0,
    highest: 1,
  })
}

/** One picture of all: bytes of a single GPU, or the share that is in use of each of several. */
export function profilePlot(profile: MemoryProfile, infos: readonly GpuInfo[], theme: Theme = 'light'): string {
  const only = infos[0]
  if (only !== undefined && infos.length === 1) return memoryChart(profile, only, theme)
  // All GPUs are sampled in the same ticks, so the longest column of times serves all.
  const columns = infos.map((info) => profile.memoryOf(info.id))
  const longest = columns.reduce<readonly number[]>((best, one) => (one.at.length > best.length ? one.at : best), [])
  return renderChart({
    ...frame(theme),
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
  })
}

function frame(theme: Theme): Pick<ChartSpec, 'width' | 'height' | 'theme' | 'timeZone'> {
  return { width: WIDTH, height: HEIGHT, theme, timeZone: 'UTC' }
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
