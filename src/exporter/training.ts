/** What training code reports, by run and rank. NaN and infinities are values here. */
import { peakFlops } from '../core/card-peaks.ts'
import type { StepFigure } from '../core/fields/step.ts'
import { isGpuOfRun } from '../core/known/about-gpu.ts'
import type { GpuInfo, Reading, Run } from '../core/model.ts'
import { mfuOf } from '../core/model-work.ts'
import { TOKENS_PER_SECOND } from '../core/rank-groups.ts'
import { STEP_COLUMNS } from '../core/record.ts'
import { type RunTime, TIME_PARTS } from '../core/run-time.ts'
import { Labels } from './labels.ts'
import { type Metric, metric } from './metric.ts'
import { type RankEntry, STEP_SECONDS_BUCKETS, type TrainingMetrics } from './training-metrics.ts'
import { mebibytes, seconds } from './units.ts'

const LABELS = ['run', 'rank']

type TrainingMetric = Metric<TrainingMetrics>

/** Runs beside the cards of this machine. */
export interface RunsOnCards {
  readonly training: TrainingMetrics
  readonly gpus: readonly GpuInfo[]
  /** What the wall time of a run went to; null: not known. */
  readonly timeOf: (run: string) => RunTime | null
}

function perRank(type: 'gauge' | 'counter', name: string, unit: string, help: string, of: (rank: RankEntry) => Reading): TrainingMetric {
  return metric(type, name, unit, help, LABELS, (training, emit) => {
    for (const rank of training.ranks()) emit(rank.labels, of(rank))
  })
}

const gauge = (name: string, unit: string, help: string, field: StepFigure): TrainingMetric =>
  perRank('gauge', name, unit, help, (rank) => rank.latest[field])

/** A counter is a number from 0 up; training code may say otherwise. */
const counter = (name: string, help: string, field: StepFigure): TrainingMetric =>
  perRank('counter', name, '', help, ({ latest }) => {
    const count = latest[field]
    return count !== null && count >= 0 && count < Number.POSITIVE_INFINITY ? count : null
  })

function named(
  name: string,
  unit: string,
  help: string,
  label: string,
  of: (rank: RankEntry) => ReadonlyMap<string, number>,
): TrainingMetric {
  return metric('gauge', name, unit, help, [...LABELS, label], (training, emit) => {
    for (const rank of training.ranks()) for (const [key, value] of of(rank)) emit(rank.labels.and(Labels.of({ [label]: key })), value)
  })
}

const MEMORY = STEP_COLUMNS.filter(({ scale }) => scale === 'mebibytes').map(({ field, sent }) => ({
  field,
  kind: Labels.of({ kind: sent }),
}))

/** `1.0`, not `1`: the spelling that OpenMetrics asks for, so that both formats give the same series. */
const BOUNDS = STEP_SECONDS_BUCKETS.map((bound) => Labels.of({ le: Number.isInteger(bound) ? `${bound}.0` : String(bound) }))
const NO_BOUND = Labels.of({ le: '+Inf' })

export const TRAINING_METRICS: readonly TrainingMetric[] = [
  gauge('training_loss', '', 'Loss of the latest step that reported one.', 'loss'),
  perRank('counter', 'training_steps_total', '', 'Training steps done.', (rank) => rank.steps),
  gauge('training_epoch', '', 'Epoch, with its fraction.', 'epoch'),
  gauge('learning_rate', '', 'Learning rate.', 'learningRate'),
  gauge('gradient_norm', '', 'L2 norm of the gradient.', 'gradientNorm'),
  metric('histogram', 'training_step_duration_seconds', 'seconds', 'How long steps took.', LABELS, (training, emit) => {
    for (const { labels, bucketCounts, secondsSum } of training.ranks()) {
      let count = 0
      for (const [at, bound] of BOUNDS.entries()) {
        count += bucketCounts[at] ?? 0
        emit(labels.and(bound), count, '_bucket')
      }
      count += bucketCounts.at(-1) ?? 0
      emit(labels.and(NO_BOUND), count, '_bucket')
      emit(labels, secondsSum, '_sum')
      emit(labels, count, '_count')
    }
  }),
  metric('gauge', 'memory_allocation_mb', 'MiB', 'Memory of the PyTorch allocator.', [...LABELS, 'kind'], (training, emit) => {
    for (const { labels, latest } of training.ranks())
      for (const { kind, field } of MEMORY) emit(labels.and(kind), mebibytes(latest[field]))
  }),
  gauge(
    'training_throughput_samples_per_second',
    'samples per second',
    'Samples per second, as the training code counts them.',
    'throughputPerSecond',
  ),
  counter('training_alloc_retries_total', 'Times the allocator freed its cache and tried again.', 'allocRetries'),
  counter('training_ooms_total', 'Times the allocator ran out of memory.', 'oomCount'),
  named(
    'training_phase_seconds',
    'seconds',
    'How long a part of the latest step took, by the clock of the GPU where it is known.',
    'phase',
    (rank) => rank.phases,
  ),
  named('training_custom', '', 'A custom figure reported by the training code.', 'metric', (rank) => rank.custom),
  perRank('gauge', 'training_last_step_timestamp_seconds', 'seconds', 'When the latest step ended, in Unix time.', (rank) =>
    seconds(rank.lastAt),
  ),
  metric(
    'gauge',
    'training_run_end_timestamp_seconds',
    'seconds',
    'When a run ended, in Unix time; absent while it is running.',
    ['run'],
    (training, emit) => {
      for (const { labels, at } of training.runEnds()) emit(labels, seconds(at))
    },
  ),
  metric(
    'counter',
    'gpuwarden_run_ended_total',
    '',
    'Runs that ended since the agent started, by outcome: success, oom, nan, killed, failed.',
    ['outcome'],
    (training, emit) => {
      for (const { labels, count } of training.ends()) emit(labels, count)
    },
  ),
  metric('gauge', 'training_run_info', '', 'Name and owner of a run; always 1.', ['run', 'name', 'user', 'host'], (training, emit) => {
    for (const info of training.runInfos()) emit(info, 1)
  }),
]

/** Of runs as a whole. */
export const RUN_METRICS: readonly Metric<RunsOnCards>[] = [
  metric(
    'gauge',
    'training_goodput_ratio',
    'ratio',
    'Productive share of the wall time of a run, so far.',
    ['run'],
    ({ training, timeOf }, emit) => {
      for (const { labels, run } of training.works()) emit(labels, timeOf(run.id)?.goodputRatio ?? null)
    },
  ),
  metric(
    'gauge',
    'training_wall_seconds',
    'seconds',
    'What the wall time of a run went to: productive, startup, data, checkpoint, evaluation, repeated, hang, rest.',
    ['run', 'part'],
    ({ training, timeOf }, emit) => {
      for (const { labels, run } of training.works()) {
        const time = timeOf(run.id)
        for (const part of TIME_PARTS) emit(labels.and(Labels.of({ part })), time?.seconds[part] ?? null)
      }
    },
  ),
  metric(
    'gauge',
    'training_mfu_ratio',
    'ratio',
    'Model FLOPs utilization of the latest step; absent where the model, its pace or the peak of the card is not known.',
    ['run'],
    ({ training, gpus }, emit) => {
      for (const { labels, run, rank } of training.works()) emit(labels, rank === null ? null : latestMfu(run, rank, gpus))
    },
  ),
]

function latestMfu({ model, gpus: names }: Run, { latest, custom }: RankEntry, gpus: readonly GpuInfo[]): Reading {
  const own = gpus.find((gpu) => names.some((name) => isGpuOfRun(gpu, name)))
  const pace = { samplesPerSecond: latest.throughputPerSecond, tokensPerSecond: custom.get(TOKENS_PER_SECOND) ?? null }
  return mfuOf(model, pace, peakFlops(own?.name ?? null, model?.computeType ?? null))
}
