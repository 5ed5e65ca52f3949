import { describe, expect, it } from 'vitest'
import type { GpuView } from '../core/kinds.ts'
import type { GpuEvent, ProcessView } from '../core/model.ts'
import { createExporter } from './exporter.ts'
import { readExposition, type Series } from './exposition.contract.ts'
import { agentState, gpuInfo, gpuView, NOW, naming, processView } from './fixed-state.contract.ts'
import { XidCounts } from './xid-counts.ts'

const CARD = gpuInfo({ id: 'GPU-aa', computeCapability: '8.9' })
const instance = (gpuInstanceId: number, computeInstanceId: number, profile: string) =>
  gpuInfo({ id: `MIG-${gpuInstanceId}-${computeInstanceId}`, mig: { parentId: 'GPU-aa', gpuInstanceId, computeInstanceId, profile } })

function scrape(gpus: readonly GpuView[], more: { processes?: readonly ProcessView[]; xids?: XidCounts; max?: number } = {}): Series[] {
  const { processes = [], xids, max = 64 } = more
  const state = agentState({ gpus: () => gpus, processes: () => processes })
  const exporter = createExporter({ naming, state, sets: ['nvidia_smi'], maxProcesses: max, ...(xids ? { xids } : {}) })
  return [...readExposition(exporter.render()).series]
}

const of = (series: readonly Series[], name: string) =>
  series.filter((one) => one.name === `nvidia_smi_${name}`).map(({ labels, value }) => [labels, value])

const xid = (code: number, gpu: string | null = 'GPU-aa', at = NOW): GpuEvent => ({
  kind: 'event',
  at,
  gpu,
  event: 'xid',
  code,
  message: '',
  origin: 'nvml',
})

describe('facts of a card', () => {
  it('are in its labels and limits', () => {
    const info = {
      ...CARD,
      vbiosVersion: '96.00',
      powerLimitWatts: 300,
      powerLimitEnforcedWatts: 250,
      powerLimitDefaultWatts: 350,
      computeMode: 3,
    }
    const series = scrape([gpuView(info, {})])
    expect(of(series, 'gpu_info')[0]?.[0]).toMatchObject({ compute_cap: '8.9', vbios_version: '96.00' })
    const value = (name: string) => of(series, name)[0]?.[1]
    expect(['power_limit_watts', 'enforced_power_limit_watts', 'power_default_limit_watts', 'compute_mode'].map(value)).toEqual([
      300, 250, 350, 3,
    ])
  })

  it('are absent where the card does not report them', () => {
    const names = scrape([gpuView(gpuInfo({ id: 'GPU-aa' }), {})]).map(({ name }) => name)
    for (const name of ['compute_mode', 'power_limit_watts', 'power_default_limit_watts', 'enforced_power_limit_watts'])
      expect(names).not.toContain(`nvidia_smi_${name}`)
  })
})

describe('MIG instances', () => {
  it('are named one by one, and measured once for each GPU instance', () => {
    const views = [instance(1, 0, '1c.2g.20gb'), instance(1, 1, '1c.2g.20gb'), instance(3, 0, '1g.10gb')].map((info, at) =>
      gpuView(info, { memoryUsedBytes: at * 100, smActiveRatio: at / 10 }),
    )
    const series = scrape([gpuView(CARD, {}), ...views])
    expect(of(series, 'mig_info')).toHaveLength(3)
    expect(of(series, 'mig_info')[1]?.[0]).toEqual({
      uuid: 'aa',
      mig_uuid: 'MIG-1-1',
      gpu_instance_id: '1',
      compute_instance_id: '1',
      profile: '1c.2g.20gb',
    })
    expect(of(series, 'mig_memory_used_bytes')).toEqual([
      [{ uuid: 'aa', gpu_instance_id: '1' }, 0],
      [{ uuid: 'aa', gpu_instance_id: '3' }, 200],
    ])
    expect(of(series, 'mig_sm_activity_ratio').map(([, value]) => value)).toEqual([0, 0.2])
    // They are no cards: nothing that is said of a card is said of them.
    expect(of(series, 'index')).toEqual([[{ uuid: 'aa' }, 0]])
  })
})

describe('compute processes', () => {
  const processes = [
    processView({ gpu: 'GPU-aa', pid: 1, memoryUsedBytes: 10 }),
    processView({ gpu: 'MIG-1-0', pid: 2, memoryUsedBytes: 30 }),
    processView({ gpu: 'MIG-3-0', pid: 2, memoryUsedBytes: 5 }),
    processView({ gpu: 'GPU-aa', pid: 3, memoryUsedBytes: null }),
    processView({ gpu: 'GPU-aa', pid: 4, memoryUsedBytes: 99, type: 'graphics' }),
  ]
  const gpus = [gpuView(CARD, { processes: [] }), gpuView(instance(1, 0, '1g'), {}), gpuView(instance(3, 0, '1g'), {})]

  it('are those of the card and of its instances; memory that is not reported is absent', () => {
    const series = scrape(gpus, { processes })
    expect(of(series, 'compute_app_used_memory_bytes')).toEqual([
      [{ uuid: 'aa', pid: '2', process_name: '' }, 35],
      [{ uuid: 'aa', pid: '1', process_name: '' }, 10],
    ])
    expect(of(series, 'compute_app_info')).toEqual([[{ uuid: 'aa', pid: '3', process_name: '' }, 1]])
    expect(of(series, 'compute_apps')).toEqual([[{ uuid: 'aa' }, 3]])
    expect(of(series, 'compute_apps_last_collect_success')).toEqual([[{}, 1]])
  })

  it('are counted in full where not all are named', () => {
    const series = scrape(gpus, { processes, max: 1 })
    expect(of(series, 'compute_app_used_memory_bytes')).toHaveLength(1)
    expect(of(series, 'compute_app_info')).toEqual([])
    expect(of(series, 'compute_apps')).toEqual([[{ uuid: 'aa' }, 3]])
  })

  it('that could not be read are unknown, not none', () => {
    const series = scrape([gpuView(CARD, { processes: null })])
    expect(of(series, 'compute_apps')).toEqual([])
    expect(of(series, 'compute_apps_last_collect_success')).toEqual([[{}, 0]])
  })
})

describe('XIDs', () => {
  it('are counted for each GPU and code, and only where the GPU is known', () => {
    const xids = new XidCounts()
    xids.accept([xid(79), xid(31), xid(79, 'GPU-aa', NOW + 5000), xid(79, null), xid(79, 'GPU-gone'), { ...xid(1), event: 'lost' }])
    const series = scrape([gpuView(CARD, {})], { xids })
    expect(of(series, 'xid_errors_total')).toEqual([
      [{ uuid: 'aa', xid: '79' }, 2],
      [{ uuid: 'aa', xid: '31' }, 1],
    ])
    expect(of(series, 'xid_last_timestamp_seconds')).toContainEqual([{ uuid: 'aa', xid: '79' }, (NOW + 5000) / 1000])
  })

  it('of endless kinds do not fill the memory', () => {
    const xids = new XidCounts()
    xids.accept(Array.from({ length: 10_000 }, (_, code) => xid(code)))
    expect([...xids.all()]).toHaveLength(512)
  })
})
