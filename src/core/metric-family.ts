/** Published metrics as data, for scraping and for pushing. */
export type MetricType = 'gauge' | 'counter' | 'histogram'

export type Label = readonly [name: string, value: string]

export interface MetricSeries {
  /** Of the family, with a histogram's suffix. */
  readonly name: string
  readonly labels: readonly Label[]
  readonly value: number
  /** Unique per series. */
  readonly key: string
}

/** A family has at least one series. */
export interface MetricFamily {
  readonly name: string
  readonly type: MetricType
  readonly help: string
  readonly series: readonly MetricSeries[]
}
