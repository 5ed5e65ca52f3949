import { describe, expect, it } from 'vitest'
import { forecastOf } from '../../../../src/core/known/about-gpu.ts'
import type { Finding, FindingSubject, Run } from '../../../../src/core/model.ts'
import { forecastTone, forecastWords } from './forecast.ts'

const NOW = new Date(2026, 4, 3, 12, 0, 0).getTime()
const MINUTE = 60_000
const GPU = { id: 'GPU-1', label: '1', index: 1, mig: null }

function findingOf(subject: Partial<FindingSubject>, more: Partial<Finding> = {}): Finding {
  return {
    detector: 'oom',
    riskLevel: 'high',
    predictedAt: NOW + 152 * MINUTE,
    predictedEarliestAt: NOW + 140 * MINUTE,
    predictedLatestAt: NOW + 190 * MINUTE,
    ...more,
    subject: { gpu: null, gpuIndex: null, pid: null, run: null, ...subject },
  } as Finding
}

describe('forecastWords', () => {
  it('says when, with the interval and the risk', () => {
    expect(forecastWords(findingOf({}), NOW)).toBe('full at 14:32 (14:20–15:10), risk high')
  })

  it('says seconds when it is a matter of minutes', () => {
    const soon = { predictedAt: NOW + 90_000, predictedEarliestAt: NOW + 60_000, predictedLatestAt: NOW + 125_000 }
    expect(forecastWords(findingOf({}, soon), NOW)).toBe('full at 12:01:30 (12:01:00–12:02:05), risk high')
  })

  it('says the day when it is another', () => {
    const late = { predictedAt: NOW + 24 * 60 * MINUTE, predictedEarliestAt: null, riskLevel: 'low' as const }
    expect(forecastWords(findingOf({}, late), NOW)).toBe('full at 2026-05-04 12:00, risk low')
  })

  it('does not name a moment that has passed', () => {
    expect(forecastWords(findingOf({}, { predictedAt: NOW - 5000 }), NOW)).toBe('may be full at any moment, risk high')
    expect(forecastWords(findingOf({}, { predictedAt: null, riskLevel: null }), NOW)).toBe('may run out of memory')
  })
})

describe('forecastOf', () => {
  const runs = new Map<string, Run>([['r', { id: 'r', gpus: ['1'] } as unknown as Run]])

  it('takes the most pressing that is about this GPU, by its identity, its index or its run', () => {
    const device = findingOf({ gpu: 'GPU-1' }, { riskLevel: 'medium' })
    const rank = findingOf({ gpuIndex: 1, run: 'x' }, { riskLevel: 'critical' })
    const run = findingOf({ run: 'r' }, { riskLevel: 'low' })
    expect(forecastOf(GPU, [device, rank, run], runs)).toBe(rank)
    expect(forecastOf(GPU, [run], runs)).toBe(run)
    expect(forecastOf(GPU, [run, device], runs)).toBe(device)
  })

  it('leaves others and other detectors alone', () => {
    const others = [
      findingOf({ gpu: 'GPU-0' }),
      findingOf({ gpuIndex: 0 }),
      findingOf({ run: 'gone' }),
      findingOf({ gpu: 'GPU-1' }, { detector: 'leak' }),
    ]
    expect(forecastOf(GPU, others, runs)).toBeNull()
  })

  it('takes the sooner of two with the same risk', () => {
    const late = findingOf({ gpu: 'GPU-1' })
    const soon = findingOf({ gpu: 'GPU-1' }, { predictedAt: NOW + MINUTE })
    expect(forecastOf(GPU, [late, soon], runs)).toBe(soon)
  })
})

it('makes a high risk critical and a low one quiet', () => {
  expect(forecastTone(findingOf({}))).toBe('critical')
  expect(forecastTone(findingOf({}, { riskLevel: 'medium' }))).toBe('warning')
  expect(forecastTone(findingOf({}, { riskLevel: 'low' }))).toBe('muted')
})
