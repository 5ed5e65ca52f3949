/** What is published of everything that is known, as data: a page for scrapers is made of it, and what is pushed. */

export type MetricType = 'gauge' | 'counter' | 'histogram'

export type Label = readonly [name: string, value: string]

export interface MetricSeries {
  /** The family's, or with what a histogram adds to it. */
  readonly name: string
  readonly labels: readonly Label[]
  readonly value: number
  /** The same for the same series, and no other. */
  readonly key: string
}

/** A family has at least one series. */
export interface MetricFamily {
  readonly name: string
  readonly type: MetricType
  readonly help: string
  readonly series: readonly MetricSeries[]
}
