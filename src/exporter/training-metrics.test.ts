import { describe, expect, it } from 'vitest'
import { runWith } from '../core/model.fixture.ts'
import type { Run } from '../core/model.ts'
import { createExporter } from './exporter.ts'
import { readExposition } from './exposition.contract.ts'
import { agentState, NOW, naming, trainingStep } from './fixed-state.contract.ts'
import { TrainingMetrics } from './training-metrics.ts'

const run = (id: string, endedAt: number | null): Run => runWith({ id, name: id, startedAt: NOW, endedAt })

function seriesOf(training: TrainingMetrics, name: string) {
  const { series } = readExposition(createExporter({ naming, state: agentState(), sets: ['native'], maxProcesses: 0, training }).render())
  return series.filter((one) => one.name === name)
}

const latest = (training: TrainingMetrics, name: string) => seriesOf(training, name)[0]?.value ?? null

describe('TrainingMetrics', () => {
  it('counts each end once, by its outcome', () => {
    const training = new TrainingMetrics(() => NOW)
    const end = (id: string, outcome: Run['outcome']) => training.acceptRun({ ...run(id, NOW), outcome })
    end('a', 'oom')
    end('a', 'oom')
    end('b', 'killed')
    end('b', 'oom')
    training.acceptRun(run('a', null))
    end('a', 'oom')
    const counts = seriesOf(training, 'gpuwarden_run_ended_total').map(({ labels, value }) => [labels.outcome, value])
    expect(counts).toEqual([
      ['oom', 2],
      ['killed', 1],
    ])
  })

  it('sets simulated runs apart', () => {
    const training = new TrainingMetrics(() => NOW)
    training.acceptRun({ ...run('real', NOW), outcome: 'oom' })
    training.acceptRun({ ...run('pretended', NOW), outcome: 'oom', provenance: 'simulated' })
    const marks = (name: string) => seriesOf(training, name).map(({ labels, value }) => [labels.simulated, value])
    expect(marks('gpuwarden_run_ended_total')).toEqual([
      [undefined, 1],
      ['true', 1],
    ])
    expect(marks('training_run_info').map(([mark]) => mark)).toEqual([undefined, 'true'])
    expect(marks('training_run_end_timestamp_seconds').map(([mark]) => mark)).toEqual([undefined, 'true'])
  })

  it('keeps the last value that was reported, NaN and infinities too', () => {
    const training = new TrainingMetrics(() => NOW)
    training.accept([
      trainingStep({ loss: 0.5, learningRate: 1e-4 }),
      trainingStep({ step: 2, loss: null }),
      trainingStep({ step: 3, gradientNorm: Number.NaN }),
    ])
    expect(latest(training, 'training_loss')).toBe(0.5)
    expect(latest(training, 'learning_rate')).toBe(1e-4)
    expect(latest(training, 'gradient_norm')).toBeNaN()
    expect(latest(training, 'training_epoch')).toBe(null)
  })

  it('counts steps by their number, and never backwards', () => {
    const training = new TrainingMetrics(() => NOW)
    const counted = (step: number) => {
      training.accept([trainingStep({ step })])
      return latest(training, 'training_steps_total')
    }
    expect([100, 101, 110, 50, 60].map(counted)).toEqual([100, 101, 110, 110, 120])
  })

  it('is not put back by steps that come late', () => {
    const training = new TrainingMetrics(() => NOW)
    training.accept([trainingStep({ step: 10, at: NOW, loss: 1 }), trainingStep({ step: 4, at: NOW - 5000, loss: 9, stepSeconds: 1 })])
    expect(latest(training, 'training_loss')).toBe(1)
    expect(latest(training, 'training_steps_total')).toBe(10)
    expect(latest(training, 'training_step_duration_seconds_count')).toBe(1)
  })

  it('keeps a cumulative histogram of step times', () => {
    const training = new TrainingMetrics(() => NOW)
    for (const stepSeconds of [0.005, 0.3, 0.5, 61, Number.NaN, -1, null]) training.accept([trainingStep({ stepSeconds })])
    const buckets = Object.fromEntries(
      seriesOf(training, 'training_step_duration_seconds_bucket').map(({ labels, value }) => [labels.le, value]),
    )
    expect(buckets).toMatchObject({ '0.005': 1, '0.25': 1, '0.5': 3, '60.0': 3, '+Inf': 4 })
    expect(latest(training, 'training_step_duration_seconds_sum')).toBeCloseTo(61.805)
  })

  it('forgets a run ten minutes after its end, and a silent one after an hour', () => {
    let now = NOW
    const training = new TrainingMetrics(() => now)
    training.accept([trainingStep({ run: 'ended' }), trainingStep({ run: 'silent' })])
    training.acceptRun(run('ended', NOW))
    const shown = () => seriesOf(training, 'training_steps_total').map(({ labels }) => labels.run)
    now += 599_000
    training.acceptRun(run('ended', NOW))
    expect(shown()).toEqual(['silent', 'ended'])
    now += 1000
    expect(shown()).toEqual(['silent'])
    now = NOW + 3_600_000
    expect(shown()).toEqual([])
  })

  it('remembers at most 32 runs of 64 ranks, the latest, and counts what it forgot', () => {
    const training = new TrainingMetrics(() => NOW)
    for (let at = 0; at < 40; at++) {
      training.accept([trainingStep({ run: `r${at}` })])
      training.accept([trainingStep({ run: 'kept' })])
    }
    const runs = new Set(training.ranks().map(({ labels }) => labels.text))
    expect(runs.size).toBe(32)
    expect(runs.has('run="kept",rank="0"')).toBe(true)
    expect(runs.has('run="r39",rank="0"')).toBe(true)
    expect(runs.has('run="r8",rank="0"')).toBe(false)
    expect(training.evicted).toBe(9)
    training.accept(Array.from({ length: 70 }, (_, rank) => trainingStep({ run: 'wide', rank })))
    expect(training.ranks().filter(({ labels }) => labels.text.startsWith('run="wide"')).length).toBe(64)
  })

  it('shows phases by one clock: the GPU’s once a step had it', () => {
    const training = new TrainingMetrics(() => 1000)
    training.accept([trainingStep({ phaseSeconds: { data: 1, forward: 2 } })])
    training.accept([trainingStep({ phaseSeconds: { data: 1, checkpoint: 5, 'data@gpu': 0.25, 'forward@gpu': 3, 'checkpoint@gpu': 4.5 } })])
    training.accept([trainingStep({ phaseSeconds: { data: 9, forward: 9 } })])
    const phases = training.ranks().map((rank) => Object.fromEntries(rank.phases))
    expect(phases).toEqual([{ data: 0.25, forward: 3, checkpoint: 4.5 }])
  })

  it('keeps at most 16 names of phases and of figures', () => {
    const training = new TrainingMetrics(() => NOW)
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`n${at}`, at]))
    training.accept([trainingStep({ custom: many, phaseSeconds: many })])
    expect(seriesOf(training, 'training_custom').length).toBe(16)
    expect(seriesOf(training, 'training_phase_seconds').length).toBe(16)
  })

  it('marks what was recorded or simulated', () => {
    const training = new TrainingMetrics(() => NOW)
    training.accept([trainingStep({ run: 'old' })], 'replay')
    expect(seriesOf(training, 'training_steps_total')[0]?.labels).toEqual({ run: 'old', rank: '0', replay: 'true' })
  })
})
