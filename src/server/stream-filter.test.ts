import { describe, expect, it } from 'vitest'
import type { GpuView } from '../core/kinds.ts'
import { alertView, gpuInfo, tickEvent } from './pretend-agent.contract.ts'
import { createFilter, GpuMatcher, narrow } from './stream-filter.ts'

const view = (index: number, label = String(index)): GpuView => ({
  info: { ...gpuInfo(index), label },
  sample: null,
  ageMs: null,
  live: false,
})

describe('GpuMatcher', () => {
  it('knows a GPU by label, index or id', () => {
    const gpus = [view(0), view(1), view(1, '1:2')]
    const matches = (name: string) => new GpuMatcher([name], () => gpus).matches('GPU-0000-1')
    expect(['1', 'GPU-0000-1', '0', '2', ''].map(matches)).toEqual([true, true, false, false, false])
  })

  it('asks again when the devices changed, and about those that it does not know yet', () => {
    let gpus: GpuView[] = []
    const matcher = new GpuMatcher(['1', 'GPU-0000-7'], () => gpus)
    expect(matcher.matches('GPU-0000-1')).toBe(false)
    expect(matcher.matches('GPU-0000-7')).toBe(true)
    gpus = [view(1)]
    expect(matcher.matches('GPU-0000-1')).toBe(true)
    gpus = [{ ...view(1), info: { ...gpuInfo(1), index: 0, label: '0' } }]
    expect(matcher.matches('GPU-0000-1')).toBe(true)
    matcher.forget()
    expect(matcher.matches('GPU-0000-1')).toBe(false)
  })
})

describe('narrow', () => {
  it('gives the same event when nothing is left out, and none when nothing is left', () => {
    const event = tickEvent(1)
    expect(narrow(event, () => true)).toBe(event)
    expect(narrow(event, () => false)).toBeNull()
    expect(narrow({ type: 'health', health: [] }, () => false)).toEqual({ type: 'health', health: [] })
    expect(narrow({ type: 'devices', devices: [gpuInfo(0), gpuInfo(1)] }, (id) => id === 'GPU-0000-1')).toEqual({
      type: 'devices',
      devices: [gpuInfo(1)],
    })
  })
})

describe('narrow, of alerts', () => {
  const event = {
    ...{ type: 'alerts' as const, at: 1, alerts: [alertView('GPU-0000-0'), alertView('GPU-0000-1'), alertView(null)] },
    ...{ gone: [], hasMore: false, silencesChanged: false },
  }

  it('keeps those of the GPUs that are wanted and those of none', () => {
    expect(narrow(event, () => true)).toBe(event)
    expect(narrow(event, (id) => id === 'GPU-0000-1')).toEqual({ ...event, alerts: event.alerts.slice(1) })
  })

  it('is nothing only when nothing is left to send', () => {
    const others = { ...event, alerts: event.alerts.slice(0, 1) }
    expect(narrow(others, () => false)).toBeNull()
    for (const more of [{ gone: ['x'] }, { hasMore: true }, { silencesChanged: true }])
      expect(narrow({ ...others, ...more }, () => false)).toEqual({ ...others, alerts: [], ...more })
  })
})

describe('createFilter', () => {
  it('has one key for the same GPUs in any order', () => {
    expect(createFilter(null, ['1', '0']).key).toBe(createFilter(['tick'], ['0', '1']).key)
    expect(createFilter(null, null).key).toBe('')
  })
})
