/**
 * What the panels of public dashboards ask of Prometheus, in our own words: the same metrics, labels, operators and joins.
 * 12239 is made for the DCGM exporter; 14574 (one GPU) and 25547 (all GPUs of a node) for nvidia_gpu_exporter.
 */

export interface PublicQuery {
  readonly dashboard: '12239' | '14574' | '25547'
  readonly panel: string
  readonly expr: string
  /** Labels that the panel shows or joins by, on every series of the answer. */
  readonly shows: readonly string[]
}

/** Where the questions are asked: a Prometheus job and instance, and GPUs by UUID without `GPU-`. */
export interface Asked {
  readonly job: string
  readonly instance: string
  /** A whole card. */
  readonly card: string
  /** A card that is divided by MIG. */
  readonly divided: string
}

const LIMITING = ['sw_power_cap', 'sw_thermal_slowdown', 'hw_thermal_slowdown', 'hw_power_brake_slowdown']
const SHOWN_REASONS = ['gpu_idle', ...LIMITING, 'applications_clocks_setting', 'sync_boost']

/** `a or b or c` */
const firstOf = (...expressions: readonly string[]) => expressions.join(' or ')

export function publicQueries(asked: Asked): readonly PublicQuery[] {
  return [...dcgm(asked), ...oneGpu(asked), ...allGpus(asked)]
}

function dcgm({ instance }: Asked): PublicQuery[] {
  const ask = (panel: string, expr: string, ...shows: string[]): PublicQuery => ({ dashboard: '12239', panel, expr, shows })
  // Its first revisions choose by instance, the later ones by Hostname; both are in use.
  return [`instance=~"${instance}"`, 'Hostname=~".+"'].flatMap((chosen) => {
    const of = (field: string) => `DCGM_FI_${field}{${chosen}, gpu=~".+"}`
    return [
      ask('GPU Temperature', `max(${of('DEV_GPU_TEMP')}) by (Hostname, gpu, uuid)`, 'Hostname', 'gpu'),
      ask('GPU Avg. Temp', `avg(${of('DEV_GPU_TEMP')})`),
      ask('GPU Power Usage', `max(${of('DEV_POWER_USAGE')}) by (Hostname, gpu, uuid)`, 'Hostname', 'gpu'),
      ask('GPU Power Total', `sum(max(${of('DEV_POWER_USAGE')}) by (gpu))`),
      ask('GPU SM Clocks', `max(${of('DEV_SM_CLOCK')} * 1000000) by (Hostname, UUID, gpu)`, 'Hostname', 'UUID', 'gpu'),
      ask('GPU Utilization (by utilisation)', of('DEV_GPU_UTIL'), 'instance', 'gpu'),
      ask('GPU Utilization', `max(${of('PROF_GR_ENGINE_ACTIVE')}) by (Hostname, gpu, GPU_I_ID, GPU_I_PROFILE)`, 'Hostname', 'gpu'),
      ask(
        'Tensor Core Utilization',
        `max(${of('PROF_PIPE_TENSOR_ACTIVE')}) by (Hostname, gpu, GPU_I_ID, GPU_I_PROFILE)`,
        'Hostname',
        'gpu',
      ),
      ask('GPU Framebuffer Mem Used', `max(${of('DEV_FB_USED')}) by (Hostname, gpu, GPU_I_ID, GPU_I_PROFILE)`, 'Hostname', 'gpu'),
      ask(
        'MIG instances',
        `max(DCGM_FI_DEV_FB_USED{${chosen}, GPU_I_ID!=""}) by (gpu, GPU_I_ID, GPU_I_PROFILE)`,
        'GPU_I_ID',
        'GPU_I_PROFILE',
      ),
      ask('variables', `DCGM_FI_DEV_FB_FREE{${chosen}}`, 'Hostname', 'gpu'),
    ]
  })
}

/** The ways in which both dashboards for nvidia_gpu_exporter put a question, for one choice of GPUs. */
function words(chosen: string, place: string) {
  const of = (field: string) => `nvidia_smi_${field}{${chosen}, ${place}}`
  const info = of('gpu_info')
  const reason = (name: string) => firstOf(of(`clocks_event_reasons_${name}`), of(`clocks_throttle_reasons_${name}`))
  const withoutCompute = (where: string) =>
    `max by (uuid, gpu_instance_id, profile) (label_replace(nvidia_smi_mig_info{${where}}, "profile", "$1", "profile", "^[0-9]+c\\\\.(.*)$"))`
  return {
    of,
    info,
    reason,
    powerShare: `${of('power_draw_watts')} / (${firstOf(of('enforced_power_limit_watts'), of('power_limit_watts'), of('power_default_limit_watts'))})`,
    /** How many limiting reasons are active; what is not reported counts as inactive. */
    limits: (by: string) => LIMITING.map((name) => `(sum by(${by}) (${reason(name)}) or (sum by(${by}) (${info}) * 0))`).join(' + '),
    uncorrected: (by: string) =>
      `sum by(${by}) (${of('ecc_errors_uncorrected_aggregate_total')}) or sum by(${by}) ({__name__=~"nvidia_smi_ecc_errors_uncorrected_aggregate_.+", ${chosen}, ${place}})`,
    mig: (field: string, where: string) => `(${of(field)}) * on(uuid, gpu_instance_id) group_left(profile) (${withoutCompute(where)})`,
  }
}

function oneGpu({ job, instance, card, divided }: Asked): PublicQuery[] {
  const place = `instance="${instance}", job="${job}"`
  const { of, info, reason, powerShare, limits, uncorrected } = words(`uuid="${card}"`, place)
  const parts = words(`uuid="${divided}"`, place)
  const ask = (panel: string, expr: string, shows: readonly string[] = []): PublicQuery => ({ dashboard: '14574', panel, expr, shows })
  const app = of('compute_app_used_memory_bytes')
  const apps = `${app} or (${of('compute_app_info')} * 0)`
  const shown = ['name', 'driver_version', 'cuda_version', 'vbios_version', 'compute_cap', 'pci_bus_id', 'uuid', 'index', 'serial']
  const mig = (field: string) => parts.mig(field, `uuid="${divided}", ${place}`)
  return [
    ask('variables', `nvidia_smi_index{job="${job}"}`, ['instance', 'job']),
    ask('variable gpu', `label_join(nvidia_smi_gpu_info{${place}}, "gpu_label", " #", "name", "index")`, ['gpu_label', 'uuid']),
    ask('Recovery Action', of('gpu_recovery_action')),
    ask('Throttling', limits('uuid'), ['uuid']),
    ask('ECC Errors (uncorrected)', uncorrected('uuid'), ['uuid']),
    ask('P-State', of('pstate')),
    ask('GPU Info', info, shown),
    ask('Compute Mode', of('compute_mode')),
    ask('GPU Util', of('utilization_gpu_ratio'), ['uuid']),
    ask('Power', powerShare),
    ask('Fan', of('fan_speed_ratio')),
    ask('Temperature', of('temperature_gpu'), ['uuid']),
    ask('GPU Clock', `${of('clocks_current_graphics_clock_hz')} / ${of('clocks_max_graphics_clock_hz')}`),
    ask('Memory Clock', `${of('clocks_current_memory_clock_hz')} / ${of('clocks_max_memory_clock_hz')}`),
    ask('Memory Alloc', `${of('memory_used_bytes')} / ${of('memory_total_bytes')}`),
    ask('Memory Util', of('utilization_memory_ratio'), ['uuid']),
    ...SHOWN_REASONS.map((name) => ask(`Throttle Reasons: ${name}`, reason(name))),
    ask('Memory Allocation', of('memory_used_bytes'), ['uuid']),
    ask('Power Draw', of('power_draw_watts'), ['uuid']),
    ...['graphics', 'video', 'sm', 'memory'].map((clock) => ask(`${clock} clock`, of(`clocks_current_${clock}_clock_hz`), ['uuid'])),
    ask('GPU Processes: memory', apps, ['pid', 'process_name']),
    ask('GPU Processes: share', `(${apps}) / on(uuid) group_left() ${of('memory_total_bytes')}`, ['pid', 'process_name']),
    ask('Process Memory Over Time', app, ['pid', 'process_name']),
    ask('Process Collection', `nvidia_smi_compute_apps_last_collect_success{${place}}`),
    ask('Fabric State', of('fabric_state')),
    ask(
      'ECC Uncorrected (detail)',
      `label_replace({__name__=~"nvidia_smi_ecc_errors_uncorrected_.+", uuid="${card}", ${place}}, "kind", "$1", "__name__", "nvidia_smi_ecc_errors_uncorrected_(.+)")`,
      ['kind'],
    ),
    ask('XID Errors', `sum(${of('xid_errors_total')}) or sum(${info}) * 0`),
    ask('Last XID', `time() - max(${of('xid_last_timestamp_seconds')}) or (sum(${info}) * 0 - 1)`),
    ask('XID Errors by Code', of('xid_errors_total'), ['xid']),
    ask('PCIe Throughput: TX', of('pcie_throughput_tx_bytes_per_second')),
    ask('PCIe Throughput: RX', of('pcie_throughput_rx_bytes_per_second')),
    ask('Power (energy counter)', `rate(${of('energy_joules_total')}[1m])`),
    ask('Energy (trailing 24h)', `sum(increase(${of('energy_joules_total')}[24h])) / 3.6e6`),
    ask('MIG Memory Used', mig('mig_memory_used_bytes'), ['gpu_instance_id', 'profile']),
    ask('MIG SM Activity', mig('mig_sm_activity_ratio'), ['gpu_instance_id', 'profile']),
    ask('MIG Tensor Activity', mig('mig_tensor_activity_ratio'), ['gpu_instance_id', 'profile']),
  ]
}

function allGpus({ job, instance }: Asked): PublicQuery[] {
  const place = `instance="${instance}", job="${job}"`
  const { of, info, powerShare, limits, uncorrected, mig } = words('uuid=~".*"', place)
  const who = 'uuid, instance, job'
  const ask = (panel: string, expr: string, shows: readonly string[]): PublicQuery => ({ dashboard: '25547', panel, expr, shows })
  /** A row for every GPU, -1 where it has no such reading. */
  const cell = (expr: string) => `(${expr}) or (sum by(${who}) (${info}) * 0 - 1)`
  const named = (expr: string) => `(${expr}) * on(uuid) group_left(index, name) ${info}`
  const identity = `(max by (uuid, index, name) (${info}))`
  const xids = of('xid_errors_total')
  const since = `(time() - max by (uuid, xid) (${of('xid_last_timestamp_seconds')}))`
  const parts = (field: string) => named(mig(field, place))
  const share = `${of('memory_used_bytes')} / ${of('memory_total_bytes')}`
  const cells: readonly (readonly [string, string])[] = [
    ['Utilization', of('utilization_gpu_ratio')],
    ['VRAM Allocated', share],
    ['Temperature', of('temperature_gpu')],
    ['Power', powerShare.replace(/\/ (\(.*\))$/, '/ ($1 > 0)')],
    ['P-State', of('pstate')],
    ['ECC Errors', uncorrected(who)],
    ['Recovery Action', of('gpu_recovery_action')],
  ]
  const lines: readonly (readonly [string, string])[] = [
    ['GPU Utilization %', of('utilization_gpu_ratio')],
    ['Memory Activity %', of('utilization_memory_ratio')],
    ['VRAM Allocated %', share],
    ['VRAM Allocated', of('memory_used_bytes')],
    ['Temperature', of('temperature_gpu')],
    ['Power Draw', of('power_draw_watts')],
    ['Fan Speed %', of('fan_speed_ratio')],
    ['Throttling (history)', limits(who)],
    ['P-State (history)', of('pstate')],
    ['Graphics Clock', of('clocks_current_graphics_clock_hz')],
    ['Memory Clock', of('clocks_current_memory_clock_hz')],
    ['ECC Errors (uncorrected)', uncorrected(who)],
    ['Recovery Action (history)', of('gpu_recovery_action')],
    ['Power Draw (energy counter)', `rate(${of('energy_joules_total')}[1m])`],
    ['PCIe TX', of('pcie_throughput_tx_bytes_per_second')],
    ['PCIe RX', of('pcie_throughput_rx_bytes_per_second')],
  ]
  return [
    ask('GPUs', `label_join(${info}, "gpu_label", " #", "name", "index")`, ['gpu_label', 'uuid', 'index']),
    ...cells.map(([panel, expr]) => ask(`GPUs: ${panel}`, cell(expr), ['uuid'])),
    ask('GPUs: Throttling', limits(who), ['uuid']),
    ...lines.map(([panel, expr]) => ask(panel, named(expr), ['index', 'name'])),
    ask('XID Errors', `(sum by (uuid) (${xids})) * on(uuid) group_left(index, name) ${identity} or (${identity} * 0)`, ['index', 'name']),
    ask('Last XID per GPU', `${since} * on(uuid) group_left(index, name) ${identity}`, ['xid', 'index', 'name']),
    ask(
      'MIG Instances',
      `(max by (uuid, gpu_instance_id, profile) (nvidia_smi_mig_info{${place}})) * on(uuid) group_left(index, name) ${identity}`,
      ['gpu_instance_id', 'profile', 'index', 'name'],
    ),
    ask('MIG SM Activity', parts('mig_sm_activity_ratio'), ['gpu_instance_id', 'profile', 'index', 'name']),
    ask('MIG Memory Used', parts('mig_memory_used_bytes'), ['gpu_instance_id', 'profile', 'index', 'name']),
  ]
}
