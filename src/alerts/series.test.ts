import { describe, expect, it } from 'vitest'
import type { Alert, History, HistoryQuery } from '../kinds.ts'
import { finding, GIB, gpuInfo, HOUR, MINUTE, NOON, pretendWorld } from './pretend-world.contract.ts'
import { seriesFor } from './series.ts'

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
