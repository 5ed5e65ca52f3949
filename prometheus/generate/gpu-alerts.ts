/** Alerts about GPUs. Thresholds are those of the agent's own detectors. */
import { THRESHOLDS } from '../../src/detectors/thresholds.ts'
import { XID_MEANINGS } from '../../src/detectors/xid-codes.ts'
import { type AlertRule, agent, duration, gpu, type RuleGroup } from './rule.ts'
import { FORECAST } from './rule-parameters.ts'

const { thermal, throttle, powerBrake, memory, xid, ecc, remap, gpuLost, idleHolding } = THRESHOLDS
const MEBIBYTE = 1024 ** 2

/** The name of the GPU for people; simulated ones are marked. */
const GPU = '{{ if $labels.simulated }}SIMULATED {{ end }}GPU {{ $labels.gpu }} ({{ $labels.name }}) on {{ $labels.instance }}'

function xids(severity: 'info' | 'critical'): string {
  return [...XID_MEANINGS].flatMap(([code, meaning]) => (meaning.severity === severity ? [code] : [])).join('|')
}

/** Replays are left out: their timestamps are in the past. */
const xidAge = `time() - gpu_xid_last_timestamp_seconds{replay=""`
const margin = 'max without (sensor) (gpuwarden:gpu_temperature_margin:celsius)'
const reason = (names: string) => `max without (reason) (gpu_throttle_reason{reason=~"${names}"}) == 1`
const idleWindow = duration(idleHolding.minutes * 60)
const stormWindow = duration(ecc.correctedWindowMinutes * 60)

const temperatures = (celsius: number) => [
  [gpu('gpu_temperature_celsius'), `${celsius}x40`] as const,
  [gpu('gpu_temperature_slowdown_celsius'), '90x40'] as const,
]

const heat: readonly AlertRule[] = [
  {
    name: 'GpuTemperatureHigh',
    severity: 'warning',
    detector: 'thermal',
    expr: `${margin} >= -${thermal.marginCelsius}`,
    forSeconds: thermal.holdSeconds,
    summary: `${GPU} is hot: {{ $value | printf "%+.0f" }} °C from its slowdown temperature`,
    description: 'A few degrees more and the GPU slows itself down. Check the fans, the air flow and the room temperature.',
    test: { fires: temperatures(86), quiet: temperatures(80), atSeconds: 120 },
  },
  {
    name: 'GpuTemperatureCritical',
    severity: 'critical',
    detector: 'thermal',
    expr: `${margin} >= 0`,
    forSeconds: thermal.criticalHoldSeconds,
    summary: `${GPU} has reached its slowdown temperature`,
    description: 'Its clocks are being cut, and it will shut down if it gets hotter. Stop the work on it or lower its power limit now.',
    test: { fires: temperatures(91), quiet: temperatures(86), atSeconds: 120 },
  },
  {
    name: 'GpuThrottled',
    severity: 'warning',
    detector: 'throttle',
    expr: `(${reason('sw_thermal|hw_thermal')}) or (${reason('hw_slowdown')} unless ${reason('hw_power_brake')})`,
    forSeconds: throttle.holdSeconds,
    summary: `${GPU} is throttled by heat or by its hardware protection`,
    description: 'Training on it is slower, and so is every rank that waits for it. Check cooling and power supply.',
    test: {
      fires: [[gpu('gpu_throttle_reason', 'reason="hw_thermal"'), '1x40']],
      quiet: [
        [gpu('gpu_throttle_reason', 'reason="hw_slowdown"'), '1x40'],
        [gpu('gpu_throttle_reason', 'reason="hw_power_brake"'), '1x40'],
      ],
      atSeconds: 120,
    },
  },
  {
    name: 'GpuPowerBrake',
    severity: 'warning',
    detector: 'power_brake',
    expr: reason('hw_power_brake'),
    forSeconds: powerBrake.holdSeconds,
    summary: `${GPU} is slowed down by the external power brake`,
    description: 'The server told the GPU to save power: a power supply is failing or overloaded.',
    test: {
      fires: [[gpu('gpu_throttle_reason', 'reason="hw_power_brake"'), '1x40']],
      quiet: [[gpu('gpu_throttle_reason', 'reason="sw_power_cap"'), '1x40']],
      atSeconds: 120,
    },
  },
  {
    name: 'GpuPowerCapped',
    severity: 'info',
    detector: 'throttle',
    expr: reason('sw_power_cap'),
    forSeconds: throttle.powerCapHoldSeconds,
    summary: `${GPU} runs at its power limit`,
    description: 'This is normal under full load. If it is slower than other GPUs of the same model, compare their power limits.',
    test: {
      fires: [[gpu('gpu_throttle_reason', 'reason="sw_power_cap"'), '1x40']],
      quiet: [[gpu('gpu_throttle_reason', 'reason="sw_power_cap"'), '1x10 0x30']],
      atSeconds: 450,
    },
  },
]

const filling = (perSample: number) => [
  [gpu('gpu_memory_used_mb'), `70000+${perSample}x200`] as const,
  [gpu('gpu_memory_total_mb'), '80000x200'] as const,
]

const memoryAlerts: readonly AlertRule[] = [
  {
    name: 'GpuMemoryFull',
    severity: 'warning',
    detector: 'memory_pressure',
    expr: `gpuwarden:gpu_memory_used:ratio >= ${memory.fullRatio}`,
    forSeconds: memory.holdMinutes * 60,
    summary: `The memory of ${GPU} is {{ $value | humanizePercentage }} full`,
    description: 'A larger batch or a second process will run out of memory. With a caching allocator this can be normal.',
    test: {
      fires: [
        [gpu('gpu_memory_used_mb'), '78000x80'],
        [gpu('gpu_memory_total_mb'), '80000x80'],
      ],
      quiet: [
        [gpu('gpu_memory_used_mb'), '70000x80'],
        [gpu('gpu_memory_total_mb'), '80000x80'],
      ],
      atSeconds: 900,
    },
  },
  {
    name: 'GpuMemoryRunningOut',
    severity: 'warning',
    detector: 'oom',
    expr: `gpuwarden:gpu_memory_used:ratio >= ${memory.levelRatio} and gpuwarden:gpu_memory_free:predicted_bytes <= 0`,
    forSeconds: memory.holdMinutes * 60,
    summary: `The memory of ${GPU} will be full within ${FORECAST.aheadSeconds / 60} minutes`,
    description: 'It is {{ $value | humanizePercentage }} full and grows steadily. Save a checkpoint and look for a leak.',
    test: { fires: filling(45), quiet: filling(1), atSeconds: 2400 },
  },
  {
    name: 'GpuOutOfMemoryPredicted',
    severity: 'critical',
    detector: 'oom',
    expr: 'gpu_predicted_oom_seconds >= 0',
    forSeconds: 0,
    summary: 'GPU {{ $labels.gpu }} on {{ $labels.instance }} will run out of memory in {{ $value | humanizeDuration }}',
    description: 'The agent predicts this from every sample{{ if $labels.run }} of run {{ $labels.run }}{{ end }}. Save a checkpoint now.',
    test: { fires: [[gpu('gpu_predicted_oom_seconds'), '240x40']], quiet: [[gpu('gpu_memory_used_mb'), '1x40']], atSeconds: 60 },
  },
  {
    name: 'GpuIdleHolding',
    severity: 'warning',
    detector: 'idle_holding',
    expr:
      `gpu_memory_used_mb and gpuwarden:gpu_idle_holding:bool == 1` +
      // The whole window must have been observed, not only the minutes since the agent started.
      ` and gpu_utilization_percent offset ${idleWindow}`,
    forSeconds: 0,
    summary: `${GPU} has been idle for ${idleHolding.minutes} minutes while {{ $value | printf "%.0f" }} MiB of its memory is held`,
    description: 'It may be a forgotten notebook kernel or a crashed run. Ask the owner to end it.',
    test: {
      fires: [
        [gpu('gpu_utilization_percent'), '0x200'],
        [gpu('gpu_memory_used_mb'), '2000x200'],
      ],
      quiet: [
        [gpu('gpu_utilization_percent'), '0x150 3x1 0x50'],
        [gpu('gpu_memory_used_mb'), '2000x200'],
      ],
      atSeconds: 2700,
    },
  },
]

const fault: readonly AlertRule[] = [
  {
    name: 'GpuXidHardware',
    severity: 'critical',
    detector: 'xid',
    expr: `${xidAge},xid=~"${xids('critical')}"} < ${xid.activeMinutes * 60}`,
    forSeconds: 0,
    summary: `${GPU} has a hardware fault: XID {{ $labels.xid }}`,
    description: 'Drain the GPU. The runbook says what each XID means and whether a reset helps.',
    test: {
      fires: [[gpu('gpu_xid_last_timestamp_seconds', 'xid="79"'), '50x40']],
      quiet: [[gpu('gpu_xid_last_timestamp_seconds', 'xid="31"'), '50x40']],
      atSeconds: 120,
    },
  },
  {
    name: 'GpuXid',
    severity: 'warning',
    detector: 'xid',
    expr: `${xidAge},xid!~"${xids('critical')}|${xids('info')}"} < ${xid.activeMinutes * 60}`,
    forSeconds: 0,
    summary: `${GPU} reported XID {{ $labels.xid }}`,
    description: 'Usually a bug in a program: read its error message first.',
    test: {
      fires: [[gpu('gpu_xid_last_timestamp_seconds', 'xid="31"'), '50x80']],
      quiet: [[gpu('gpu_xid_last_timestamp_seconds', 'xid="43"'), '50x80']],
      atSeconds: 120,
    },
  },
  {
    name: 'GpuEccUncorrected',
    severity: 'critical',
    detector: 'ecc',
    expr: 'gpu_ecc_uncorrected_volatile_total > 0',
    forSeconds: 0,
    summary: `${GPU} had {{ $value }} uncorrectable memory error(s)`,
    description:
      'Results may be wrong. Restart the run from its last checkpoint, then reset the GPU. The alert stays until the driver is reloaded.',
    test: {
      fires: [[gpu('gpu_ecc_uncorrected_volatile_total'), '1x40']],
      quiet: [[gpu('gpu_ecc_uncorrected_volatile_total'), '0x40']],
      atSeconds: 60,
    },
  },
  {
    name: 'GpuEccCorrectedStorm',
    severity: 'warning',
    detector: 'ecc',
    expr: `increase(gpu_ecc_corrected_volatile_total[${stormWindow}]) >= ${ecc.correctedCount}`,
    forSeconds: 0,
    summary: `${GPU} corrected {{ $value | printf "%.0f" }} memory errors in ${ecc.correctedWindowMinutes} minutes`,
    description: 'Results are still correct, but a memory chip may be failing. Plan to drain and test this GPU.',
    test: {
      fires: [[gpu('gpu_ecc_corrected_volatile_total'), '0+10x80']],
      quiet: [[gpu('gpu_ecc_corrected_volatile_total'), '0+1x80']],
      atSeconds: 900,
    },
  },
  {
    name: 'GpuRowRemapFailure',
    severity: 'critical',
    detector: 'remap',
    expr: 'gpu_row_remap_failure == 1',
    forSeconds: remap.settleSeconds,
    summary: `${GPU} could not remap a failing memory row`,
    description: 'Replace the card.',
    test: { fires: [[gpu('gpu_row_remap_failure'), '1x40']], quiet: [[gpu('gpu_row_remap_failure'), '0x40']], atSeconds: 120 },
  },
  {
    name: 'GpuRowRemapPending',
    severity: 'warning',
    detector: 'remap',
    expr: 'gpu_row_remap_pending == 1 or gpu_retired_pages_pending > 0',
    forSeconds: remap.settleSeconds,
    summary: `${GPU} needs a reset to remap failing memory`,
    description: 'Reset the GPU or reboot the server when it is free.',
    test: {
      fires: [
        [gpu('gpu_retired_pages_pending'), '2x40'],
        [gpu('gpu_row_remap_pending'), '0x40'],
      ],
      quiet: [[gpu('gpu_row_remap_pending'), '0x40']],
      atSeconds: 120,
    },
  },
  {
    name: 'GpuLost',
    severity: 'critical',
    detector: 'gpu_lost',
    expr: 'gpuwarden_gpu_state{state=~"lost|reset_required"} == 1',
    forSeconds: gpuLost.settleSeconds,
    summary: `${GPU} is lost: {{ $labels.state }}`,
    description: 'It fell off the bus or needs a reset, and what ran on it has failed. Save the kernel log, then reset or reboot.',
    test: {
      fires: [[gpu('gpuwarden_gpu_state', 'state="lost"'), '1x40']],
      quiet: [[gpu('gpuwarden_gpu_state', 'state="suspended"'), '1x40']],
      atSeconds: 120,
    },
  },
  {
    name: 'GpuUnreadable',
    severity: 'warning',
    detector: 'gpu_lost',
    expr: 'gpuwarden_gpu_state{state=~"error|stale"} == 1',
    forSeconds: gpuLost.errorHoldSeconds,
    summary: `${GPU} cannot be read: {{ $labels.state }}`,
    description:
      'The driver does not answer for it, or the sampler is being restarted. Meanwhile, other alerts about this GPU cannot fire.',
    test: {
      fires: [[gpu('gpuwarden_gpu_state', 'state="error"'), '1x40']],
      quiet: [[gpu('gpuwarden_gpu_state', 'state="error"'), '1x1 0x40']],
      atSeconds: 120,
    },
  },
  {
    name: 'GpuMissing',
    severity: 'warning',
    detector: 'gpu_lost',
    expr: 'max_over_time(gpuwarden:instance_gpus:count[1h]) - gpuwarden:instance_gpus:count > 0',
    forSeconds: gpuLost.missingSeconds,
    summary: '{{ $labels.instance }} has {{ $value }} GPU(s) fewer than an hour ago',
    description: 'A GPU is no longer reported. If it was removed on purpose, this alert ends after an hour.',
    test: {
      fires: [
        [agent('gpuwarden_gpu_up', 'gpu="0"'), '1x80'],
        [agent('gpuwarden_gpu_up', 'gpu="1"'), '1x20 stale'],
      ],
      quiet: [
        [agent('gpuwarden_gpu_up', 'gpu="0"'), '1x80'],
        [agent('gpuwarden_gpu_up', 'gpu="1"'), '0x80'],
      ],
      atSeconds: 900,
    },
  },
  {
    name: 'GpuRecoveryNeeded',
    severity: 'warning',
    detector: 'gpu_lost',
    expr: 'gpu_recovery_action > 0',
    forSeconds: gpuLost.settleSeconds,
    summary: `${GPU} needs recovery (action {{ $value }})`,
    description: 'The driver asks for this action: 1 reset the GPU, 2 reboot, 3 drain peer-to-peer traffic, 4 drain and reset.',
    test: { fires: [[gpu('gpu_recovery_action'), '1x40']], quiet: [[gpu('gpu_recovery_action'), '0x40']], atSeconds: 120 },
  },
]

export const GPU_ALERTS: readonly RuleGroup<AlertRule>[] = [
  { name: 'gpuwarden-heat', rules: heat },
  { name: 'gpuwarden-memory', rules: memoryAlerts },
  { name: 'gpuwarden-faults', rules: fault },
]

export const MEMORY_RATIO_STEPS = [memory.levelRatio, memory.oomRatio, memory.fullRatio] as const
export const IDLE_MEBIBYTES = idleHolding.memoryBytes / MEBIBYTE
