/** A set of metrics that every GPU has: all text but the values is made once, when the devices change. */
import type { GpuInfo } from '../core/model.ts'
import { joinPairs, seriesPrefix } from './labels.ts'
import type { GpuMetric, GpuSubject } from './metric.ts'
import type { Page } from './render.ts'

/** The label pairs of a GPU, or null when it is not in this set. */
export type PairsOf = (info: GpuInfo, all: readonly GpuInfo[]) => string | null

interface Row {
  readonly prefix: string
  /** Position among the subjects. */
  readonly gpu: number
  readonly value: (gpu: GpuSubject) => number | null
}

export class GpuTable {
  readonly #metrics: readonly GpuMetric[]
  readonly #pairsOf: PairsOf
  #infos: readonly GpuInfo[] = []
  #rows: readonly (readonly Row[])[] = []

  constructor(metrics: readonly GpuMetric[], pairsOf: PairsOf) {
    this.#metrics = metrics
    this.#pairsOf = pairsOf
  }

  write(page: Page, subjects: readonly GpuSubject[]): void {
    if (this.#changed(subjects)) this.#prepare(subjects.map((subject) => subject.info))
    for (let at = 0; at < this.#metrics.length; at++) {
      const metric = this.#metrics[at]
      const rows = this.#rows[at]
      if (metric === undefined || rows === undefined) continue
      page.begin(metric)
      for (const row of rows) {
        const subject = subjects[row.gpu]
        if (subject !== undefined) page.add(row.prefix, row.value(subject))
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
    const shown: { readonly info: GpuInfo; readonly gpu: number; readonly own: string }[] = []
    for (const [gpu, info] of infos.entries()) {
      const own = this.#pairsOf(info, infos)
      if (own === null || seen.has(own)) continue
      seen.add(own)
      shown.push({ info, gpu, own })
    }
    this.#rows = this.#metrics.map((metric) =>
      shown.flatMap(({ info, gpu, own }) =>
        metric.series.map(({ pairs, value }) => ({ prefix: seriesPrefix(metric.name, joinPairs(own, pairs?.(info) ?? '')), gpu, value })),
      ),
    )
    this.#infos = infos
  }
}
