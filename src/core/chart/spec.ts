import type { Reading, Severity } from '../model.ts'
import type { Unit } from './units.ts'

export interface ChartSpec {
  /** Pixels; 320×120 for a mail up to 1200×600 for a report. */
  readonly width: number
  readonly height: number
  readonly title: string
  readonly unit: Unit
  /** Epoch milliseconds, or numbers such as training steps (see `xKind`), ascending. */
  readonly at: readonly number[]
  readonly series: readonly ChartSeries[]
  readonly xKind?: 'time' | 'number'
  /** Layers on top of each other, in order: the memory ledger. */
  readonly stacked?: boolean
  readonly limits?: readonly ChartLimit[]
  readonly marks?: readonly ChartMark[]
  readonly forecast?: ChartForecast
  /** Edges of the axes; from the data by default. */
  readonly from?: number
  readonly to?: number
  readonly lowest?: number
  readonly highest?: number
  /** IANA name; this machine's by default. */
  readonly timeZone?: string
}

export interface ChartSeries {
  readonly name: string
  readonly values: readonly Reading[]
  /** Extremes inside each step, drawn as a band. */
  readonly min?: readonly Reading[]
  readonly max?: readonly Reading[]
  readonly fill?: boolean
  readonly color?: string
}

/** A horizontal line: the capacity, the slowdown temperature. */
export interface ChartLimit {
  readonly value: number
  readonly label: string
}

/** A vertical line: a finding. */
export interface ChartMark {
  readonly at: number
  readonly label: string
  readonly severity?: Severity
}

export interface ChartForecast {
  readonly name: string
  readonly at: readonly number[]
  readonly values: readonly Reading[]
  readonly low: readonly Reading[]
  readonly high: readonly Reading[]
}
