/** Two ways to publish the same series: as the page that a scraper reads, line by line, and as data. */
import type { MetricFamily, MetricSeries } from '../core/metric-family.ts'
import type { Reading } from '../core/model.ts'
import type { Labels } from './labels.ts'
import type { Family, Format, Metric } from './metric.ts'

export interface SeriesHead {
  readonly name: string
  readonly labels: Labels
  /** Its line on the page, up to the value. */
  readonly prefix: string
}

export function seriesHead(name: string, labels: Labels): SeriesHead {
  return { name, labels, prefix: labels.text === '' ? `${name} ` : `${name}{${labels.text}} ` }
}

/** Takes families one after the other. A family without any series leaves no trace, and a null value is no series. */
export interface Publication {
  begin(family: Family): void
  add(series: SeriesHead, value: Reading): void
}

export function publish<Context>(to: Publication, metrics: readonly Metric<Context>[], context: Context): void {
  for (const metric of metrics) {
    to.begin(metric)
    metric.collect(context, (labels, value, suffix = '') => {
      if (value !== null) to.add(seriesHead(metric.name + suffix, labels), value)
    })
  }
}

/** The shortest text that reads back as the same number. */
export function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  if (value === Number.NEGATIVE_INFINITY) return '-Inf'
  return String(value)
}

export class Page implements Publication {
  readonly #format: Format
  #text = ''
  #heading = ''

  constructor(format: Format) {
    this.#format = format
  }

  begin(family: Family): void {
    this.#heading = family.heading[this.#format]
  }

  add({ prefix }: SeriesHead, value: Reading): void {
    if (value === null) return
    this.#text += `${this.#heading}${prefix}${numberText(value)}\n`
    this.#heading = ''
  }

  finish(): string {
    return this.#format === 'openmetrics' ? `${this.#text}# EOF\n` : this.#text
  }
}

export class FamilyList implements Publication {
  readonly families: MetricFamily[] = []
  #next: Family | null = null
  #series: MetricSeries[] = []

  begin(family: Family): void {
    this.#next = family
  }

  add({ name, labels, prefix }: SeriesHead, value: Reading): void {
    if (value === null) return
    if (this.#next !== null) {
      this.#series = []
      this.families.push({ name: this.#next.name, type: this.#next.type, help: this.#next.help, series: this.#series })
      this.#next = null
    }
    // A page has no -0, and neither shall a receiver.
    this.#series.push({ name, labels: labels.list(), value: value === 0 ? 0 : value, key: prefix })
  }
}
