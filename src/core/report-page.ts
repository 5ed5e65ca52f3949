/** What the script inside a report draws: written by `report/` as JSON, read by `web/src/report`. */
import type { Reading, Severity } from './model.ts'

export type ChartUnit = 'bytes' | 'ratio' | 'celsius' | 'watts' | 'seconds' | 'number'

export interface ReportSeries {
  readonly name: string
  readonly values: readonly Reading[]
  /** Position in the palette; without it the next one. `pale`: for what belongs to nobody. */
  readonly color?: number | 'pale'
  /** Extremes inside each point; absent where a point is one value. */
  readonly min?: readonly Reading[]
  readonly max?: readonly Reading[]
  /** Points with NaN or infinite values. */
  readonly odd?: readonly number[]
}

export interface ReportChart {
  readonly title: string
  readonly unit: ChartUnit
  readonly stacked?: true
  /** Logarithmic axis where all is above zero. */
  readonly log?: true
  readonly limit?: { readonly value: number; readonly label: string }
  /** The only GPU that it is of; null: not known by number. */
  readonly gpuIndex?: Reading
  /** Moments of its own, epoch ms; without them those of the page. */
  readonly times?: readonly number[]
  readonly series: readonly ReportSeries[]
}

/** A finding on the time axis. */
export interface ReportMark {
  readonly at: number
  readonly severity: Severity
  readonly detector: string
  readonly message: string
  readonly gpuIndex: Reading
}

export interface ReportPageData {
  readonly from: number
  readonly to: number
  /** The moments of its charts, at equal distances. */
  readonly times: { readonly firstAt: number; readonly stepMs: number; readonly count: number }
  readonly marks: readonly ReportMark[]
  /** Each is drawn where the page has an element with its position as `data-chart`. */
  readonly charts: readonly ReportChart[]
}
