/** The page that Prometheus reads, line by line. */
import type { Reading } from '../core/model.ts'
import { seriesPrefix } from './labels.ts'
import type { Family, Format, Metric } from './metric.ts'

/** The shortest text that reads back as the same number. */
export function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  if (value === Number.NEGATIVE_INFINITY) return '-Inf'
  return String(value)
}

/** Collects lines. A family's heading is printed with its first series, so a family without any leaves no trace. */
export class Page {
  readonly #format: Format
  #text = ''
  #heading = ''

  constructor(format: Format) {
    this.#format = format
  }

  begin(family: Family): void {
    this.#heading = family.heading[this.#format]
  }

  /** `prefix` is the line up to its value, as seriesPrefix() makes it. A null value is no line. */
  add(prefix: string, value: Reading): void {
    if (value === null) return
    this.#text += `${this.#heading}${prefix}${numberText(value)}\n`
    this.#heading = ''
  }

  write<Context>(metrics: readonly Metric<Context>[], context: Context): void {
    for (const metric of metrics) {
      this.begin(metric)
      metric.collect(context, (labelPairs, value, suffix = '') => this.add(seriesPrefix(metric.name + suffix, labelPairs), value))
    }
  }

  finish(): string {
    return this.#format === 'openmetrics' ? `${this.#text}# EOF\n` : this.#text
  }
}
