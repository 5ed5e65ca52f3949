import { describe, expect, it } from 'vitest'
import { TokenBucket } from './token-bucket.ts'

const MINUTE_MS = 60_000

describe('TokenBucket', () => {
  it('allows a burst, then a rate, and keeps a reserve', () => {
    const bucket = new TokenBucket(8, 1 / MINUTE_MS)
    const take = (ms: number, isCritical = false) => bucket.take(ms, isCritical ? 0 : 2)
    expect(Array.from({ length: 8 }, () => take(0))).toEqual([true, true, true, true, true, true, false, false])
    expect([take(0, true), take(0, true), take(0, true)]).toEqual([true, true, false])
    expect([take(59_000, true), take(61_000, true), take(61_000, true)]).toEqual([false, true, false])
    expect(take(10_000_000)).toBe(true)
  })

  it('says how long to wait, longer after what was spent without a token', () => {
    const bucket = new TokenBucket(1, 1 / MINUTE_MS)
    expect(bucket.waitMs(0)).toBe(0)
    bucket.spend(0)
    expect(bucket.waitMs(0)).toBe(MINUTE_MS)
    bucket.spend(0)
    expect(bucket.waitMs(0)).toBe(2 * MINUTE_MS)
    expect(bucket.waitMs(3 * MINUTE_MS)).toBe(0)
    expect([bucket.take(3 * MINUTE_MS), bucket.take(3 * MINUTE_MS)]).toEqual([true, false])
  })
})
