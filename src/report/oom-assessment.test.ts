import { describe, expect, it } from 'vitest'
import type { HubEvent } from '../core/kinds.ts'
import type { Finding, GpuInfo, GpuSample } from '../core/model.ts'
import { NO_READINGS } from '../core/record.ts'
import { OomAssessment, type OomPrediction } from './oom-assessment.ts'
import { oomWarning } from './oom-warning.ts'

const TOTAL = 1000
const info = { id: 'GPU-a', index: 0, label: '0', provenance: 'live', mig: null, memoryTotalBytes: TOTAL } as GpuInfo

function tick(at: number, used: number | null, pids: readonly number[] = [1]): HubEvent {
  const processes = pids.map((pid) => ({ pid, memoryUsedBytes: used }) as never)
  const sample: GpuSample = {
    ...NO_READINGS,
    kind: 'gpu',
    at,
    gpu: info.id,
    state: 'ok',
    stateReason: null,
    slowAt: null,
    memoryUsedBytes: used,
    memoryTotalBytes: TOTAL,
    processes,
  }
  return { type: 'tick', tick: { seq: 1, at, source: 'x', provenance: 'live', gpus: [sample], processes: [], host: null, events: [] } }
}

function finding(at: number, parts: Partial<Finding> = {}): Finding {
  return {
    fingerprint: 'oom|gpu=GPU-a',
    detector: 'oom',
    provenance: 'live',
    subject: { host: null, gpu: 'GPU-a', gpuIndex: 0, pid: null, user: null, run: null, rank: null },
    severity: 'warning',
    state: 'active',
    at,
    since: at,
    message: 'it is full soon',
    evidence: {},
    confidence: 0.82,
    advice: ['Prepare to release cache', 'Consider reducing batch size'],
    predictedAt: at + 45_200,
    predictedEarliestAt: at + 30_000,
    predictedLatestAt: at + 60_000,
    riskLevel: 'high',
    ...parts,
  }
}

function watched() {
  const warnings: OomPrediction[] = []
  const assessment = new OomAssessment({ thresholdPercent: 85, devices: null, onWarning: (one) => warnings.push(one) })
  assessment.accept({ type: 'devices', devices: [info] })
  return { assessment, warnings }
}

describe('the warning', () => {
  it('is printed as promised', () => {
    const { assessment, warnings } = watched()
    assessment.accept(tick(0, 873))
    warnings.length = 0
    assessment.acceptFinding(finding(1000))
    expect(warnings.map(oomWarning)).toEqual([
      [
        '[WARNING] OOM Warning: GPU 0',
        '   Risk Level: high',
        '   Current Usage: 87.3%',
        '   Predicted OOM Time: 45.2seconds later',
        '   Confidence: 0.82',
        '   Recommendation: Prepare to release cache',
        '   Recommendation: Consider reducing batch size',
      ].join('\n'),
    ])
  })

  it('is not given again at once, but when the risk changes', () => {
    const { assessment, warnings } = watched()
    assessment.accept(tick(0, 500))
    for (const at of [1000, 2000, 3000]) assessment.acceptFinding(finding(at))
    assessment.acceptFinding(finding(4000, { riskLevel: 'critical' }))
    assessment.acceptFinding(finding(20_000, { riskLevel: 'critical' }))
    expect(warnings.map((one) => [one.at, one.riskLevel])).toEqual([
      [1000, 'high'],
      [4000, 'critical'],
      [20_000, 'critical'],
    ])
  })
})

describe('a level', () => {
  it('above the threshold is a warning once, without a time', () => {
    const { assessment, warnings } = watched()
    for (let i = 0; i < 100; i++) assessment.accept(tick(i * 100, 860 + (i % 2) * 5))
    expect(warnings.map((one) => [one.riskLevel, one.predictedSeconds])).toEqual([['medium', null]])
    expect(assessment.predictions()[0]?.riskLevel).toBe('medium')
  })

  it('that is nearly the limit is high, and news again after it fell', () => {
    const { assessment, warnings } = watched()
    for (const [at, used] of [
      [0, 990],
      [10_000, 400],
      [20_000, 990],
    ] as const)
      assessment.accept(tick(at, used))
    expect(warnings.map((one) => one.riskLevel)).toEqual(['high', 'high'])
    expect(assessment.predictions()[0]?.riskLevel).toBe('high')
  })

  it('that is not known is no risk, and said to be so', () => {
    const { assessment } = watched()
    assessment.accept(tick(0, null))
    expect(assessment.predictions()[0]).toMatchObject({
      riskLevel: 'low',
      currentUsagePercent: null,
      message: expect.stringContaining('unknown'),
    })
  })
})

describe('the gravest of a time', () => {
  it('stands when its process ended, and not when it was taken back', () => {
    const ended = watched().assessment
    ended.accept(tick(0, 500))
    ended.acceptFinding(finding(1000, { riskLevel: 'critical' }))
    ended.accept(tick(2000, 0, []))
    ended.acceptFinding(finding(2000, { state: 'resolved' }))
    expect(ended.worst()[0]?.riskLevel).toBe('critical')
    const takenBack = watched().assessment
    takenBack.accept(tick(0, 500))
    takenBack.acceptFinding(finding(1000, { riskLevel: 'critical' }))
    takenBack.acceptFinding(finding(2000, { state: 'resolved' }))
    expect(takenBack.worst()[0]?.riskLevel).toBe('low')
  })
})
