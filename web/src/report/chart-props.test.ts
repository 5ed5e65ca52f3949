import { describe, expect, it } from 'vitest'
import type { ReportChart, ReportPageData } from '../../../src/core/report-page.ts'
import { formatBytes } from '../words.ts'
import { chartProps } from './chart-props.ts'
import { tooltipLines } from './tooltip.ts'

const GIB = 1024 ** 3
const page: ReportPageData = {
  from: 500,
  to: 4500,
  times: { firstAt: 1000, stepMs: 1000, count: 4 },
  charts: [],
  marks: [
    { at: 2000, severity: 'critical', detector: 'oom', message: 'full', gpuIndex: 1 },
    { at: 3000, severity: 'warning', detector: 'leak', message: 'grows', gpuIndex: null },
  ],
}
const loss: ReportChart = { title: 'Loss', unit: 'number', log: true, series: [{ name: 'rank 0', values: [100, null, 3, 1], odd: [2] }] }

describe('a chart of a report', () => {
  it('has a logarithmic axis where that is wanted, all is above zero and the range is wide', () => {
    expect(chartProps(loss, page).log).toBe(true)
    expect(chartProps({ ...loss, series: [{ name: 'a', values: [10, 1] }] }, page).log).toBe(false)
    expect(chartProps({ ...loss, series: [{ name: 'a', values: [100, 1], min: [0, 1], max: [100, 1] }] }, page).log).toBe(false)
    expect(chartProps({ ...loss, series: [{ name: 'a', values: [null] }] }, page).log).toBe(false)
  })

  it('marks what is not finite, and leaves a gap there', () => {
    const { series, marks, format } = chartProps(loss, page)
    expect(series[0]?.values).toEqual([100, null, Number.NaN, 1])
    expect(marks?.at(-1)).toEqual({ at: 3000, label: 'rank 0: NaN or infinite', tone: 'critical' })
    expect([format(Number.NaN), format(2)]).toEqual(['NaN or infinite', '2'])
  })

  it('of one GPU has the findings of that GPU and those of none', () => {
    const labels = (gpuIndex: number | null) => chartProps({ ...loss, series: [], gpuIndex }, page).marks?.map(({ at }) => at)
    expect([labels(0), labels(1), labels(null)]).toEqual([[3000], [2000, 3000], [2000, 3000]])
  })

  it('of memory has round steps of bytes, and a limit that presses nothing to the ground', () => {
    const memory = (top: number): ReportChart => ({
      title: 'Memory',
      unit: 'bytes',
      stacked: true,
      limit: { value: 80 * GIB, label: 'capacity' },
      times: [1, 2],
      series: [
        { name: 'a', values: [GIB, top * GIB] },
        { name: 'b', values: [0, top * GIB], color: 'pale' },
      ],
    })
    const { format, limits, least, at, series } = chartProps(memory(10), page)
    expect(format).toBe(formatBytes)
    expect([limits, least, at]).toEqual([[{ value: 80 * GIB, label: 'capacity 80.0 GiB', isFar: false }], 0, [1, 2]])
    expect(series.map(({ color }) => color)).toEqual([0, 'pale'])
    expect(chartProps(memory(7), page).limits?.[0]?.isFar).toBe(true)
  })

  it('says under the pointer the nearest figures, their range, and findings that are close', () => {
    const chart: ReportChart = {
      title: 'Busy',
      unit: 'ratio',
      series: [
        { name: 'GPU 0', values: [null, 0.5, null, null], min: [null, 0.25, null, null], max: [null, 0.75, null, null] },
        { name: 'GPU 1', values: [null, null, null, null] },
      ],
    }
    const lines = tooltipLines(chartProps(chart, page), 0, 2010)
    expect(lines.slice(1)).toEqual(['GPU 0  50%  (25% – 75%)', 'critical oom: full'])
    expect(tooltipLines(chartProps(loss, page), 2, 4000).slice(1)).toEqual(['rank 0  NaN or infinite'])
  })
})
