/** /metrics: from what the agent knows to the text that Prometheus reads, and to the same as data. */
import type { AgentState, GpuView } from '../core/kinds.ts'
import type { MetricFamily } from '../core/metric-family.ts'
import type { GpuInfo, GpuReadings } from '../core/model.ts'
import { NO_READINGS } from '../core/record.ts'
import type { RunTime } from '../core/run-time.ts'
import type { MetricScope } from '../core/vendor.ts'
import { ALERT_METRICS, type AlertFigures } from './alerts.ts'
import { DCGM_METRICS, dcgmLabels, isShared } from './dcgm.ts'
import { EVENT_METRICS } from './events.ts'
import { GpuTable } from './gpu-table.ts'
import { HOST_METRICS } from './host.ts'
import { nativeLabels } from './labels.ts'
import { LINK_METRICS } from './links.ts'
import type { Format, GpuSubject } from './metric.ts'
import { NATIVE_METRICS } from './native.ts'
import { NVIDIA_SMI_METRICS, nvidiaSmiLabels } from './nvidia-smi.ts'
import { NVIDIA_SMI_COLLECTION } from './nvidia-smi-collection.ts'
import { NVIDIA_SMI_MIG } from './nvidia-smi-mig.ts'
import { computeApps, NVIDIA_SMI_PROCESSES } from './nvidia-smi-processes.ts'
import { PROCESS_METRICS, processRows } from './processes.ts'
import { FamilyList, Page, type Publication, publish } from './render.ts'
import { SELF_METRICS } from './self.ts'
import { RUN_METRICS, TRAINING_METRICS } from './training.ts'
import { TrainingMetrics } from './training-metrics.ts'
import { USAGE_METRICS, type UserFigures } from './usage.ts'
import { XidCounts } from './xid-counts.ts'

export type MetricSet = 'native' | 'dcgm' | 'nvidia_smi'

export const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

export interface ExporterOptions {
  readonly state: AgentState
  readonly sets: readonly MetricSet[]
  readonly naming: MetricNaming
  readonly maxProcesses: number
  readonly training?: TrainingMetrics
  readonly xids?: XidCounts
  /** What the wall time of a run went to; without it nobody says. */
  readonly timeOf?: (run: string) => RunTime | null
  /** How the alerts stand; without it there are none. */
  readonly alerts?: () => AlertFigures
  /** What each user used; without it nothing is counted. */
  readonly usage?: () => readonly UserFigures[]
  /** Runs that each detector has no room for; without it there are no detectors. */
  readonly unfollowedRuns?: () => Readonly<Record<string, number>>
  /** Milliseconds of a clock that never goes back; a test may steer it. */
  readonly monotonicMs?: () => number
}

/** What others' names mean for the cards of a vendor. */
export interface MetricNaming {
  /** null: its cards are not in this set. */
  scopeOf(vendor: string, set: MetricSet): MetricScope | null
  /** The name of a device file; null: unknown. */
  nodeOf(vendor: string, minor: number): string | null
}

/** Half of the shortest interval: a flood of scrapes is answered with one page, and no page is older than a sample. */
const REUSE_MS = 50

export interface Exporter {
  render(format?: Format): string
  /** What render() would write now, for those who want no text. */
  families(): readonly MetricFamily[]
}

/** No values of a GPU whose sample is old, and none of one that has fallen off the bus. */
function subjectsOf(state: AgentState): readonly GpuSubject[] {
  const xids = state.lastXid()
  return state.gpus().map((view) => {
    const readings = currentReadings(view)
    return { info: view.info, view, current: readings !== null, readings: readings ?? NO_READINGS, xid: xids.get(view.info.id) ?? null }
  })
}

function currentReadings({ live, sample }: GpuView): GpuReadings | null {
  return live && sample !== null && sample.state !== 'lost' ? sample : null
}

export function createExporter(options: ExporterOptions): Exporter {
  const { state, naming, maxProcesses, alerts, usage, monotonicMs = () => performance.now() } = options
  const { training = new TrainingMetrics(), xids = new XidCounts() } = options
  const sets = new Set(options.sets)
  const native = new GpuTable(NATIVE_METRICS, nativeLabels)
  const inScope = (name: string, info: GpuInfo) => naming.scopeOf(info.vendor, 'dcgm') === 'all' || isShared(name, info)
  const dcgm = new GpuTable(DCGM_METRICS, dcgmLabels(state.hostname, naming.nodeOf), inScope)
  const nvidiaSmi = new GpuTable(NVIDIA_SMI_METRICS, nvidiaSmiLabels)

  const publishAll = (to: Publication, startedMs: number) => {
    const all = subjectsOf(state)
    const inSet = (set: MetricSet) => all.filter(({ info }) => naming.scopeOf(info.vendor, set) !== null)
    if (sets.has('native')) {
      native.write(to, all)
      publish(to, LINK_METRICS, all)
      publish(to, PROCESS_METRICS, processRows(state.processes(), all, maxProcesses))
      publish(to, EVENT_METRICS, { state, gpus: all })
      publish(to, HOST_METRICS, state)
    }
    if (sets.has('dcgm')) dcgm.write(to, inSet('dcgm'))
    if (sets.has('nvidia_smi')) {
      const gpus = inSet('nvidia_smi')
      nvidiaSmi.write(to, gpus)
      publish(to, NVIDIA_SMI_MIG, gpus)
      publish(to, NVIDIA_SMI_PROCESSES, computeApps(state.processes(), gpus, maxProcesses))
      publish(to, NVIDIA_SMI_COLLECTION, { state, gpus, xids })
    }
    publish(to, TRAINING_METRICS, training)
    publish(to, RUN_METRICS, { training, gpus: all.map(({ info }) => info), timeOf: options.timeOf ?? (() => null) })
    if (usage) publish(to, USAGE_METRICS, usage())
    if (alerts) publish(to, ALERT_METRICS, alerts())
    publish(to, SELF_METRICS, {
      state,
      trainingEvicted: training.evicted,
      unfollowedRuns: options.unfollowedRuns?.() ?? {},
      elapsedMs: () => monotonicMs() - startedMs,
    })
  }

  const last = new Map<Format, { readonly text: string; readonly atMs: number }>()
  return {
    render(format = 'text') {
      const nowMs = monotonicMs()
      const before = last.get(format)
      if (before && nowMs >= before.atMs && nowMs - before.atMs < REUSE_MS) return before.text
      const page = new Page(format)
      publishAll(page, nowMs)
      const text = page.finish()
      last.set(format, { text, atMs: nowMs })
      return text
    },
    families() {
      const list = new FamilyList()
      publishAll(list, monotonicMs())
      return list.families
    },
  }
}
