import { describe, expect, it } from 'vitest'
import type { Finding } from '../core/model.ts'
import { ForecastTally } from './forecast-accuracy.ts'

const finding = (more: Partial<Finding>): Finding => ({
  ...{ fingerprint: 'oom|run=a', detector: 'oom', provenance: 'live', severity: 'warning', state: 'active', at: 0, since: 0 },
  subject: { host: null, gpu: null, gpuIndex: null, pid: null, user: null, run: 'a', rank: 0 },
  ...{ message: '', evidence: {}, confidence: 1, advice: [], riskLevel: null },
  ...{ predictedAt: 1000, predictedEarliestAt: null, predictedLatestAt: null },
  ...more,
})
const end = (print: string, evidence: Finding['evidence']) =>
  finding({ fingerprint: print, state: 'resolved', predictedAt: null, evidence })

describe('the accuracy of forecasts', () => {
  it('counts each forecast once, by what became of it', () => {
    const tally = new ForecastTally()
    for (const print of ['a', 'a', 'b', 'c', 'd']) tally.accept(finding({ fingerprint: print }))
    tally.accept(end('a', { outcome: 'came_true', lead_seconds: 72, error_seconds: -4 }))
    tally.accept(end('b', { outcome: 'did_not_happen' }))
    tally.accept(end('c', { outcome: 'unknown' }))
    tally.accept(end('never seen', { outcome: 'came_true' }))
    expect(tally.accuracy().rows).toEqual([
      {
        ...{ detector: 'oom', forecasts: 4, cameTrue: 1, didNotHappen: 1, unknown: 1, open: 1 },
        ...{ medianLeadSeconds: 72, medianErrorSeconds: 4 },
      },
    ])
  })

  it('counts deaths that nobody had warned of, each once', () => {
    const tally = new ForecastTally()
    const death = (print: string, warned: number | null) =>
      finding({ fingerprint: print, detector: 'run_died', evidence: { outcome: 'oom', forecast_seconds_before: warned } })
    for (const one of [death('x', null), death('y', 60), death('y', 60)]) tally.accept(one)
    tally.accept(finding({ fingerprint: 'z', detector: 'run_died', evidence: { outcome: 'failed' } }))
    expect(tally.accuracy()).toEqual({ rows: [], outOfMemory: 2, withoutWarning: 1 })
  })
})
