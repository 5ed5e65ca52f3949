import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AgentState, GpuView } from '../core/kinds.ts'
import type { GpuField, GpuInfo, GpuReadings } from '../core/model.ts'
import { GPU_FIELDS } from '../core/record.ts'
import { CONTENT_TYPES, createExporter, type MetricSet } from './exporter.ts'
import { readExposition, type Series } from './exposition.contract.ts'
import {
  agentState,
  FIXED_STATE,
  FULL_READINGS,
  finding,
  gpuInfo,
  gpuView,
  NOW,
  naming,
  processInfo,
  processView,
  sourceHealth,
  trainingStep,
} from './fixed-state.contract.ts'
import { TrainingMetrics } from './training-metrics.ts'

const ALL: readonly MetricSet[] = ['native', 'dcgm', 'nvidia_smi']

function scrape(state: AgentState, sets: readonly MetricSet[] = ALL): readonly Series[] {
  return readExposition(createExporter({ naming, state, sets, maxProcesses: 64 }).render()).series
}

const named = (series: readonly Series[], name: string) => series.filter((one) => one.name === name)
const value = (series: readonly Series[], name: string) => named(series, name)[0]?.value ?? null

describe('what is shown', () => {
  it('is never empty: before the first sample gpuwarden reports itself', () => {
    const series = scrape(agentState({ health: () => [sourceHealth({ state: 'starting', lastSampleAt: null, samples: 0 })] }))
    expect(value(series, 'gpuwarden_up')).toBe(0)
    expect(named(series, 'gpuwarden_sample_age_seconds')).toEqual([])
    for (const name of ['gpuwarden_build_info', 'gpuwarden_process_cpu_seconds_total', 'gpuwarden_process_resident_memory_bytes'])
      expect(named(series, name), name).not.toEqual([])
    expect(scrape(agentState(), ['native']).length).toBeGreaterThan(5)
  })

  it('has a native metric for every reading, and none for a null', () => {
    const info = gpuInfo({})
    const readings = (only: Partial<GpuReadings>) =>
      scrape(agentState({ gpus: () => [gpuView(info, { ...only, processes: null })] }), ['native']).filter(({ name }) =>
        name.startsWith('gpu_'),
      )
    expect(readings({}).map(({ name }) => name)).toEqual(['gpu_info'])
    for (const field of GPU_FIELDS) {
      const names = readings({ [field]: FULL_READINGS[field] }).map(({ name }) => name)
      expect(new Set(names).size, field).toBe(2)
    }
  })

  it.each([
    ['simulated', {}],
    ['replay', { replay: 'true' }],
    ['live', {}],
  ] as const)('marks the figures of the host beside %s GPUs', (provenance, labels) => {
    const series = scrape(agentState({ host: FIXED_STATE.host, health: () => [sourceHealth({ provenance })] }), ['native'])
    const host = series.filter(({ name }) => name.startsWith('host_'))
    expect(host.length).toBeGreaterThan(5)
    for (const one of host) expect(one.labels).toEqual(labels)
  })

  it('shows a real 0 as 0', () => {
    const series = scrape(agentState({ gpus: () => [gpuView(gpuInfo({}), { utilizationRatio: 0 })] }), ALL)
    expect(value(series, 'gpu_utilization_percent')).toBe(0)
    expect(value(series, 'DCGM_FI_DEV_GPU_UTIL')).toBe(0)
    expect(value(series, 'nvidia_smi_utilization_gpu_ratio')).toBe(0)
  })

  const identity = [
    'gpu_info',
    'gpuwarden_gpu_sample_age_seconds',
    'gpuwarden_gpu_state',
    'gpuwarden_gpu_up',
    'nvidia_smi_gpu_info',
    'nvidia_smi_index',
  ]
  const stateOf = (series: readonly Series[]) => named(series, 'gpuwarden_gpu_state').find((one) => one.value === 1)?.labels.state
  const info = gpuInfo({ powerLimitWatts: 700 })
  const process = processView({ gpu: info.id, pid: 7, memoryUsedBytes: 1 })
  const scrapeGpu = (view: GpuView) =>
    scrape(agentState({ gpus: () => [view], processes: () => [process], findings: () => [oom] })).filter(
      (one) => one.labels.uuid ?? one.labels.UUID,
    )
  const oom = finding({ subject: { ...finding({}).subject, gpu: info.id }, predictedAt: NOW + 1000 })

  it.each([
    ['stale', gpuView(info, FULL_READINGS, { live: false, ageMs: 90_000 })],
    ['lost', gpuView(info, { ...FULL_READINGS, state: 'lost' })],
    ['lost', gpuView(info, { ...FULL_READINGS, state: 'lost' }, { live: false })],
  ] as const)('of a GPU that is %s is only who it is, that it is not up, and its age', (state, view) => {
    const series = scrapeGpu(view)
    expect([...new Set(series.map(({ name }) => name))].toSorted()).toEqual(identity)
    expect(value(series, 'gpuwarden_gpu_up')).toBe(0)
    expect(stateOf(series)).toBe(state)
  })

  it('of a live GPU has its readings, limits, processes and predictions', () => {
    const series = scrapeGpu(gpuView(info, FULL_READINGS))
    expect(stateOf(series)).toBe('ok')
    for (const name of ['gpuwarden_gpu_up', 'gpu_power_limit_watts', 'gpu_process_memory_bytes', 'gpu_predicted_oom_seconds'])
      expect(value(series, name), name).toBeGreaterThan(0)
  })

  it('has the power limit in force, and the limit as set where that is all that is known', () => {
    const limit = (facts: Partial<GpuInfo>) =>
      value(scrapeGpu(gpuView(gpuInfo({ mig: null, ...facts }), FULL_READINGS)), 'gpu_power_limit_watts')
    expect(limit({ powerLimitWatts: 700, powerLimitEnforcedWatts: 650 })).toBe(650)
    expect(limit({ powerLimitWatts: 700, powerLimitEnforcedWatts: null })).toBe(700)
    expect(limit({ powerLimitWatts: null, powerLimitEnforcedWatts: null })).toBe(null)
  })

  it('marks simulated and replayed GPUs, and only those', () => {
    const marked = (provenance: 'live' | 'simulated' | 'replay') => {
      const series = scrapeGpu(gpuView(gpuInfo({ provenance, mig: null }), FULL_READINGS))
      return new Set(series.map(({ labels }) => `${labels.simulated} ${labels.replay}`))
    }
    expect(marked('live')).toEqual(new Set(['undefined undefined']))
    expect(marked('simulated')).toEqual(new Set(['true undefined']))
    expect(marked('replay')).toEqual(new Set(['undefined true']))
    expect(value(scrape(agentState({ health: () => [sourceHealth({ provenance: 'simulated' })] })), 'gpuwarden_simulated')).toBe(1)
  })

  it('follows a change of devices', () => {
    let gpus = [gpuView(gpuInfo({}), FULL_READINGS)]
    let nowMs = 0
    const exporter = createExporter({
      naming,
      state: agentState({ gpus: () => gpus }),
      sets: ['native'],
      maxProcesses: 64,
      monotonicMs: () => nowMs,
    })
    exporter.render()
    nowMs += 100
    gpus = [gpuView(gpuInfo({ id: 'GPU-other', label: '5' }), { ...FULL_READINGS, temperatureCelsius: 12 })]
    const [series] = named(readExposition(exporter.render()).series, 'gpu_temperature_celsius')
    expect(series).toMatchObject({ labels: { gpu: '5', uuid: 'GPU-other' }, value: 12 })
  })

  it('answers a flood of scrapes with one page, in each format, for less than a sample lasts', () => {
    let reads = 0
    let nowMs = 0
    const gpus = () => {
      reads++
      return []
    }
    const exporter = createExporter({ naming, state: agentState({ gpus }), sets: ['native'], maxProcesses: 64, monotonicMs: () => nowMs })
    const first = exporter.render()
    const once = reads
    nowMs = 40
    expect(exporter.render()).toBe(first)
    expect(reads).toBe(once)
    expect(exporter.render('openmetrics')).toMatch(/# EOF\n$/)
    nowMs = 60
    exporter.render()
    expect(reads).toBe(3 * once)
  })

  it('hides the host when its sample is old', () => {
    const host = FIXED_STATE.host()
    if (host === null) throw new Error('the fixed state has a host')
    expect(named(scrape(agentState({ host: () => ({ ...host, live: false }) })), 'host_cpu_ratio')).toEqual([])
    expect(value(scrape(agentState({ host: () => host })), 'host_cpu_ratio')).toBe(0.125)
  })

  it('publishes only the sets that were asked for', () => {
    const prefixes = (sets: readonly MetricSet[]) =>
      ['gpu_', 'host_', 'DCGM_', 'nvidia_smi_', 'gpuwarden_build'].filter((prefix) =>
        scrape(FIXED_STATE, sets).some(({ name }) => name.startsWith(prefix)),
      )
    expect(prefixes(['native'])).toEqual(['gpu_', 'host_', 'gpuwarden_build'])
    expect(prefixes(['dcgm'])).toEqual(['DCGM_', 'gpuwarden_build'])
    expect(prefixes(['nvidia_smi'])).toEqual(['nvidia_smi_', 'gpuwarden_build'])
  })
})

describe('what others expect', () => {
  const series = scrape(FIXED_STATE)

  it.each(
    ['GPU_TEMP', 'POWER_USAGE', 'SM_CLOCK', 'GPU_UTIL', 'FB_USED']
      .map((name) => `DCGM_FI_DEV_${name}`)
      .concat('DCGM_FI_PROF_PIPE_TENSOR_ACTIVE'),
  )('dashboard 12239 finds %s with the labels of DCGM', (name) => {
    const [first] = named(series, name)
    expect(Object.keys(first?.labels ?? {})).toEqual([
      'gpu',
      'UUID',
      'pci_bus_id',
      'device',
      'modelName',
      'Hostname',
      'DCGM_FI_DRIVER_VERSION',
    ])
    expect(first?.labels).toMatchObject({ gpu: '0', pci_bus_id: '00000000:8D:00.0', device: 'nvidia0', Hostname: 'node-7' })
    expect(first?.labels.UUID).toMatch(/^GPU-/)
  })

  it('DCGM has its own units', () => {
    expect(value(series, 'DCGM_FI_DEV_SM_CLOCK')).toBe(1740)
    expect(value(series, 'DCGM_FI_DEV_FB_USED')).toBe(61_440)
    expect(value(series, 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION')).toBe(98_765_432)
    expect(value(series, 'DCGM_FI_DEV_POWER_VIOLATION')).toBe(12_500_000_000)
    expect(value(series, 'DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL')).toBe(777)
    expect(value(series, 'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE')).toBe(0.44)
  })

  it('a MIG instance has the identity of its parent and labels of its own', () => {
    const [card, instance] = named(series, 'DCGM_FI_DEV_FB_USED')
    expect(instance?.labels).toEqual({ ...card?.labels, GPU_I_PROFILE: '1g.10gb', GPU_I_ID: '9' })
  })

  it('compute instances that share a MIG instance are one series, not the same one twice', () => {
    const instance = (id: string, computeInstanceId: number) =>
      gpuView(
        gpuInfo({ id, label: id, mig: { parentId: 'GPU-p', gpuInstanceId: 1, computeInstanceId, profile: '1g.10gb' } }),
        FULL_READINGS,
      )
    const both = scrape(agentState({ gpus: () => [instance('MIG-a', 0), instance('MIG-b', 1)] }))
    expect(named(both, 'DCGM_FI_DEV_FB_USED').length).toBe(1)
    expect(named(both, 'gpu_memory_used_mb').length).toBe(2)
  })

  it('other vendors have only those names of NVIDIA that mean the same for them, MIG instances are not in the set of nvidia-smi', () => {
    const namesOf = (gpu: string) => series.flatMap(({ name, labels }) => (name.startsWith('DCGM_') && labels.gpu === gpu ? [name] : []))
    expect(namesOf('2')).toEqual(['DCGM_FI_DEV_GPU_TEMP', 'DCGM_FI_DEV_GPU_UTIL'])
    expect(namesOf('0')).toContain('DCGM_FI_DEV_XID_ERRORS')
    expect(named(series, 'nvidia_smi_gpu_info').map(({ labels }) => labels.uuid)).toEqual([
      '5c2fe1ab-0000-4000-8000-000000000001',
      '5c2fe1ab-0000-4000-8000-000000000002',
    ])
  })

  it('PCIe sent and received are not swapped', () => {
    const { pcieTxBytesPerSecond: sent, pcieRxBytesPerSecond: received } = FULL_READINGS
    expect([value(series, 'gpu_pcie_tx_bytes_per_second'), value(series, 'gpu_pcie_rx_bytes_per_second')]).toEqual([sent, received])
    expect([value(series, 'DCGM_FI_PROF_PCIE_TX_BYTES'), value(series, 'DCGM_FI_PROF_PCIE_RX_BYTES')]).toEqual([sent, received])
    expect(value(series, 'gpu_nvlink_tx_bytes_per_second')).toBe(FULL_READINGS.nvlinkTxBytesPerSecond)
  })

  it('nvidia-smi fails when no NVIDIA GPU can be read', () => {
    expect(value(series, 'nvidia_smi_command_exit_code')).toBe(0)
    const hung = agentState({ gpus: () => [gpuView(gpuInfo({}), FULL_READINGS, { live: false })] })
    expect(value(scrape(hung), 'nvidia_smi_command_exit_code')).toBe(1)
    expect(value(scrape(hung), 'nvidia_smi_last_collect_success')).toBe(0)
  })

  it('names the version of each format', () => {
    expect(CONTENT_TYPES.text).toContain('version=0.0.4')
    expect(CONTENT_TYPES.openmetrics).toContain('openmetrics-text; version=1.0.0')
  })
})

describe('whatever the names and values', () => {
  // The long and the unprintable ones look alike once they are labels.
  const alike = fc.constantFrom('a\u0001', 'a\u0002', `${'x'.repeat(128)}1`, `${'x'.repeat(128)}2`)
  const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 200 }), alike)
  const reading = fc.option(fc.double({ min: 0, noNaN: true }), { nil: null })
  const anyNumber = fc.option(fc.double(), { nil: null })
  const readings = fc
    .array(reading, { minLength: GPU_FIELDS.length, maxLength: GPU_FIELDS.length })
    .map((values) => Object.fromEntries(GPU_FIELDS.map((field, at) => [field, values[at] ?? null])) as Record<GpuField, number | null>)
  const gpu = fc.record({
    info: fc.oneof(
      fc
        .record({ id: text, label: text, name: fc.option(text, { nil: null }), vendor: fc.constantFrom('nvidia' as const, 'amd' as const) })
        .map(gpuInfo),
      alike.map((id) => gpuInfo({ id })),
    ),
    readings,
    live: fc.boolean(),
    state: fc.constantFrom('ok' as const, 'lost' as const, 'error' as const),
  })
  const process = fc.record({ gpu: fc.nat(3), pid: fc.nat(5), user: text, name: text, memory: reading })
  const step = fc.record({
    run: text,
    rank: fc.nat(3),
    step: fc.nat(),
    loss: anyNumber,
    stepSeconds: anyNumber,
    oomCount: anyNumber,
    custom: fc.dictionary(text, fc.double(), { maxKeys: 20 }),
  })
  const world = fc.record({
    gpus: fc.array(gpu, { maxLength: 4 }),
    processes: fc.array(process, { maxLength: 12 }),
    steps: fc.array(step, { maxLength: 6 }),
    source: text,
  })

  it('the page is valid in both formats and no series is there twice', () => {
    fc.assert(
      fc.property(world, ({ gpus, processes, steps, source }) => {
        const views = gpus.map((one) => gpuView(one.info, { ...one.readings, state: one.state }, { live: one.live }))
        const training = new TrainingMetrics(() => NOW)
        training.accept(steps.map(trainingStep))
        const state = agentState({
          gpus: () => views,
          processes: () =>
            processes.map(({ gpu: at, pid, user, name, memory }) =>
              processView({ gpu: views[at]?.info.id ?? 'none', pid, memoryUsedBytes: memory, info: processInfo(pid, user, name) }),
            ),
          health: () => [sourceHealth({ source })],
          lastXid: () =>
            new Map(
              views.map(({ info }) => [info.id, { kind: 'event', at: NOW, gpu: info.id, event: 'xid', code: 79, message: '', origin: '' }]),
            ),
        })
        const exporter = createExporter({ naming, state, sets: ALL, maxProcesses: 3, training, monotonicMs: () => 0 })
        const { series } = readExposition(exporter.render())
        expect(readExposition(exporter.render('openmetrics'), 'openmetrics').series.length).toBe(series.length)
        const pushed = exporter.families().flatMap((family) => family.series)
        expect(pushed.map(({ name, labels, value }) => [name, Object.fromEntries(labels), value])).toEqual(
          series.map(({ name, labels, value }) => [name, labels, value]),
        )
        const shown = series.find(({ name }) => name === 'gpu_info')?.labels
        if (views[0] !== undefined) expect(shown?.uuid?.length).toBe(Math.min(128, views[0].info.id.length))
      }),
      { numRuns: 150 },
    )
  })
})
