/** What public dashboards and rules for other exporters read is published under their names, with their types, units and labels. */
import { describe, expect, it } from 'vitest'
import type { AgentState, GpuView } from '../src/core/kinds.ts'
import type { GpuProcess, GpuReadings, ProcessView, TrainingStep } from '../src/core/model.ts'
import { GPU_FIELDS, NO_FIGURES } from '../src/core/record.ts'
import { CATALOGUE } from '../src/exporter/catalogue.fixture.ts'
import { createExporter } from '../src/exporter/exporter.ts'
import { readExposition, type Series } from '../src/exporter/exposition.contract.ts'
import { FIXED_STATE, fixedTraining, fixedXids, NOW, naming } from '../src/exporter/fixed-state.contract.ts'
import type { Family } from '../src/exporter/metric.ts'
import { TrainingMetrics } from '../src/exporter/training-metrics.ts'
import { metricNames } from './promql.ts'
import { publicQueries } from './public-dashboards.ts'

type Unit = Family['unit']

/** What somebody else's dashboard or rule reads: name, type, unit, and the labels that it looks at besides those of the reader. */
type Wanted = readonly [name: string, type: 'gauge' | 'counter', unit: Unit, labels?: readonly string[]]

interface Reader {
  readonly who: string
  /** Labels that every one of its series is chosen or shown by. */
  readonly labels: readonly string[]
  readonly metrics: readonly Wanted[]
}

const REASONS = ['gpu_idle', 'sw_power_cap', 'sw_thermal_slowdown', 'hw_thermal_slowdown', 'hw_power_brake_slowdown', 'sync_boost']
const named = (names: readonly string[]): readonly Wanted[] =>
  names.flatMap((name) => ['event', 'throttle'].map((kind): Wanted => [`nvidia_smi_clocks_${kind}_reasons_${name}`, 'gauge', '']))
const IDENTITY = ['name', 'driver_version', 'cuda_version', 'vbios_version', 'compute_cap', 'pci_bus_id', 'index', 'serial']
const INSTANCE = ['gpu_instance_id']
const PROCESS = ['pid', 'process_name']

/** What 14574 and 25547 have in common. */
const BOTH: readonly Wanted[] = [
  ['nvidia_smi_gpu_info', 'gauge', '', IDENTITY],
  ['nvidia_smi_pstate', 'gauge', ''],
  ['nvidia_smi_utilization_gpu_ratio', 'gauge', 'ratio'],
  ['nvidia_smi_utilization_memory_ratio', 'gauge', 'ratio'],
  ['nvidia_smi_memory_used_bytes', 'gauge', 'bytes'],
  ['nvidia_smi_memory_total_bytes', 'gauge', 'bytes'],
  ['nvidia_smi_temperature_gpu', 'gauge', 'celsius'],
  ['nvidia_smi_power_draw_watts', 'gauge', 'watts'],
  ['nvidia_smi_enforced_power_limit_watts', 'gauge', 'watts'],
  ['nvidia_smi_power_limit_watts', 'gauge', 'watts'],
  ['nvidia_smi_power_default_limit_watts', 'gauge', 'watts'],
  ['nvidia_smi_fan_speed_ratio', 'gauge', 'ratio'],
  ['nvidia_smi_clocks_current_graphics_clock_hz', 'gauge', 'hertz'],
  ['nvidia_smi_clocks_current_memory_clock_hz', 'gauge', 'hertz'],
  ['nvidia_smi_ecc_errors_uncorrected_aggregate_total', 'gauge', ''],
  ['nvidia_smi_gpu_recovery_action', 'gauge', ''],
  ['nvidia_smi_energy_joules_total', 'counter', 'joules'],
  ['nvidia_smi_pcie_throughput_tx_bytes_per_second', 'gauge', 'bytes per second'],
  ['nvidia_smi_pcie_throughput_rx_bytes_per_second', 'gauge', 'bytes per second'],
  ['nvidia_smi_xid_errors_total', 'counter', '', ['xid']],
  ['nvidia_smi_xid_last_timestamp_seconds', 'gauge', 'seconds', ['xid']],
  ['nvidia_smi_mig_info', 'gauge', '', ['gpu_instance_id', 'profile']],
  ['nvidia_smi_mig_sm_activity_ratio', 'gauge', 'ratio', INSTANCE],
  ['nvidia_smi_mig_memory_used_bytes', 'gauge', 'bytes', INSTANCE],
]

const READERS: readonly Reader[] = [
  {
    who: 'dashboard 12239 (DCGM exporter)',
    labels: ['gpu', 'Hostname', 'UUID', 'modelName'],
    metrics: [
      ['DCGM_FI_DEV_GPU_TEMP', 'gauge', 'celsius'],
      ['DCGM_FI_DEV_POWER_USAGE', 'gauge', 'watts'],
      ['DCGM_FI_DEV_SM_CLOCK', 'gauge', 'MHz'],
      ['DCGM_FI_DEV_GPU_UTIL', 'gauge', 'percent'],
      ['DCGM_FI_DEV_FB_USED', 'gauge', 'MiB', ['GPU_I_ID', 'GPU_I_PROFILE']],
      ['DCGM_FI_DEV_FB_FREE', 'gauge', 'MiB', ['GPU_I_ID', 'GPU_I_PROFILE']],
      ['DCGM_FI_PROF_GR_ENGINE_ACTIVE', 'gauge', 'ratio', ['GPU_I_ID', 'GPU_I_PROFILE']],
      ['DCGM_FI_PROF_PIPE_TENSOR_ACTIVE', 'gauge', 'ratio', ['GPU_I_ID', 'GPU_I_PROFILE']],
    ],
  },
  {
    who: 'public rules for the DCGM exporter',
    labels: ['gpu', 'UUID', 'pci_bus_id', 'device', 'modelName', 'Hostname', 'DCGM_FI_DRIVER_VERSION'],
    metrics: [
      ['DCGM_FI_DEV_FB_FREE', 'gauge', 'MiB'],
      ['DCGM_FI_DEV_FB_TOTAL', 'gauge', 'MiB'],
      ['DCGM_FI_DEV_FB_RESERVED', 'gauge', 'MiB'],
      ['DCGM_FI_DEV_MEM_CLOCK', 'gauge', 'MHz'],
      ['DCGM_FI_DEV_MEMORY_TEMP', 'gauge', 'celsius'],
      ['DCGM_FI_DEV_MEM_COPY_UTIL', 'gauge', 'percent'],
      ['DCGM_FI_DEV_XID_ERRORS', 'gauge', ''],
      ['DCGM_FI_DEV_ECC_SBE_VOL_TOTAL', 'counter', ''],
      ['DCGM_FI_DEV_ECC_DBE_VOL_TOTAL', 'counter', ''],
      ['DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS', 'counter', ''],
      ['DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS', 'counter', ''],
      ['DCGM_FI_DEV_ROW_REMAP_FAILURE', 'gauge', ''],
      ['DCGM_FI_DEV_PCIE_REPLAY_COUNTER', 'counter', ''],
      ['DCGM_FI_DEV_CLOCK_THROTTLE_REASONS', 'gauge', 'bit mask'],
      ['DCGM_FI_DEV_THERMAL_VIOLATION', 'counter', 'ns'],
      ['DCGM_FI_DEV_POWER_VIOLATION', 'counter', 'ns'],
      ['DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION', 'counter', 'mJ'],
    ],
  },
  {
    who: 'dashboard 14574 (nvidia_gpu_exporter, one GPU)',
    labels: ['uuid'],
    metrics: [
      ...BOTH,
      ...named([...REASONS, 'applications_clocks_setting']),
      ['nvidia_smi_index', 'gauge', ''],
      ['nvidia_smi_compute_mode', 'gauge', ''],
      ['nvidia_smi_clocks_current_sm_clock_hz', 'gauge', 'hertz'],
      ['nvidia_smi_clocks_current_video_clock_hz', 'gauge', 'hertz'],
      ['nvidia_smi_clocks_max_graphics_clock_hz', 'gauge', 'hertz'],
      ['nvidia_smi_clocks_max_memory_clock_hz', 'gauge', 'hertz'],
      ['nvidia_smi_compute_app_info', 'gauge', '', PROCESS],
      ['nvidia_smi_compute_app_used_memory_bytes', 'gauge', 'bytes', PROCESS],
      ['nvidia_smi_mig_tensor_activity_ratio', 'gauge', 'ratio', INSTANCE],
      ['nvidia_smi_fabric_state', 'gauge', ''],
    ],
  },
  {
    who: 'dashboard 25547 (nvidia_gpu_exporter, all GPUs of a node)',
    labels: ['uuid'],
    metrics: [...BOTH, ...named(REASONS.slice(1, -1))],
  },
  {
    who: 'rules of nvidia_gpu_exporter, and what its dashboards ask of the exporter itself',
    labels: [],
    metrics: [
      ['nvidia_smi_last_collect_success', 'gauge', ''],
      ['nvidia_smi_last_collect_success_timestamp_seconds', 'gauge', 'seconds'],
      ['nvidia_smi_last_collect_duration_seconds', 'gauge', 'seconds'],
      ['nvidia_smi_failed_scrapes_total', 'counter', ''],
      ['nvidia_smi_compute_apps_last_collect_success', 'gauge', ''],
    ],
  },
]

const families = new Map(CATALOGUE.flatMap(({ metrics }) => metrics.map((family) => [family.name, family] as const)))
const exporter = createExporter({
  naming,
  state: FIXED_STATE,
  sets: ['native', 'dcgm', 'nvidia_smi'],
  maxProcesses: 64,
  training: fixedTraining(),
  xids: fixedXids(),
})
const page = readExposition(exporter.render())
const seriesOf = (name: string): readonly Series[] => page.series.filter((one) => one.name === name)

describe.each(READERS)('$who', ({ metrics, labels }) => {
  it('finds every metric, with its type and unit', () => {
    const wrong = metrics.flatMap(([name, type, unit]) => {
      const family = families.get(name)
      if (family === undefined) return [`${name} is missing`]
      const isSame = family.type === type && family.unit === unit
      return isSame ? [] : [`${name} is a ${family.type} in ${family.unit}, expected a ${type} in ${unit}`]
    })
    expect(wrong).toEqual([])
  })

  it('finds a series of each, with all its labels', () => {
    const wrong = metrics.flatMap(([name, , , own = []]) => {
      const wanted = [...labels, ...own]
      const isThere = seriesOf(name).some((one) => wanted.every((label) => label in one.labels))
      return isThere ? [] : [`no series of ${name} has ${wanted.join(', ')}`]
    })
    expect(wrong).toEqual([])
  })
})

describe('the questions of public dashboards', () => {
  const queries = publicQueries({ job: 'j', instance: 'i', card: 'c', divided: 'd' })

  it.each([
    ['12239', 0],
    ['14574', 2],
    ['25547', 3],
  ] as const)('of %s are about the metrics in its table, and about all of them', (dashboard, reader) => {
    const asked = queries.filter((one) => one.dashboard === dashboard).flatMap(({ expr }) => metricNames(expr))
    const table = READERS[reader]?.metrics.map(([name]) => name) ?? []
    expect(asked.filter((name) => !table.includes(name) && name !== 'nvidia_smi_compute_apps_last_collect_success')).toEqual([])
    expect(table.filter((name) => !asked.includes(name))).toEqual([])
  })

  it('are many', () => {
    expect(queries.length).toBeGreaterThan(90)
  })
})

/** What no NVIDIA card reports. */
const OTHER_VENDORS: Partial<GpuReadings> = Object.fromEntries(
  GPU_FIELDS.filter((field) => /^(?:xcd|xgmi|junction|fanRpm)/.test(field)).map((field) => [field, null]),
)

describe('size of the page', () => {
  const GPUS = 8
  const PROCESSES = 64
  const NVLINKS = 18
  const RUNS = 4

  /** One card of the fixed state, eight times, as full of readings as it is. */
  function bigState(): AgentState {
    const model = FIXED_STATE.gpus().find(({ info, live }) => live && info.vendor === 'nvidia' && info.mig === null)
    const sample = model?.sample
    if (model === undefined || !sample) throw new Error('the fixed state has no whole NVIDIA card with readings')
    const ids = Array.from({ length: GPUS }, (_, gpu) => `GPU-${gpu}`)
    const [link] = model.info.nvlinks
    const noErrors = { replayCount: 0, recoveryCount: 0, crcErrorCount: 0, effectiveErrorCount: 0, symbolErrorCount: 0 }
    const healthyLinks = link === undefined ? [] : Array.from({ length: NVLINKS }, (_, number) => ({ ...link, ...noErrors, link: number }))
    const gpus: GpuView[] = ids.map((id, index) => ({
      ...model,
      info: { ...model.info, id, index, label: String(index), pciBusId: `00000000:0${index}:00.0`, minor: index, nvlinks: healthyLinks },
      sample: { ...sample, ...OTHER_VENDORS, gpu: id },
    }))
    const process: GpuProcess = {
      pid: 0,
      type: 'compute',
      memoryUsedBytes: 1,
      smRatio: 0.1,
      memoryRatio: 0.1,
      encoderRatio: 0,
      decoderRatio: 0,
    }
    const processes: ProcessView[] = Array.from({ length: PROCESSES }, (_, at) => ({
      ...process,
      pid: 1000 + at,
      gpu: ids[at % GPUS] ?? '',
      info: null,
    }))
    return { ...FIXED_STATE, gpus: () => gpus, processes: () => processes }
  }

  function trainings(): TrainingMetrics {
    const training = new TrainingMetrics(() => NOW)
    const step: TrainingStep = {
      kind: 'step',
      at: NOW,
      run: '',
      rank: 0,
      step: 1,
      ...NO_FIGURES,
      epoch: 1,
      loss: 1,
      learningRate: 1,
      gradientNorm: 1,
      throughputPerSecond: 1,
      stepSeconds: 1,
      memoryAllocatedBytes: 1,
      memoryReservedBytes: 1,
      memoryActiveBytes: 1,
      memoryInactiveSplitBytes: 1,
      memoryPeakAllocatedBytes: 1,
      allocRetries: 1,
      oomCount: 1,
      phaseSeconds: { data: 1, forward: 1, backward: 1, optimizer: 1 },
      custom: null,
    }
    training.accept(Array.from({ length: RUNS }, (_, run) => ({ ...step, run: `run-${run}` })))
    return training
  }

  /** Every look is a second after the one before, so that no page is one that was kept. */
  const later = () => {
    let nowMs = 0
    return () => (nowMs += 1000)
  }

  const render = (sets: ('native' | 'dcgm' | 'nvidia_smi')[]) =>
    createExporter({
      naming,
      state: bigState(),
      sets,
      maxProcesses: PROCESSES,
      training: trainings(),
      xids: fixedXids(),
      monotonicMs: later(),
    })

  it('stays under 2,600 series for 8 GPUs with 18 NVLinks each, 64 processes and 4 runs, with all three sets', () => {
    const count = (sets: ('native' | 'dcgm' | 'nvidia_smi')[]) => readExposition(render(sets).render()).series.length
    const counts = {
      native: count(['native']),
      dcgm: count(['dcgm']),
      nvidia_smi: count(['nvidia_smi']),
      all: count(['native', 'dcgm', 'nvidia_smi']),
    }
    console.info(`series for ${GPUS} GPUs, ${PROCESSES} processes, ${RUNS} runs: ${JSON.stringify(counts)}`)
    expect(counts.native).toBeGreaterThan(500)
    expect(counts.all).toBeLessThan(2600)
  })

  it('is made in under 10 ms, all three sets', () => {
    const big = render(['native', 'dcgm', 'nvidia_smi'])
    const times = Array.from({ length: 30 }, () => {
      const before = performance.now()
      big.render()
      return performance.now() - before
    }).sort((a, b) => a - b)
    // The quickest of many: a busy machine makes any single one slow.
    console.info(`a page of all three sets: ${times[0]?.toFixed(2)} ms at best, ${times[15]?.toFixed(2)} ms in the middle`)
    expect(times[0]).toBeLessThan(10)
  })
})
