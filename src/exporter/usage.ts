/** What each user used of the GPUs: counters from the ledger, which go on after a restart. */
import { Labels, provenanceLabels } from './labels.ts'
import { type Metric, metric } from './metric.ts'

export interface UserFigures {
  readonly user: string
  readonly simulated: boolean
  readonly gpuSeconds: number
  readonly busySeconds: number
  readonly idleSeconds: number
  readonly energyJoules: number
}

type UsageMetric = Metric<readonly UserFigures[]>

function perUser(name: string, unit: string, help: string, value: (figures: UserFigures) => number): UsageMetric {
  return metric('counter', name, unit, help, ['user'], (users, emit) => {
    for (const figures of users)
      emit(Labels.of({ user: figures.user }).and(provenanceLabels(figures.simulated ? 'simulated' : 'live')), value(figures))
  })
}

export const USAGE_METRICS: readonly UsageMetric[] = [
  perUser(
    'gpuwarden_user_gpu_seconds_total',
    'seconds',
    'GPU time that a user held; a shared card is split by memory.',
    (one) => one.gpuSeconds,
  ),
  perUser(
    'gpuwarden_user_gpu_busy_seconds_total',
    'seconds',
    'GPU time that a user held, times utilization; a shared card is split by activity where it is known.',
    (one) => one.busySeconds,
  ),
  perUser(
    'gpuwarden_user_gpu_idle_held_seconds_total',
    'seconds',
    'GPU time in which a user held memory and computed nothing, beyond the first minute.',
    (one) => one.idleSeconds,
  ),
  perUser('gpuwarden_user_energy_joules_total', 'joules', 'Energy of the GPUs that a user held.', (one) => one.energyJoules),
]
