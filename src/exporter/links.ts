/** Each NVLink, and each link between GPU and CPU (C2C), of each GPU. */
import type { GpuInfo, GpuLink, Reading } from '../core/model.ts'
import { Labels, nativeLabels } from './labels.ts'
import { type GpuSubject, type Metric, metric } from './metric.ts'

type LinksOf = (info: GpuInfo) => readonly GpuLink[]

const ERRORS = {
  replay: 'replayCount',
  recovery: 'recoveryCount',
  crc: 'crcErrorCount',
  effective: 'effectiveErrorCount',
  symbol: 'symbolErrorCount',
} as const

function upMetric(name: string, help: string, linksOf: LinksOf): Metric<readonly GpuSubject[]> {
  return metric('gauge', name, '', help, ['link'], (gpus, emit) => {
    for (const { info, current } of gpus) {
      const links = current ? linksOf(info) : []
      if (links.length === 0) continue
      const own = nativeLabels(info)
      for (const { link, state } of links) emit(own.and(Labels.of({ link })), isUp(state))
    }
  })
}

function isUp(state: GpuLink['state']): Reading {
  return state === null ? null : state === 'inactive' ? 0 : 1
}

function errorMetric(name: string, help: string, linksOf: LinksOf): Metric<readonly GpuSubject[]> {
  return metric('counter', name, '', help, ['link', 'kind'], (gpus, emit) => {
    for (const { info, current } of gpus) {
      const links = current ? linksOf(info) : []
      if (links.length === 0) continue
      const own = nativeLabels(info)
      // A link without errors has no series: 18 links of 8 GPUs would have hundreds, all 0.
      for (const link of links)
        for (const [kind, figure] of Object.entries(ERRORS)) emit(own.and(Labels.of({ link: link.link, kind })), link[figure] || null)
    }
  })
}

export const LINK_METRICS: readonly Metric<readonly GpuSubject[]>[] = [
  upMetric('gpu_nvlink_up', '1 when this NVLink is up.', ({ nvlinks }) => nvlinks),
  errorMetric('gpu_nvlink_link_errors_total', 'Errors on this NVLink, by kind; absent while there are none.', ({ nvlinks }) => nvlinks),
  upMetric('gpu_c2c_link_up', '1 when this link between GPU and CPU is up.', ({ c2cLinks }) => c2cLinks),
  errorMetric(
    'gpu_c2c_link_errors_total',
    'Errors on this link between GPU and CPU, by kind; absent while there are none.',
    ({ c2cLinks }) => c2cLinks,
  ),
]
