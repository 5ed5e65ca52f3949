/** Alerts about training runs, and about gpuwarden itself. */
import { THRESHOLDS } from '../../src/detectors/thresholds.ts'
import { type AlertRule, agent, duration, type RuleGroup, run } from './rule.ts'
import { ABSENCE, PLATEAU_HALF_SECONDS, SHORTEST_STALL_SECONDS, STRAGGLER_HOLD_SECONDS, TRAINING_HOLD_SECONDS } from './rule-parameters.ts'

const { gradExplosion, lossPlateau, stall, straggler, driverStuck, sourceStale } = THRESHOLDS

const RUN =
  '{{ if $labels.simulated }}SIMULATED {{ end }}run {{ $labels.run }}{{ if ne $labels.rank "0" }} rank {{ $labels.rank }}{{ end }} on {{ $labels.instance }}'
const half = duration(PLATEAU_HALF_SECONDS)
const plateauSteps = lossPlateau.blockSteps * lossPlateau.blocks
const work = 'gpuwarden:training_work:mean10m_seconds'

const stepTimes = (lastStep: string) => [
  [run('training_last_step_timestamp_seconds'), lastStep] as const,
  [run('training_step_duration_seconds_sum'), '10x80'] as const,
  [run('training_step_duration_seconds_count'), '20x80'] as const,
]

/** Four ranks; `slow` seconds of work in each of the last one's steps, half a second in the others'. */
const ranks = (slow: number) =>
  [0.5, 0.5, 0.5, slow].flatMap((seconds, rank) => [
    [run('training_step_duration_seconds_sum', `rank="${rank}"`), `0+${seconds * 30}x120`] as const,
    [run('training_step_duration_seconds_count', `rank="${rank}"`), '0+30x120'] as const,
  ])

const training: readonly AlertRule[] = [
  {
    name: 'TrainingLossNotFinite',
    severity: 'critical',
    detector: 'loss_nan',
    expr: 'training_loss != training_loss or abs(training_loss) == Inf',
    forSeconds: 0,
    summary: `The loss of ${RUN} is {{ $value }}`,
    description: 'Every further step is wasted. Stop the run and go back to the last good checkpoint.',
    test: { fires: [[run('training_loss'), `1x10${' NaN'.repeat(30)}`]], quiet: [[run('training_loss'), '1x40']], atSeconds: 300 },
  },
  {
    name: 'TrainingLossNotDecreasing',
    severity: 'info',
    detector: 'loss_plateau',
    expr:
      `avg_over_time(training_loss[${half}]) > avg_over_time(training_loss[${half}] offset ${half})` +
      ` - ${lossPlateau.minImprovementRatio} * abs(avg_over_time(training_loss[${half}] offset ${half}))` +
      ` and training_steps_total - training_steps_total offset ${duration(2 * PLATEAU_HALF_SECONDS)} >= ${plateauSteps}`,
    forSeconds: 0,
    summary: `The loss of ${RUN} has not decreased for two hours`,
    description: 'It may have converged, or the learning rate may be too low or too high. The value is the mean of the last hour.',
    test: {
      fires: [
        [run('training_loss'), '2x600'],
        [run('training_steps_total'), '0+30x600'],
      ],
      quiet: [
        [run('training_loss'), '2-0.001x600'],
        [run('training_steps_total'), '0+30x600'],
      ],
      atSeconds: 8100,
    },
  },
  {
    name: 'TrainingGradientNormHigh',
    severity: 'warning',
    detector: 'grad_explosion',
    expr: `gradient_norm > ${gradExplosion.norm}`,
    forSeconds: TRAINING_HOLD_SECONDS,
    summary: `The gradient norm of ${RUN} is {{ $value | printf "%.1f" }}`,
    description: 'The gradient often explodes before the loss does. Clip it, lower the learning rate, or check the last batches.',
    test: { fires: [[run('gradient_norm'), '25x40']], quiet: [[run('gradient_norm'), '1x5 25x1 1x40']], atSeconds: 180 },
  },
  {
    name: 'TrainingStalled',
    severity: 'warning',
    detector: 'stall',
    expr:
      '(time() - training_last_step_timestamp_seconds{replay=""})' +
      ` > clamp_min(${stall.stepTimes} * training_step_duration_seconds_sum / training_step_duration_seconds_count, ${SHORTEST_STALL_SECONDS})` +
      ' unless on (job, instance, run) training_run_end_timestamp_seconds',
    forSeconds: 0,
    summary: `No step of ${RUN} for {{ $value | humanizeDuration }}`,
    description: `That is more than ${stall.stepTimes} times its usual step time. Look for a hanging collective, a waiting data loader, or a checkpoint on a slow disk.`,
    test: { fires: stepTimes('100x80'), quiet: stepTimes('0+15x80'), atSeconds: 600 },
  },
  {
    name: 'TrainingStraggler',
    severity: 'warning',
    detector: 'straggler',
    expr:
      `${work} / on (job, run) group_left quantile by (job, run) (0.5, ${work}) > ${straggler.ratio}` +
      ` and on (job, run) count by (job, run) (${work}) > 1`,
    forSeconds: STRAGGLER_HOLD_SECONDS,
    summary: `Rank {{ $labels.rank }} of run {{ $labels.run }} takes {{ $value | printf "%.2f" }} times as long per step as the others`,
    description: 'All other ranks wait for it. Check its GPU for heat, throttling or a second process, and its host for load.',
    test: { fires: ranks(0.8), quiet: ranks(0.55), atSeconds: 1500 },
  },
]

const watcher: readonly AlertRule[] = [
  {
    name: 'GpuwardenDown',
    severity: 'warning',
    detector: null,
    expr:
      `count by (job, instance) (last_over_time(gpuwarden_build_info[${duration(ABSENCE.memorySeconds)}]))` +
      ' unless count by (job, instance) (gpuwarden_build_info)',
    forSeconds: ABSENCE.holdSeconds,
    summary: 'gpuwarden on {{ $labels.instance }} is not reachable',
    description:
      'The agent, its host or the network is down, and its GPUs are not watched. The alert ends after an hour: the host then counts as removed.',
    test: {
      fires: [[agent('gpuwarden_build_info', 'version="1"'), '1x20 stale']],
      quiet: [
        [agent('gpuwarden_build_info', 'version="1"'), '1x20 stale'],
        [agent('gpuwarden_build_info', 'version="2"'), '_x20 1x60'],
      ],
      atSeconds: 600,
    },
  },
  {
    name: 'GpuwardenSourceDown',
    severity: 'warning',
    detector: 'driver_stuck',
    expr: 'gpuwarden_up == 0',
    forSeconds: ABSENCE.holdSeconds,
    summary: 'gpuwarden on {{ $labels.instance }} gets no data from {{ $labels.source }}',
    description: 'The driver does not answer or the sampler cannot start. Run gpuwarden doctor on the host.',
    test: {
      fires: [[agent('gpuwarden_up', 'source="nvidia"'), '0x40']],
      quiet: [[agent('gpuwarden_up', 'source="nvidia"'), '0x2 1x40']],
      atSeconds: 180,
    },
  },
  {
    name: 'GpuwardenStale',
    severity: 'warning',
    detector: 'source_stale',
    expr: `gpuwarden_sample_age_seconds > ${sourceStale.staleSeconds}`,
    forSeconds: 0,
    summary: 'The last sample of {{ $labels.source }} on {{ $labels.instance }} is {{ $value | humanizeDuration }} old',
    description: 'The agent answers, but its data is old: a driver call may hang.',
    test: {
      fires: [[agent('gpuwarden_sample_age_seconds', 'source="nvidia"'), '90x40']],
      quiet: [[agent('gpuwarden_sample_age_seconds', 'source="nvidia"'), '1x40']],
      atSeconds: 60,
    },
  },
  {
    name: 'GpuwardenDriverStuck',
    severity: 'critical',
    detector: 'driver_stuck',
    expr: `max_over_time(gpuwarden_source_restarts_total[15m]) - min_over_time(gpuwarden_source_restarts_total[15m]) >= ${driverStuck.restarts}`,
    forSeconds: 0,
    summary: 'The sampler of {{ $labels.source }} on {{ $labels.instance }} was restarted {{ $value }} times in 15 minutes',
    description: 'The driver keeps hanging. Check the kernel log; a reboot may be needed.',
    test: {
      fires: [[agent('gpuwarden_source_restarts_total', 'source="nvidia"'), '0x10 1x10 2x10 3x40']],
      quiet: [[agent('gpuwarden_source_restarts_total', 'source="nvidia"'), '7x40']],
      atSeconds: 540,
    },
  },
  {
    name: 'GpuwardenDropping',
    severity: 'warning',
    detector: null,
    expr: 'increase(gpuwarden_dropped_total[10m]) > 0',
    forSeconds: 0,
    summary: 'gpuwarden on {{ $labels.instance }} drops data: {{ $labels.sink }} cannot keep up',
    description: 'The disk is full or slow, or a push receiver refuses data. The log of gpuwarden says which.',
    test: {
      fires: [[agent('gpuwarden_dropped_total', 'sink="store"'), '0x10 5x60']],
      quiet: [[agent('gpuwarden_dropped_total', 'sink="store"'), '5x60']],
      atSeconds: 450,
    },
  },
]

export const RUN_ALERTS: readonly RuleGroup<AlertRule>[] = [
  { name: 'gpuwarden-training-runs', rules: training },
  { name: 'gpuwarden-itself', rules: watcher },
]
