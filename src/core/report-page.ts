/** Data of the script in a report: written by `report/` as JSON, read by `web/src/report`. */
import type { Reading, Severity } from './model.ts'

export type ChartUnit = 'bytes' | 'ratio' | 'celsius' | 'watts' | 'seconds' | 'number'

export interface ReportSeries {
  readonly name: string
  readonly values: readonly Reading[]
  /** Position in the palette; the next one by default. */
  readonly color?: number | 'pale'
  /** Extremes inside each point. */
  readonly min?: readonly Reading[]
  readonly max?: readonly Reading[]
  /** Points with NaN or infinite values. */
  readonly odd?: readonly number[]
}

export interface ReportChart {
  readonly title: string
  readonly unit: ChartUnit
  readonly stacked?: true
  /** Logarithmic axis if all is above zero. */
  readonly log?: true
  readonly limit?: { readonly value: number; readonly label: string }
  /** Its only GPU; null: index unknown. */
  readonly gpuIndex?: Reading
  /** Epoch ms; those of the page by default. */
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
  /** Equidistant. */
  readonly times: { readonly firstAt: number; readonly stepMs: number; readonly count: number }
  readonly marks: readonly ReportMark[]
  /** Drawn into the element with its position as `data-chart`. */
  readonly charts: readonly ReportChart[]
}
