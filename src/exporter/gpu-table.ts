/** A set of metrics that every GPU has: all text but the values is made once, when the devices change. */
import type { GpuInfo } from '../core/model.ts'
import { type Labels, NO_LABELS } from './labels.ts'
import type { GpuMetric, GpuSubject } from './metric.ts'
import { type Publication, type SeriesHead, seriesHead } from './render.ts'

/** The labels of a GPU, or null when it is not in this set. */
export type LabelsOf = (info: GpuInfo, all: readonly GpuInfo[]) => Labels | null

interface Row {
  readonly head: SeriesHead
  readonly gpu: number
  readonly value: (gpu: GpuSubject) => number | null
}

export class GpuTable {
  readonly #metrics: readonly GpuMetric[]
  readonly #labelsOf: LabelsOf
  readonly #has: (metric: string, info: GpuInfo) => boolean
  #infos: readonly GpuInfo[] = []
  #rows: readonly (readonly Row[])[] = []

  /** `has`: whether a GPU has a metric, by its name; by default every GPU has all. */
  constructor(metrics: readonly GpuMetric[], labelsOf: LabelsOf, has: (metric: string, info: GpuInfo) => boolean = () => true) {
    this.#metrics = metrics
    this.#labelsOf = labelsOf
    this.#has = has
  }

  write(to: Publication, subjects: readonly GpuSubject[]): void {
    if (this.#changed(subjects)) this.#prepare(subjects.map((subject) => subject.info))
    for (let at = 0; at < this.#metrics.length; at++) {
      const metric = this.#metrics[at]
      const rows = this.#rows[at]
      if (metric === undefined || rows === undefined) continue
      to.begin(metric)
      for (const row of rows) {
        const subject = subjects[row.gpu]
        if (subject !== undefined) to.add(row.head, row.value(subject))
      }
    }
  }

  #changed(subjects: readonly GpuSubject[]): boolean {
    if (subjects.length !== this.#infos.length) return true
    for (let at = 0; at < subjects.length; at++) if (subjects[at]?.info !== this.#infos[at]) return true
    return false
  }

  /** Two GPUs with the same labels would be one series twice, which fails a whole scrape: the first one is kept. */
  #prepare(infos: readonly GpuInfo[]): void {
    const seen = new Set<string>()
    const shown: { readonly info: GpuInfo; readonly gpu: number; readonly own: Labels }[] = []
    for (const [gpu, info] of infos.entries()) {
      const own = this.#labelsOf(info, infos)
      if (own === null || seen.has(own.text)) continue
      seen.add(own.text)
      shown.push({ info, gpu, own })
    }
    this.#rows = this.#metrics.map((metric) =>
      shown
        .filter(({ info }) => this.#has(metric.name, info))
        .flatMap(({ info, gpu, own }) =>
          metric.series.map(({ labels, value }) => ({ head: seriesHead(metric.name, own.and(labels?.(info) ?? NO_LABELS)), gpu, value })),
        ),
    )
    this.#infos = infos
  }
}
