import { describe, expect, it } from 'vitest'
import { Recent } from './recent.ts'

const point = (at: number) => ({ at, utilization: 0.5, memory: null })

describe('Recent', () => {
  it('keeps at most a point a second, and five minutes of them', () => {
    const recent = new Recent()
    for (let at = 0; at < 600_000; at += 100) recent.push(point(at))
    const points = recent.points()
    expect(points.length).toBeLessThanOrEqual(350)
    expect(points.at(-1)?.at).toBeGreaterThanOrEqual(599_000)
    expect(points[0]?.at).toBeGreaterThanOrEqual(599_000 - 312_000)
  })

  it('puts what the agent kept before what came since', () => {
    const recent = new Recent()
    recent.push(point(10_000))
    recent.push(point(11_000))
    recent.backfill([point(8000), point(10_000)])
    expect(recent.points().map(({ at }) => at)).toEqual([8000, 10_000, 11_000])
  })

  it('begins anew when time goes back: another recording, or a clock that was set', () => {
    const recent = new Recent()
    recent.push(point(50_000))
    recent.push(point(1000))
    expect(recent.points().map(({ at }) => at)).toEqual([1000])
  })
})
