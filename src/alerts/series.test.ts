import { describe, expect, it } from 'vitest'
import type { Alert } from '../core/alert-contract.ts'
import type { History, HistoryQuery } from '../core/kinds.ts'
import type { FindingSubject, GpuInfo, TrainingStep } from '../core/model.ts'
import { NO_FIGURES } from '../core/record.ts'
import { detectors } from '../detectors/index.ts'
import { finding, GIB, gpuInfo, HOUR, MINUTE, NOON, pretendWorld } from './pretend-world.contract.ts'
import { seriesFor as drawn } from './series.ts'
import { StepCourses } from './step-courses.ts'

const chartsOf = (name: string) => detectors.find((detector) => detector.name === name)?.charts ?? []

function seriesFor(alert: Alert, history: History, info: GpuInfo | undefined, now: number) {
  return drawn(alert, chartsOf(alert.finding.detector), { history, info, courses: new StepCourses() }, now)
}

function stepSeriesFor(alert: Alert, courses: StepCourses, now: number) {
  return drawn(alert, chartsOf(alert.finding.detector), { history: undefined, info: undefined, courses }, now)
}

function alertOf(detector: string, evidence = {}): Alert {
  const none = { resolvedAt: null, gpuLabel: null, gpuName: null, process: null, series: null }
  const said = finding('a', NOON, { detector, evidence, since: NOON - MINUTE, subject: { gpu: 'GPU-0' } })
  return { fingerprint: 'a', status: 'firing', finding: said, firedAt: NOON, ...none }
}

function historyOf(value: (index: number) => number | null, count = 600): { history: History; asked: HistoryQuery[] } {
  const asked: HistoryQuery[] = []
  const query = (given: HistoryQuery) => {
    asked.push(given)
    const at = Array.from({ length: count }, (_, index) => NOON - HOUR + index * 1000)
    return { gpu: given.gpu, fields: given.fields, stepMs: 0, data: [at, at.map((_, index) => value(index))], min: null, max: null }
  }
  return { history: { query }, asked }
}

describe('the chart of an alert', () => {
  it('shows the reading its detector looked at, with its limit, and not too fine', () => {
    const { history, asked } = historyOf((index) => index * 0.01 * GIB)
    const series = seriesFor(alertOf('intruder'), history, gpuInfo(0), NOON + 5 * MINUTE)
    expect(asked).toMatchObject([{ gpu: 'GPU-0', fields: ['memoryUsedBytes'], from: NOON - 31 * MINUTE, to: NOON + 5 * MINUTE }])
    expect(series).toMatchObject({ unit: 'bytes', limit: 24 * GIB })
    expect(series?.values.length).toBe(series?.at.length)
    expect(series?.values.length).toBeLessThanOrEqual(120)
    expect(series?.values[1]).toBe(0.05 * GIB)
  })

  it('takes the limit from the evidence', () => {
    const { history } = historyOf(() => 84)
    expect(seriesFor(alertOf('thermal', { limit_celsius: 87 }), history, undefined, NOON)?.limit).toBe(87)
  })

  it('is drawn from what there is when the watching has only begun', () => {
    const asked: HistoryQuery[] = []
    // Half a minute of samples; further back there are only minutes, of which two are known.
    const query = (given: HistoryQuery) => {
      asked.push(given)
      const [count, stepMs] = given.stepMs === null && given.from >= NOON - 3 * MINUTE ? [300, 100] : [2, MINUTE]
      const at = Array.from({ length: count }, (_, index) => NOON - 30_000 + index * stepMs)
      return {
        gpu: given.gpu,
        fields: given.fields,
        stepMs: 0,
        data: [at, at.map((_, index) => (index === 0 ? null : 5))],
        min: null,
        max: null,
      }
    }
    const series = seriesFor(alertOf('leak'), { query }, undefined, NOON)
    expect(asked.map(({ from, stepMs }) => [NOON - from, stepMs])).toEqual([
      [31 * MINUTE, 16_000],
      [10 * MINUTE, null],
      [3 * MINUTE, null],
    ])
    expect(series?.values.length).toBeGreaterThan(90)
    expect(series?.at[0]).toBe(NOON - 30_000 + 100)
  })

  it('is of the GPU that a run names by its number', () => {
    const { history, asked } = historyOf(() => GIB)
    const alert = alertOf('oom')
    const ofRun = { ...alert, finding: { ...alert.finding, subject: { ...alert.finding.subject, gpu: null, gpuIndex: 1, run: 'r' } } }
    expect(seriesFor(ofRun, history, gpuInfo(1), NOON)).not.toBe(null)
    expect(asked[0]?.gpu).toBe('GPU-1')
    expect(seriesFor(ofRun, history, undefined, NOON)).toBe(null)
  })

  it('is none where there is nothing to draw', () => {
    const { history } = historyOf(() => null)
    expect(seriesFor(alertOf('thermal'), history, undefined, NOON)).toBe(null)
    expect(seriesFor(alertOf('loss_nan'), history, undefined, NOON)).toBe(null)
  })

  it('is in the message; a history that fails costs the chart, not the message', async () => {
    const { history } = historyOf(() => 84)
    const world = pretendWorld({ more: { history } })
    world.say('hot', { detector: 'thermal', subject: { gpu: 'GPU-0' } })
    await world.pass(MINUTE)
    expect(world.channel.got[0]?.alerts[0]?.series).toMatchObject({ unit: 'celsius' })
    const broken: History = {
      query: () => {
        throw new Error('no history')
      },
    }
    const unlucky = pretendWorld({ more: { history: broken } })
    unlucky.say('hot', { detector: 'thermal', subject: { gpu: 'GPU-0' } })
    await unlucky.pass(MINUTE)
    expect(unlucky.channel.got[0]?.alerts[0]?.series).toBe(null)
    expect(unlucky.log.lines.map((line) => line.level)).toEqual(['error'])
  })
})

function stepOf(index: number, parts: Partial<TrainingStep> = {}): TrainingStep {
  const figures = { ...NO_FIGURES, loss: 1, gradientNorm: 2, stepSeconds: 0.5, phaseSeconds: null, custom: null }
  return { kind: 'step', at: NOON - MINUTE + index * 100, run: 'r', rank: 0, step: index, ...figures, ...parts }
}

function runAlert(detector: string, subject: Partial<FindingSubject> = {}, evidence = {}): Alert {
  const alert = alertOf(detector, evidence)
  return { ...alert, finding: { ...alert.finding, subject: { ...alert.finding.subject, gpu: null, run: 'r', ...subject } } }
}

describe('the chart of an alert about a run', () => {
  it('shows the loss, with a gap where it was no number', () => {
    const courses = new StepCourses()
    courses.accept([stepOf(0, { loss: 3 }), stepOf(1, { loss: 2 }), stepOf(2, { loss: Number.NaN }), stepOf(3, { loss: null })])
    expect(stepSeriesFor(runAlert('loss_nan'), courses, NOON)).toEqual({
      ...{ title: 'Loss', unit: 'count', limit: null },
      at: [0, 1, 2, 3].map((index) => NOON - MINUTE + index * 100),
      values: [3, 2, null, null],
    })
  })

  it('shows gradients with their limit, and step times of the rank that it is about', () => {
    const courses = new StepCourses()
    for (let index = 0; index < 10; index++) courses.accept([stepOf(index, { rank: 1, stepSeconds: 4 }), stepOf(index)])
    expect(stepSeriesFor(runAlert('grad_explosion', {}, { level: 100 }), courses, NOON)).toMatchObject({
      limit: 100,
      values: Array(10).fill(2),
    })
    expect(stepSeriesFor(runAlert('straggler', { rank: 1 }), courses, NOON)).toMatchObject({ unit: 'seconds', values: Array(10).fill(4) })
    expect(stepSeriesFor(runAlert('stall'), courses, NOON)?.values).toEqual(Array(10).fill(0.5))
  })

  it('takes the time of a step from when it was done where none is given', () => {
    const courses = new StepCourses()
    for (let index = 0; index < 4; index++) courses.accept([stepOf(index, { stepSeconds: null })])
    expect(stepSeriesFor(runAlert('stall'), courses, NOON)?.values).toEqual([null, 0.1, 0.1, 0.1])
  })

  it('shows a spike of one step in a long run, and stays small', () => {
    const courses = new StepCourses()
    for (let index = 0; index < 5000; index++)
      courses.accept([stepOf(index, { at: NOON - 500_000 + index * 100, loss: index === 4000 ? 50 : index === 4990 ? 70 : 1 })])
    const series = stepSeriesFor(runAlert('loss_spike'), courses, NOON)
    expect(series?.values.length).toBeLessThanOrEqual(120)
    expect(series?.values.filter((value) => value !== 1)).toEqual([50, 70])
    const at = series?.at ?? []
    expect([...at].sort((a, b) => a - b)).toEqual(at)
  })

  it('shows how it was before, long after there were no numbers any more', () => {
    const courses = new StepCourses()
    for (let index = 0; index < 3000; index++)
      courses.accept([stepOf(index, { at: NOON - 300_000 + index * 100, loss: index < 400 ? 400 - index : Number.NaN })])
    const { at = [], values = [] } = stepSeriesFor(runAlert('loss_nan'), courses, NOON) ?? {}
    expect(values.filter((value) => value !== null).length).toBeGreaterThan(5)
    expect(values[0]).toBe(400)
    expect(at.at(-1)).toBeGreaterThan(NOON - 1000)
    expect(at.length).toBeLessThanOrEqual(120)
  })

  it('is not there for other problems, unknown runs, or a single step', () => {
    const courses = new StepCourses()
    courses.accept([stepOf(0)])
    expect(stepSeriesFor(runAlert('loss_spike'), courses, NOON)).toBe(null)
    courses.accept([stepOf(1)])
    expect(stepSeriesFor(runAlert('loss_spike'), courses, NOON)).not.toBe(null)
    expect(stepSeriesFor(runAlert('loss_spike', { run: 'other' }), courses, NOON)).toBe(null)
    expect(stepSeriesFor(runAlert('xid'), courses, NOON)).toBe(null)
  })

  it('forgets the run that was heard of longest ago, and follows 64 ranks of one', () => {
    const courses = new StepCourses()
    for (const run of 'abcdefgh') courses.accept([stepOf(0, { run }), stepOf(1, { run })])
    courses.accept([stepOf(2, { run: 'a' }), stepOf(0, { run: 'i' })])
    const known = (run: string) => courses.points(run, null, 'loss', 0, NOON * 2).at.length
    expect([...'abci'].map(known)).toEqual([3, 0, 2, 1])
    for (let rank = 0; rank < 100; rank++) courses.accept([stepOf(0, { rank, run: 'wide' })])
    expect(courses.points('wide', 63, 'loss', 0, NOON).at).toHaveLength(1)
    expect(courses.points('wide', 64, 'loss', 0, NOON).at).toHaveLength(0)
  })

  it('is in the message', async () => {
    const world = pretendWorld()
    world.alerts.accept({ type: 'steps', steps: [0, 1, 2].map((index) => stepOf(index, { loss: index })), provenance: 'live' })
    world.say('loss_spike|run=r', { detector: 'loss_spike', subject: { run: 'r' } })
    await world.pass(MINUTE)
    expect(world.channel.got[0]?.alerts[0]?.series).toMatchObject({ title: 'Loss', values: [0, 1, 2] })
  })
})
