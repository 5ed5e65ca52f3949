/** Frequent or expensive queries, evaluated once. */
import { THRESHOLDS } from '../../src/detectors/thresholds.ts'
import { agent, duration, gpu, type RecordingRule, type RuleGroup, run } from './rule.ts'
import { FORECAST, WAIT_PHASES } from './rule-parameters.ts'

const { thermal, idleHolding } = THRESHOLDS
const MEBIBYTE = 1024 ** 2
const idleWindow = duration(idleHolding.minutes * 60)

export const RECORDING: readonly RuleGroup<RecordingRule>[] = [
  {
    name: 'gpuwarden-gpus',
    rules: [
      {
        record: 'gpuwarden:gpu_memory_used:ratio',
        expr: 'gpu_memory_used_mb / (gpu_memory_total_mb > 0)',
        test: {
          input: [
            [gpu('gpu_memory_used_mb'), '20000x40'],
            [gpu('gpu_memory_total_mb'), '80000x40'],
          ],
          expected: 0.25,
          atSeconds: 60,
        },
      },
      {
        record: 'gpuwarden:gpu_memory_free:bytes',
        expr: `gpu_memory_free_bytes or (gpu_memory_total_mb - gpu_memory_used_mb) * ${MEBIBYTE}`,
        test: {
          input: [
            [gpu('gpu_memory_used_mb'), '1x40'],
            [gpu('gpu_memory_total_mb'), '3x40'],
          ],
          expected: 2 * MEBIBYTE,
          atSeconds: 60,
        },
      },
      {
        record: 'gpuwarden:gpu_memory_free:predicted_bytes',
        expr: `predict_linear(gpuwarden:gpu_memory_free:bytes[${duration(FORECAST.windowSeconds)}], ${FORECAST.aheadSeconds})`,
        test: {
          input: [[gpu('gpu_memory_free_bytes'), '100000-15x200']],
          expected: 100_000 - 1800 - FORECAST.aheadSeconds,
          atSeconds: 1800,
        },
      },
      {
        record: 'gpuwarden:gpu_temperature_margin:celsius',
        labels: { sensor: 'core' },
        expr:
          'gpu_temperature_celsius - (gpu_temperature_slowdown_celsius or gpu_temperature_max_celsius' +
          ` or gpu_temperature_celsius * 0 + ${thermal.fallbackCelsius})`,
        test: { input: [[gpu('gpu_temperature_celsius'), '70x40']], expected: 70 - thermal.fallbackCelsius, atSeconds: 60 },
      },
      {
        record: 'gpuwarden:gpu_temperature_margin:celsius',
        labels: { sensor: 'memory' },
        expr: 'gpu_memory_temperature_celsius - gpu_memory_temperature_max_celsius',
        test: {
          input: [
            [gpu('gpu_memory_temperature_celsius'), '90x40'],
            [gpu('gpu_memory_temperature_max_celsius'), '95x40'],
          ],
          expected: -5,
          atSeconds: 60,
        },
      },
      {
        record: 'gpuwarden:gpu_utilization:avg5m_ratio',
        expr: 'avg_over_time(gpu_utilization_percent[5m]) / 100',
        test: { input: [[gpu('gpu_utilization_percent'), '50x40']], expected: 0.5, atSeconds: 300 },
      },
      {
        record: 'gpuwarden:gpu_power:avg5m_watts',
        expr: 'rate(gpu_energy_joules_total[5m]) or avg_over_time(gpu_power_draw_watts[5m])',
        test: { input: [[gpu('gpu_energy_joules_total'), '0+4500x40']], expected: 300, atSeconds: 300 },
      },
      {
        record: 'gpuwarden:gpu_idle:bool',
        expr: 'max_over_time(gpu_utilization_percent[5m]) == bool 0',
        test: { input: [[gpu('gpu_utilization_percent'), '0x40']], expected: 1, atSeconds: 300 },
      },
      {
        record: 'gpuwarden:gpu_idle_holding:bool',
        expr:
          `(max_over_time(gpu_utilization_percent[${idleWindow}]) == bool 0)` +
          ` * (min_over_time(gpu_memory_used_mb[${idleWindow}]) >= bool ${idleHolding.memoryBytes / MEBIBYTE})`,
        test: {
          input: [
            [gpu('gpu_utilization_percent'), '0x200'],
            [gpu('gpu_memory_used_mb'), '2000x200'],
          ],
          expected: 1,
          atSeconds: 2400,
        },
      },
      {
        record: 'gpuwarden:instance_gpus:count',
        expr: 'count by (job, instance) (gpuwarden_gpu_up)',
        test: {
          input: [
            [gpu('gpuwarden_gpu_up'), '1x40'],
            [agent('gpuwarden_gpu_up', 'gpu="1"'), '0x40'],
          ],
          expected: 2,
          atSeconds: 60,
        },
      },
    ],
  },
  {
    name: 'gpuwarden-training',
    rules: [
      {
        record: 'gpuwarden:training_step:mean10m_seconds',
        expr: 'rate(training_step_duration_seconds_sum[10m]) / rate(training_step_duration_seconds_count[10m])',
        test: {
          input: [
            [run('training_step_duration_seconds_sum'), '0+15x80'],
            [run('training_step_duration_seconds_count'), '0+30x80'],
          ],
          expected: 0.5,
          atSeconds: 900,
        },
      },
      {
        record: 'gpuwarden:training_work:mean10m_seconds',
        expr:
          'gpuwarden:training_step:mean10m_seconds - (' +
          `sum without (phase) (avg_over_time(training_phase_seconds{phase=~"${WAIT_PHASES.join('|')}"}[10m]))` +
          ' or gpuwarden:training_step:mean10m_seconds * 0)',
        test: {
          input: [
            [run('training_step_duration_seconds_sum'), '0+15x80'],
            [run('training_step_duration_seconds_count'), '0+30x80'],
            [run('training_phase_seconds', 'rank="0",phase="wait"'), '0.125x80'],
          ],
          expected: 0.375,
          atSeconds: 900,
        },
      },
    ],
  },
]
