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
