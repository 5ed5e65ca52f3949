/** The curves of a training next to those of its GPUs. */
import { THRESHOLDS } from '../../src/detectors/thresholds.ts'
import { board, OF_RUN, ON_GPU } from './board.ts'
import { buckets, gauge, lines, type Step } from './panels.ts'

const { thermal, memory, gradExplosion } = THRESHOLDS
const GPU = '{{instance}} GPU {{gpu}}'
const RUN = '{{run}} rank {{rank}}'

const HEAT: readonly Step[] = [
  { from: null, color: 'green' },
  { from: thermal.noticeCelsius, color: 'yellow' },
  { from: thermal.fallbackCelsius - thermal.marginCelsius, color: 'orange' },
  { from: thermal.fallbackCelsius, color: 'red' },
]

const FULL: readonly Step[] = [
  { from: null, color: 'green' },
  { from: memory.levelRatio, color: 'yellow' },
  { from: memory.fullRatio, color: 'red' },
]

const durations = `training_step_duration_seconds_bucket{${OF_RUN}}[$__rate_interval]`
const quantile = (q: number) => `histogram_quantile(${q}, sum by (run, le) (rate(${durations})))`

export const trainingBoard = board({
  uid: 'gpuwarden-training',
  title: 'GPU training',
  description: 'What the GPUs do during a training, and how the training goes.',
  range: '1h',
  rows: [
    {
      title: 'GPUs',
      panels: [
        lines({
          title: 'GPU utilization',
          description: 'Share of time in which a kernel ran.',
          queries: [{ expr: `gpu_utilization_percent{${ON_GPU}}`, legend: GPU }],
          unit: 'percent',
          width: 12,
          min: 0,
          max: 100,
        }),
        gauge({
          title: 'Temperature',
          description: 'Colors change at levels that suit most GPUs; alerts use the limit of each GPU.',
          queries: [{ expr: `gpu_temperature_celsius{${ON_GPU}}`, legend: GPU }],
          unit: 'celsius',
          width: 12,
          min: 20,
          max: 100,
          steps: HEAT,
        }),
        lines({
          title: 'Power draw',
          description: 'Current power draw and the power limit.',
          queries: [
            { expr: `gpu_power_draw_watts{${ON_GPU}}`, legend: GPU },
            { expr: `gpu_power_limit_watts{${ON_GPU}}`, legend: `${GPU} limit` },
          ],
          unit: 'watt',
          width: 8,
          min: 0,
        }),
        lines({
          title: 'Memory',
          description: 'Memory in use on the device.',
          queries: [{ expr: `gpu_memory_used_mb{${ON_GPU}}`, legend: GPU }],
          unit: 'mbytes',
          width: 8,
          min: 0,
        }),
        lines({
          title: 'Memory share',
          description: 'Memory in use as a share of total memory.',
          queries: [{ expr: `gpu_memory_used_mb{${ON_GPU}} / gpu_memory_total_mb{${ON_GPU}}`, legend: GPU }],
          unit: 'percentunit',
          width: 8,
          min: 0,
          max: 1,
          steps: FULL,
        }),
        lines({
          title: 'Temperature over time',
          description: 'With the slowdown temperature of each GPU.',
          queries: [
            { expr: `gpu_temperature_celsius{${ON_GPU}}`, legend: GPU },
            { expr: `gpu_temperature_slowdown_celsius{${ON_GPU}}`, legend: `${GPU} slows down` },
          ],
          unit: 'celsius',
          width: 12,
        }),
        lines({
          title: 'Why clocks are low',
          description: 'Current reasons: heat, power limit, power brake. Idle is left out.',
          queries: [
            {
              expr: `sum by (instance, reason) (gpu_throttle_reason{${ON_GPU},reason!~"idle|application_clocks|display|sync_boost"})`,
              legend: '{{instance}} {{reason}}',
            },
          ],
          unit: 'none',
          width: 12,
          min: 0,
        }),
      ],
    },
    {
      title: 'Training',
      panels: [
        lines({
          title: 'Loss',
          description: 'Loss of the latest step that reported one.',
          queries: [{ expr: `training_loss{${OF_RUN}}`, legend: RUN }],
          unit: 'none',
          width: 12,
        }),
        lines({
          title: 'Learning rate',
          description: 'The schedule as the training code applies it.',
          queries: [{ expr: `learning_rate{${OF_RUN}}`, legend: RUN }],
          unit: 'sci',
          width: 12,
        }),
        lines({
          title: 'Gradient norm',
          description: 'L2 norm of the gradient. The line is the alert threshold.',
          queries: [{ expr: `gradient_norm{${OF_RUN}}`, legend: RUN }],
          unit: 'none',
          width: 12,
          steps: [
            { from: null, color: 'green' },
            { from: gradExplosion.norm, color: 'red' },
          ],
        }),
        lines({
          title: 'Throughput',
          description: 'Samples per second, as the training code counts them.',
          queries: [{ expr: `training_throughput_samples_per_second{${OF_RUN}}`, legend: RUN }],
          unit: 'none',
          width: 12,
          min: 0,
        }),
        buckets({
          title: 'Step duration',
          description: 'How many steps took how long.',
          queries: [{ expr: `sum by (le) (increase(${durations}))`, legend: '{{le}}' }],
          unit: 's',
          width: 12,
        }),
        lines({
          title: 'Step duration, median and 99th percentile',
          description: 'Estimated from the histogram.',
          queries: [
            { expr: quantile(0.5), legend: '{{run}} median' },
            { expr: quantile(0.99), legend: '{{run}} 99%' },
          ],
          unit: 's',
          width: 12,
          min: 0,
        }),
        lines({
          title: 'Steps',
          description: 'Steps per second.',
          queries: [{ expr: `rate(training_steps_total{${OF_RUN}}[$__rate_interval])`, legend: RUN }],
          unit: 'none',
          width: 12,
          min: 0,
        }),
        lines({
          title: 'Where a step spends its time',
          description: 'Parts of the latest step: data, forward, backward, optimizer, …',
          queries: [{ expr: `avg by (run, phase) (training_phase_seconds{${OF_RUN}})`, legend: '{{run}} {{phase}}' }],
          unit: 's',
          width: 12,
          min: 0,
        }),
      ],
    },
  ],
})
