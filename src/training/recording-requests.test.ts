import { describe, expect, it } from 'vitest'
import type { LineRecording } from '../core/memory/line-recording.ts'
import type { Finding } from '../core/model.ts'
import { RecordingRequests, stepsFor } from './recording-requests.ts'

const T = 1.8e12
const MINUTE = 60_000

function world() {
  let at = T
  const requests = new RecordingRequests(() => at)
  return { requests, pass: (ms: number) => (at += ms), now: () => at }
}

function finding(more: Partial<Finding> = {}, rank = 0): Finding {
  return {
    fingerprint: `leak|run=r|rank=${rank}`,
    detector: 'leak',
    provenance: 'live',
    subject: { host: null, gpu: null, gpuIndex: null, pid: null, user: null, run: 'r', rank },
    severity: 'warning',
    state: 'active',
    at: T,
    since: T - MINUTE,
    message: '',
    evidence: { source: 'allocator' },
    confidence: 1,
    advice: [],
    predictedAt: null,
    predictedEarliestAt: null,
    predictedLatestAt: null,
    riskLevel: null,
    ...more,
  }
}

function result(id: string, lines: number, reason: string | null = null): LineRecording {
  const line = { file: 'a.py', line: 1, function: null, bytes: 1, blocks: 1, bytesPerStep: 1, share: 1 }
  return {
    ...{ id, kind: 'gpu', trigger: 'leak', rank: 0, at: T, reason, steps: 20, lines: Array(lines).fill(line), holders: [] },
    ...{ grownBytes: 1, stepSecondsBefore: null, stepSecondsDuring: null, snapshotPath: null },
  }
}

describe('requests to record', () => {
  it('follow from a leak or a near end of a real run, and from nothing else', () => {
    const asks = (more: Partial<Finding>) => world().requests.afterFinding(finding(more)) !== null
    expect(asks({})).toBe(true)
    expect(asks({ detector: 'oom' })).toBe(true)
    expect(asks({ detector: 'oom', severity: 'info' })).toBe(false)
    expect(asks({ state: 'resolved' })).toBe(false)
    expect(asks({ provenance: 'simulated' })).toBe(false)
    expect(asks({ provenance: 'replay' })).toBe(false)
    expect(asks({ evidence: { source: 'device' } })).toBe(false)
    expect(asks({ detector: 'stall' })).toBe(false)
    expect(asks({ subject: { ...finding().subject, run: null } })).toBe(false)
  })

  it('are repeated to the rank that leaks until its result is there', () => {
    const { requests } = world()
    const request = requests.afterFinding(finding({}, 3))
    expect(requests.orderFor('r', 0, 0.1)).toBeNull()
    expect(requests.orderFor('other', 3, 0.1)).toBeNull()
    const order = requests.orderFor('r', 3, 0.1)
    expect(order).toEqual({ id: request?.id, kind: 'gpu', steps: 40, trigger: 'leak' })
    expect(requests.orderFor('r', 3, 0.1)).toEqual(order)
    requests.done('r', { ...result(order?.id ?? '', 1), rank: 3 })
    expect(requests.orderFor('r', 3, 0.1)).toBeNull()
  })

  it('stop once the line is known, until another leak begins', () => {
    const { requests, pass, now } = world()
    requests.done('r', result(requests.afterFinding(finding())?.id ?? '', 1))
    pass(10 * MINUTE)
    expect(requests.afterFinding(finding())).toBeNull()
    expect(requests.afterFinding(finding({ detector: 'oom', evidence: { source: 'allocator' } }))).toBeNull()
    expect(requests.afterFinding(finding({ since: now() }))).not.toBeNull()
  })

  it('stop when the program cannot, and after three that found nothing, each longer than the one before', () => {
    const { requests, pass } = world()
    requests.done('r', result(requests.afterFinding(finding())?.id ?? '', 0, 'the program records its memory history itself'))
    pass(10 * MINUTE)
    expect(requests.afterFinding(finding())).toBeNull()

    const other = world()
    const steps: (number | null | undefined)[] = []
    for (let attempt = 0; attempt < 6; attempt++) {
      const request = other.requests.afterFinding(finding())
      if (request) other.requests.done('r', result(request.id, 0))
      steps.push(request?.steps)
      expect(other.requests.afterFinding(finding()), 'not twice in a minute').toBeNull()
      other.pass(2 * MINUTE)
    }
    expect(steps).toEqual([null, 80, 160, undefined, undefined, undefined])
  })

  it('go to two ranks at a time, and are given up after ten minutes', () => {
    const { requests, pass } = world()
    expect([0, 1, 2].map((rank) => requests.afterFinding(finding({}, rank)) !== null)).toEqual([true, true, false])
    pass(11 * MINUTE)
    expect(requests.of('r')).toEqual([])
  })

  it('take as many steps as fit the time of a step', () => {
    expect([0.01, 0.2, 0.3, 0.5, 2, null].map(stepsFor)).toEqual([40, 40, 27, 16, 12, 20])
  })
})
